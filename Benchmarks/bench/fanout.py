"""Events from the broker to many connections."""

from . import contestants, load
from .processes import Broker
from .results import Metric, Result, exponent, in_rounds

# Events per second by the number of connections: 30,000 deliveries per second with many connections, so that no contestant is
# saturated, latencies mean something and nothing needs to be dropped.
RATES = {1: 5000, 100: 300, 1000: 30}
METRICS = [
    Metric("deliveries", "deliveries per processor second", is_main=True),
    Metric("cost", "µs of processor time per delivery", 1, is_higher_better=False),
    Metric("p50", "median ms", 2, is_higher_better=False),
    Metric("p99", "p99 ms", 2, is_higher_better=False),
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
        before = server.processor_seconds()
        load.publish(broker.port, load.CHANNEL_TOPIC, rate, count)
        found = subscribers.expect(count * connections)
        used = server.processor_seconds() - before
    deliveries = found["deliveries"]
    return {
        "deliveries": deliveries / used, "cost": used / deliveries * 1e6, "p50": found["p50"] / 1000, "p99": found["p99"] / 1000
    }


def measure(make, kind, target, connections, seconds):
    with Broker(websockets=make is None) as broker:
        if make is None:
            return deliver(broker, broker.websocket_port, broker, kind, target, connections, seconds)
        with make(broker) as server:
            return deliver(server, server.port, broker, kind, target, connections, seconds)


def run(options):
    results = []
    for connections, rate in RATES.items():
        title = f"Fan-out to {connections:,} connection{'s' * (connections > 1)}, {rate:,} events per second"
        chosen = {
            name: lambda contestant=contestant: measure(*contestant, connections, options.seconds)
            for name, contestant in CONTESTANTS.items()
        }
        results.append(in_rounds(options, Result(f"fanout-{connections}", title, METRICS), chosen))
    growth = []
    for name in CONTESTANTS:
        points = [(connections, cost * connections) for connections, result in zip(RATES, results) if (cost := result.median(name, "cost"))]
        if len(points) == len(RATES):
            growth.append(f"{name} {exponent(points):.2f}")
    results[-1].notes.append("Exponent of the processor time per event over the number of connections: " + ", ".join(growth) + ".")
    yield from results
