"""POST /v1/discover with one responding agent, Examples/hello-world."""

import contextlib

from . import contestants, load
from .processes import Broker
from .results import Metric, Result, growth, in_rounds

CONNECTIONS = [1, 8, 64]
METRICS = [
    Metric("rate", "requests/s", is_main=True),
    Metric("p50", "median ms", 2, is_higher_better=False),
    Metric("p99", "p99 ms", 2, is_higher_better=False),
    Metric("cost", "µs of processor time per request", 0, is_higher_better=False),
    Metric("responder", "of the responder", 0, is_higher_better=False),
    Metric("broker", "of the broker", 0, is_higher_better=False),
]


def measure(make, connections, seconds):
    """Measures a bridge, or with `make` None a client that uses only libmosquitto."""
    with Broker() as broker, contestants.responder(broker) as responder, make(broker) if make else contextlib.nullcontext() as server:
        processes = ({"cost": server} if server else {}) | {"responder": responder, "broker": broker}

        def request(duration):
            return load.discover(server.port, connections, duration) if server else load.round_trip(broker.port, duration)

        request(0.5)
        before = {name: process.processor_seconds() for name, process in processes.items()}
        found = request(seconds)
        after = {name: process.processor_seconds() for name, process in processes.items()}
    costs = {name: (after[name] - before[name]) / found["requests"] * 1e6 for name in processes}
    latencies = {key: found[key] / 1000 for key in ("p50", "p99")}
    return costs | latencies | {"rate": found["requests"] / found["seconds"]}


def run(options):
    results = {}
    for connections in CONNECTIONS:
        title = f"POST /v1/discover, one responder, {connections} connection{'s' * (connections > 1)}"
        chosen = {"gateway": contestants.gateway, "Node bridge": contestants.node}
        if connections == 1:
            chosen["C: libmosquitto, no HTTP"] = None
        measurements = {name: lambda make=make: measure(make, connections, options.seconds) for name, make in chosen.items()}
        result = results[connections] = in_rounds(options, Result(f"discover-{connections}", title, METRICS), measurements)
        if connections == CONNECTIONS[-1]:
            result.notes += growth("the processor time per request over the number of connections", results, "cost")
        yield result
