"""The snapshot of the object registry at the begin of a subscription, and the latency of others meanwhile."""

import re
import statistics
import threading
import time
import urllib.request

from . import contestants, load
from .processes import Broker, Failed
from .results import Metric, Result, exponents, in_rounds

SIZES = [1000, 10000, 100000]
FLAGS = [*contestants.LARGE, *contestants.limits({"maximum-registry-objects": 200000, "maximum-registry-memory": 1 << 30})]
PUBLISH_RATE = 10000
# Events per second to the other subscriber.
OTHER_RATE = 500
TARGETS = {
    "WebSocket": ("ws", "/v1/ws/advertise?coreType=CoatyObject&snapshot=true"),
    "SSE": ("sse", "/v1/sse/advertise?coreType=CoatyObject&snapshot=true"),
}
METRICS = [
    Metric("rate", "MB/s", is_main=True),
    Metric("first", "ms from the connect to the first object", 1, is_higher_better=False),
    Metric("total", "to the last object", 1, is_higher_better=False),
    Metric("p50", "median ms of an event to another subscriber", 2, is_higher_better=False),
    Metric("p99", "p99 ms", 2, is_higher_better=False),
]


def wait_for_objects(port, count):
    """Waits until the gateway has received the Advertise events. The snapshot shows whether its registry has all objects."""
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        text = urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics").read().decode()
        if int(float(re.search(r'^coaty_gateway_broker_messages_received_total{session="gateway"} (\S+)', text, re.MULTILINE)[1])) >= count:
            return
        time.sleep(0.1)
    raise Failed(f"the gateway has not received {count} objects")


def measure(kind, target, objects, seconds):
    other = f"/v1/ws/channel?channelId={load.CHANNEL}"
    with Broker() as broker, contestants.gateway(broker, *FLAGS) as server:
        load.publish(broker.port, load.ADVERTISE_TOPIC, PUBLISH_RATE, objects)
        wait_for_objects(server.port, objects)
        with load.Subscribers("ws", server.port, other, 1) as subscriber:
            count = OTHER_RATE * seconds
            events = threading.Thread(target=load.publish, args=(broker.port, load.CHANNEL_TOPIC, OTHER_RATE, count))
            events.start()
            snapshots = []
            while events.is_alive():
                with load.Subscribers(kind, server.port, target, 1) as client:
                    snapshots.append(client.expect(objects))
            events.join()
            found = subscriber.expect(count)
    median = {key: statistics.median(value[key] for value in snapshots) for key in ("first", "last", "bytes")}
    return {
        "rate": median["bytes"] / max(median["last"] - median["first"], 1),
        "first": median["first"] / 1000,
        "total": median["last"] / 1000,
        "p50": found["p50"] / 1000,
        "p99": found["p99"] / 1000,
    }


def run(options):
    result = Result("snapshot", "Snapshots of the object registry, one after the other", METRICS, subject="")
    chosen = {
        f"{size:,} objects, {name}": lambda target=target, size=size: measure(*target, size, options.seconds)
        for size in SIZES
        for name, target in TARGETS.items()
    }
    in_rounds(options, result, chosen)
    for key, title in {"first": "the time to the first object", "total": "the time to the last object"}.items():
        points = {name: [(size, result.median(f"{size:,} objects, {name}", key)) for size in SIZES] for name in TARGETS}
        result.notes += exponents(f"{title} over the number of objects", points)
    yield result
