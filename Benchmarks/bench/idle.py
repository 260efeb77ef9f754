"""Memory of idle WebSockets, and the time of an event to one subscriber beside them."""

import re
import time
import urllib.request

from . import contestants, load
from .processes import Broker
from .results import Metric, Result, exponents, in_rounds

SIZES = [10, 1000, 5000, 20000]
RATE = 200
METRICS = [
    Metric("memory", "KiB per connection", 2, is_main=True, is_higher_better=False),
    Metric("p50", "median ms of an event to one subscriber", 3, is_higher_better=False),
    Metric("p99", "p99 ms", 2, is_higher_better=False),
]
# A subscription of the idle connections has no events.
KINDS = {"without a subscription": ("idle", "/v1/ws"), "with a subscription": ("ws", "/v1/ws/channel?channelId=quiet")}


def most_connections():
    """Returns how many WebSockets one client may have with this machine's limit of open files."""
    with Broker() as broker, contestants.gateway(broker, *contestants.LARGE) as server:
        text = urllib.request.urlopen(f"http://127.0.0.1:{server.port}/metrics").read().decode()
    connections = int(re.search(r'^coaty_gateway_resource_limit{resource="connections"} (\d+)', text, re.MULTILINE)[1])
    # Half is for HTTP, and the last tenth for other clients.
    return int(connections / 2 * 0.9) - 10


def settled(server):
    """Returns the resident memory in KiB when it does not change any more."""
    before = 0
    while (now := server.memory()) != before:
        before = now
        time.sleep(0.5)
    return now


def measure(kind, target, connections, seconds):
    one = f"/v1/ws/channel?channelId={load.CHANNEL}"
    with Broker() as broker, contestants.gateway(broker, *contestants.LARGE) as server:
        with load.Subscribers("ws", server.port, one, 1) as subscriber:
            before = settled(server)
            with load.Subscribers(kind, server.port, target, connections) as idle:
                after = settled(server)
                load.publish(broker.port, load.CHANNEL_TOPIC, RATE, RATE // 2)
                subscriber.expect(RATE // 2)
                subscriber.reset()
                load.publish(broker.port, load.CHANNEL_TOPIC, RATE, RATE * seconds)
                found = subscriber.expect(RATE * seconds)
                # Fails if a connection was closed.
                idle.expect(0)
    values = {"p50": found["p50"] / 1000, "p99": found["p99"] / 1000}
    # The memory of a few connections is less than what allocators add at any time.
    return values | {"memory": (after - before) / connections} if connections >= 1000 else values


def run(options):
    most = most_connections()
    sizes = sorted({min(size, most) for size in SIZES})
    result = Result("idle", "Idle WebSockets", METRICS, subject="")
    chosen = {
        f"{size:,} connections {name}": lambda kind=kind, size=size: measure(*kind, size, options.seconds)
        for name, kind in KINDS.items()
        for size in sizes
    }
    in_rounds(options, result, chosen)
    latencies = {name: [(size, result.median(f"{size:,} connections {name}", "p50")) for size in sizes] for name in KINDS}
    result.notes += exponents("the median time over the number of connections", latencies)
    memory = {name: [(size, size * each) for size in sizes if (each := result.median(f"{size:,} connections {name}", "memory"))] for name in KINDS}
    result.notes += exponents("the memory of all connections over their number", memory)
    if sizes[-1] < SIZES[-1]:
        result.notes.append(f"The limit of open files of this machine allows {sizes[-1]:,} connections instead of {SIZES[-1]:,}.")
    yield result
