"""Results: values of each round, medians, ratios within a round."""

import dataclasses
import math
import statistics
import sys


@dataclasses.dataclass
class Metric:
    key: str
    title: str
    digits: int = 0
    # Whether the report compares the gateway with the other contestants by this metric, and plots it.
    is_main: bool = False
    is_higher_better: bool = True


@dataclasses.dataclass
class Result:
    """The measurements of one kind of work. `rows` has the values of each round by contestant and metric."""

    key: str
    title: str
    metrics: list
    rows: dict = dataclasses.field(default_factory=dict)
    # The contestant that others are compared with.
    subject: str = "gateway"
    notes: list = dataclasses.field(default_factory=list)

    def add(self, contestant, values):
        """Adds the values of a round. Prints them, so that a long run shows its progress."""
        row = self.rows.setdefault(contestant, {})
        for key, value in values.items():
            row.setdefault(key, []).append(value)
        shown = "  ".join(f"{metric.title} {values[metric.key]:.{metric.digits}f}" for metric in self.metrics if metric.key in values)
        print(f"    {contestant}: {shown}", file=sys.stderr, flush=True)

    @property
    def main(self):
        return next((metric for metric in self.metrics if metric.is_main), None)

    def median(self, contestant, key):
        values = self.rows.get(contestant, {}).get(key)
        return statistics.median(values) if values else None

    def ratio(self, contestant):
        """Returns the median over the rounds of the subject's main value divided by a contestant's, because the speed of a machine
        changes less within a round than over a run."""
        own = self.rows.get(self.subject, {}).get(self.main.key, [])
        other = self.rows.get(contestant, {}).get(self.main.key, [])
        ratios = [mine / theirs for mine, theirs in zip(own, other) if theirs]
        return statistics.median(ratios) if ratios else None


def exponent(points):
    """Returns the exponent by which a cost grows with a size: the slope of the least squares line through their logarithms."""
    xs, ys = zip(*((math.log(size), math.log(cost)) for size, cost in points))
    return statistics.linear_regression(xs, ys).slope


def in_rounds(options, result, contestants):
    """Measures every contestant in turn, once in each round. `contestants` are functions by name."""
    print(f"{result.title}, {options.rounds} rounds", file=sys.stderr, flush=True)
    for number in range(options.rounds):
        print(f"  round {number + 1}", file=sys.stderr, flush=True)
        for name, measure in contestants.items():
            result.add(name, measure())
    return result
