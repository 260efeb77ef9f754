"""POST /v1/advertise with a body of 300 bytes, from wrk."""

import time

from . import contestants, load
from .mqtt import received_by_broker
from .processes import Broker, Failed
from .results import Metric, Result, growth, in_rounds

CONNECTIONS = [1, 8, 64]
# Time for a contestant to publish the requests that it has accepted.
PUBLISH_SECONDS = 20
# A contestant that uses no processor time for this long has published everything.
QUIET_SECONDS = 0.1
METRICS = [
    Metric("rate", "published requests/s", is_main=True),
    Metric("cost", "µs of processor time per request", 1, is_higher_better=False),
    Metric("broker", "of the broker", 1, is_higher_better=False),
]


def gateway(broker):
    return contestants.gateway(broker, *contestants.UNBOUNDED_OUTBOX)


CONTESTANTS = {
    "gateway": gateway,
    "C: libmicrohttpd and libmosquitto": contestants.publish,
    "C: libmicrohttpd, constant response": contestants.constant,
    "Node bridge": contestants.node,
    "Python bridge": contestants.python,
}


def wait_for_publications(broker, count):
    """Waits until the broker has received as many messages as clients got responses."""
    deadline = time.monotonic() + PUBLISH_SECONDS
    while (received := received_by_broker(broker.port)) < count:
        if time.monotonic() > deadline:
            raise Failed(f"the broker has received {received} of {count} messages")
        time.sleep(0.2)


def wait_until_quiet(server):
    """Waits until a server has no work. Returns the seconds until its last work."""
    start = last = time.monotonic()
    used = server.processor_seconds()
    while time.monotonic() < last + QUIET_SECONDS:
        time.sleep(0.01)
        if (now := server.processor_seconds()) != used:
            used, last = now, time.monotonic()
    return last - start


def measure(make, connections, seconds):
    with Broker() as broker, make(broker) as server:
        url = f"http://127.0.0.1:{server.port}"
        warm_up, _ = load.wrk(url, connections, 1)
        publishes = make is not contestants.constant
        if publishes:
            wait_for_publications(broker, warm_up)
        own, broker_time = server.processor_seconds(), broker.processor_seconds()
        requests, rate = load.wrk(url, connections, seconds)
        # wrk counts responses. A contestant that queues publications has the work of sending them still to come.
        elapsed = requests / rate + wait_until_quiet(server)
        if publishes:
            wait_for_publications(broker, warm_up + requests)
        own, broker_time = server.processor_seconds() - own, broker.processor_seconds() - broker_time
        found = {"rate": requests / elapsed, "cost": own / requests * 1e6}
        return found | {"broker": broker_time / requests * 1e6} if publishes else found


def run(options):
    results = {}
    for connections in CONNECTIONS:
        title = f"POST /v1/advertise, 300 bytes, {connections} connection{'s' * (connections > 1)}"
        chosen = {name: lambda make=make: measure(make, connections, options.seconds) for name, make in CONTESTANTS.items()}
        result = results[connections] = in_rounds(options, Result(f"advertise-{connections}", title, METRICS), chosen)
        if connections == CONNECTIONS[-1]:
            result.notes += growth("the processor time per request over the number of connections", results, "cost")
        yield result
