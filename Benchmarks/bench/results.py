"""Results: values of each round, medians, ratios within a round."""

import dataclasses
import math
import statistics
import subprocess
import sys

from .processes import Failed

# The errors of one measurement, which must not lose the results of others.
ERRORS = (Failed, OSError, ValueError, subprocess.SubprocessError)


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
    """The measurements of one kind of work. `rows` has a value for each round by contestant and metric, None if it was not measured."""

    key: str
    title: str
    metrics: list
    rows: dict = dataclasses.field(default_factory=dict)
    # The contestant that others are compared with.
    subject: str = "gateway"
    notes: list = dataclasses.field(default_factory=list)
    # The measurements that failed, and why.
    failures: list = dataclasses.field(default_factory=list)
    # The machine and the run.
    conditions: str = ""

    def add(self, contestant, values):
        """Adds the values of a round. Prints them, so that a long run shows its progress."""
        self._append(contestant, values)
        shown = "  ".join(f"{metric.title} {values[metric.key]:.{metric.digits}f}" for metric in self.metrics if metric.key in values)
        print(f"    {contestant}: {shown}", file=sys.stderr, flush=True)

    def add_failure(self, contestant, error):
        self.failures.append(f"{contestant}: {error}")
        self._append(contestant, {})
        print(f"    {contestant}: failed: {error}", file=sys.stderr, flush=True)

    def _append(self, contestant, values):
        row = self.rows.setdefault(contestant, {})
        for metric in self.metrics:
            row.setdefault(metric.key, []).append(values.get(metric.key))

    @property
    def main(self):
        return next((metric for metric in self.metrics if metric.is_main), None)

    def values(self, contestant, key):
        """Returns the values of the rounds that have one."""
        return [value for value in self.rows.get(contestant, {}).get(key, []) if value is not None]

    def median(self, contestant, key):
        values = self.values(contestant, key)
        return statistics.median(values) if values else None

    def ratio(self, contestant, other, key):
        """Returns the median over the rounds of a contestant's value divided by another's, because the speed of a machine changes less
        within a round than over a run."""
        pairs = zip(self.rows.get(contestant, {}).get(key, []), self.rows.get(other, {}).get(key, []))
        ratios = [mine / theirs for mine, theirs in pairs if mine is not None and theirs]
        return statistics.median(ratios) if ratios else None


def exponent(points):
    """Returns the exponent by which a cost grows with a size: the slope of the least squares line through their logarithms."""
    xs, ys = zip(*((math.log(size), math.log(cost)) for size, cost in points))
    return statistics.linear_regression(xs, ys).slope


def exponents(of, points):
    """Returns a note with the exponents of all contestants, for a result's notes. `points` are sizes and costs by contestant; one without
    a cost at each size is left out."""
    found = [f"{name} {exponent(costs):.2f}" for name, costs in points.items() if len(costs) > 1 and all(cost for _, cost in costs)]
    return [f"Exponent of {of}: {'; '.join(found)}."] if found else []


def growth(of, results, key):
    """Returns a note with the exponents of a median over the sizes. `results` are by size and have the same contestants."""
    contestants = dict.fromkeys(name for result in results.values() for name in result.rows)
    return exponents(of, {name: [(size, result.median(name, key)) for size, result in results.items()] for name in contestants})


def in_rounds(options, result, contestants):
    """Measures every contestant in turn, once in each round. `contestants` are functions by name."""
    print(f"{result.title}, {options.rounds} rounds", file=sys.stderr, flush=True)
    for number in range(options.rounds):
        print(f"  round {number + 1}", file=sys.stderr, flush=True)
        for name, measure in contestants.items():
            try:
                result.add(name, measure())
            except ERRORS as error:
                result.add_failure(name, f"round {number + 1}: {error}")
    return result
