"""Events from the broker to many connections."""

import time

from . import contestants, load
from .processes import Broker, idle_seconds
from .results import Metric, Result, exponents, in_rounds

# Events per second by the number of connections: 30,000 deliveries per second with many connections, so that no contestant is
# saturated, latencies mean something and nothing needs to be dropped. The last two metrics show it.
RATES = {1: 5000, 100: 300, 1000: 30}
METRICS = [
    Metric("deliveries", "deliveries per processor second", is_main=True),
    Metric("cost", "µs of processor time per delivery", 1, is_higher_better=False),
    Metric("p50", "median ms", 2, is_higher_better=False),
    Metric("p99", "p99 ms", 2, is_higher_better=False),
    Metric("share", "% of a processor", 0, is_higher_better=False),
    Metric("machine", "% of all processors, with broker and load generators", 0, is_higher_better=False),
]
TARGET = f"/v1/ws/channel?channelId={load.CHANNEL}"
# The server and the kind of connection of each contestant. Without a server, the broker itself serves.
CONTESTANTS = {
    "gateway": (contestants.gateway, "ws", TARGET),
    "gateway, /v1/ws": (contestants.gateway, "mux", load.CHANNEL),
    "gateway, SSE": (contestants.gateway, "sse", TARGET.replace("/ws/", "/sse/")),
    "C: libwebsockets and libmosquitto": (contestants.fanout, "ws", "/"),
    "mosquitto's WebSocket listener": (None, "mqtt", load.CHANNEL_TOPIC),
    "Node bridge": (contestants.node, "ws", TARGET),
}


def deliver(server, port, broker, kind, target, connections, seconds):
    rate = RATES[connections]
    count = int(rate * seconds)
    with load.Subscribers(kind, port, target, connections) as subscribers:
        # A number of events that every round has, and that grows with the rate.
        warm_up = max(rate // 2, 2)
        load.publish(broker.port, load.CHANNEL_TOPIC, rate, warm_up)
        subscribers.expect(warm_up * connections)
        subscribers.reset()
        start, before, idle = time.monotonic(), server.processor_seconds(), idle_seconds()
        load.publish(broker.port, load.CHANNEL_TOPIC, rate, count)
        found = subscribers.expect(count * connections)
        elapsed, used, idle = time.monotonic() - start, server.processor_seconds() - before, idle_seconds() - idle
    deliveries = found["deliveries"]
    return {
        "deliveries": deliveries / used,
        "cost": used / deliveries * 1e6,
        "p50": found["p50"] / 1000,
        "p99": found["p99"] / 1000,
        "share": used / elapsed * 100,
        "machine": (1 - idle / elapsed) * 100,
    }


def measure(make, kind, target, connections, seconds):
    with Broker(websockets=make is None) as broker:
        if make is None:
            return deliver(broker, broker.websocket_port, broker, kind, target, connections, seconds)
        with make(broker) as server:
            return deliver(server, server.port, broker, kind, target, connections, seconds)


def run(options):
    results = {}
    for connections, rate in RATES.items():
        title = f"Fan-out to {connections:,} connection{'s' * (connections > 1)}, {rate:,} events per second"
        chosen = {
            name: lambda contestant=contestant: measure(*contestant, connections, options.seconds)
            for name, contestant in CONTESTANTS.items()
        }
        result = results[connections] = in_rounds(options, Result(f"fanout-{connections}", title, METRICS), chosen)
        if len(results) == len(RATES):
            result.notes += exponents("the processor time per event over the number of connections", {
                name: [(size, size * cost) for size, each in results.items() if (cost := each.median(name, "cost"))] for name in CONTESTANTS
            })
        yield result
