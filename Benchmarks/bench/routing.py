"""The decisions of the IO router, compared with a router that decides on all pairs each time."""

import json

from .processes import output, program
from .results import Metric, Result, growth

# Nodes with a source, and as many with an actor.
SIZES = [500, 1000, 2000]
SECONDS = 900
METRICS = [
    Metric("ratio", "times as fast as the naive router", 0, is_main=True),
    Metric("time", "ms", 3, is_higher_better=False),
    Metric("naive", "ms of the naive router", 0, is_higher_better=False),
    Metric("changes", "changed associations", 0),
]


def run(options):
    lines = output(program("routing-bench"), options.rounds, *SIZES, seconds=SECONDS).splitlines()
    results = {}
    for size, line in zip(SIZES, lines, strict=True):
        result = results[size] = Result(f"routing-{size}", f"IO routing, {size:,} sources and {size:,} actors", METRICS, subject="")
        for step in json.loads(line):
            for own, naive in zip(step["own"], step["naive"]):
                result.add(step["name"], {"ratio": naive / own, "time": own, "naive": naive, "changes": step["changes"]})
        if size == SIZES[-1]:
            result.notes += growth("the time over the number of sources and of actors", results, "time")
        yield result
