"""Brokers that are gone, frozen, or do not keep to the protocol."""

import signal
import time

from fault import FLIGHT, NOTICE_LIMIT, RECONNECT_LIMIT
from table import row

# The requests that the gateway refuses while it is offline, and publications when its queue is full.
FULL = ("503 queue-full", "429 queue-full")


def be_gone(fault, seconds):
    since = time.monotonic()
    fault.brokers[-1].kill()
    fault.notice(since, 2, ["connection-refused"])
    fault.hold(since + seconds - time.monotonic())
    fault.start_broker()
    fault.recover(time.monotonic())


@row("broker killed, and started again after 0.1 s, five times")
def gone_short(fault):
    """The gateway connects again within 18 s each time. Meanwhile, it defers publications. Observers get a gap."""
    fault.start()
    for number in range(1, 6):
        since = time.monotonic()
        fault.brokers[-1].kill()
        fault.hold(0.1)
        fault.start_broker()
        back = time.monotonic()
        reconnects = lambda: fault.ask("GET", "/v1/status")[1]["broker"]["reconnects"]  # noqa: E731
        fault.wait("the gateway has connected again", lambda number=number: reconnects() == number, RECONNECT_LIMIT)
        fault.flights.append((since - FLIGHT, time.monotonic() + FLIGHT))
        fault.recover(back)
    fault.settle()


@row("broker killed, and started again after 5 s")
def gone_5(fault):
    """/readyz reports it within 2 s. Calls get 503 at once, and publications are deferred. The gateway connects again within 18 s."""
    fault.start()
    be_gone(fault, 5)
    fault.settle()


@row("broker killed, and started again after 60 s")
def gone_60(fault):
    """As before. With 250 publications per second, the client's half of the queue of 10,000 is full after 20 s, and further publications
    get 429 `queue-full`."""
    fault.start(traffic={"publications": 250})
    be_gone(fault, 60)
    refused = [made for made in fault.traffic.publications.values() if made.status == "429 queue-full"]
    fault.promise(refused, "the queue is not limited")
    fault.settle(refusals=FULL)


@row("broker stopped with SIGSTOP for 20 s (half-open connection)")
def sigstop(fault):
    """/readyz reports it within twice the check interval of 3 s, and 2 s. Until then, calls end with their timeout, and then with 503
    at once. A stop takes at most 10 s, also while the broker is stopped."""
    fault.start(traffic={"size": 20_000})
    since = time.monotonic()
    broker = fault.brokers[-1]
    broker.process.send_signal(signal.SIGSTOP)
    fault.notice(since, NOTICE_LIMIT, ["no-answer", "timed-out"])
    fault.hold(since + 20 - time.monotonic())
    broker.process.send_signal(signal.SIGCONT)
    fault.recover(time.monotonic())
    fault.settle(refusals=FULL)
    broker.process.send_signal(signal.SIGSTOP)
    fault.stop()


def be_faulty(fault, proxy, seconds, limit, reasons, *options):
    """Replaces the proxy by one with a fault for some time. Returns the next proxy."""
    since = time.monotonic()
    proxy.kill()
    faulty = fault.start_proxy(*options, port=proxy.port)
    fault.notice(since, 2)
    fault.notice(since, limit, reasons)
    fault.hold(since + seconds - time.monotonic())
    faulty.kill()
    proxy = fault.start_proxy(port=proxy.port)
    fault.recover(time.monotonic())
    return proxy


def start_behind_proxy(fault):
    fault.start_broker()
    proxy = fault.start_proxy()
    fault.start_gateway(broker=proxy.port)
    fault.start_traffic()
    return proxy


@row("broker accepts connections and never answers, for 15 s")
def silent(fault):
    """/readyz reports it within 2 s, and after the connect timeout of 5 s that the broker does not answer. The gateway connects within 18 s
    after the broker answers again."""
    proxy = start_behind_proxy(fault)
    be_faulty(fault, proxy, 15, 10, ["timed-out", "no-answer"], "--frozen")
    fault.settle()


@row("broker refuses every CONNECT for 10 s, then accepts")
def refuses(fault):
    """/readyz reports it within 2 s, later with the reason of the broker, and 200 within 18 s after the broker accepts."""
    proxy = start_behind_proxy(fault)
    proxy = be_faulty(fault, proxy, 10, RECONNECT_LIMIT, ["broker-unavailable"], "--connack", 3)
    be_faulty(fault, proxy, 10, RECONNECT_LIMIT, ["not-authorized"], "--connack", 5)
    fault.settle()


@row("broker closes the connection after each SUBSCRIBE, for 20 s")
def cut_subscribe(fault):
    """/readyz reports it within 2 s. The gateway does not give up its subscriptions, and has all of them within 18 s."""
    proxy = start_behind_proxy(fault)
    since = time.monotonic()
    be_faulty(fault, proxy, 20, 2, ["closed"], "--maximum-filters", 0)
    # The proxy accepts connections, and closes each after a moment: what was written in this moment is lost.
    fault.distrust(since)
    fault.settle()


MALFORMED = {
    "reserved packet type": "f000",
    "length of five bytes": "30ffffffffff01",
    "topic longer than its packet": "3004ffff6161",
    "topic that is not UTF-8": "30050002c328" + "31",
    "empty topic": "30020000",
    "topic with a wildcard": "3005000323" + "2b31",
    "QoS 3": "3605000161" + "0001",
    "SUBACK without an identifier": "9000",
    "SUBACK of an unknown packet": "9003ffff00",
    "second CONNACK": "20020000",
    "CONNECT": "100c00044d5154540402000000" + "00",
    "PUBACK of an unknown packet": "4002ffff",
    "packet of 256 MB that never ends": "30ffffff7f0001",
    "payload that is not JSON": "301e" + b"\0\x1acoaty/3/-/CHN:x/agent-name".hex() + "7b7b",
}


@row(f"broker sends one of {len(MALFORMED)} malformed packets after each CONNACK, to one gateway each, for 5 s")
def malformed(fault):
    """Each gateway ignores the packet or ends the connection, still serves, and is ready within 18 s. The one under load loses nothing."""
    fault.start_broker()
    sides = []
    for number, packet in enumerate(MALFORMED):
        proxy = fault.start_proxy(name=f"proxy-{number}")
        sides.append((packet, proxy.port, fault.start_gateway(broker=proxy.port, name=f"gateway-{number}"), proxy))
    fault.start_traffic()
    since = time.monotonic()
    proxies = []
    for number, (packet, port, _, proxy) in enumerate(sides):
        proxy.kill()
        proxies.append(fault.start_proxy("--malformed", MALFORMED[packet], port=port, name=f"proxy-{number}"))
    for (packet, *_), proxy in zip(sides, proxies):
        received = lambda proxy=proxy: "< CONNACK" in proxy.packets.read_text()  # noqa: E731
        fault.wait(f"a gateway gets the packet: {packet}", received, RECONNECT_LIMIT)
    fault.hold(5)
    offline = 0
    for packet, _, gateway, _ in sides:
        fault.promise(gateway.is_running, f"{packet}: the gateway process ended with status {gateway.process.returncode}")
        fault.promise(fault.ask("GET", "/healthz", gateway=gateway, timeout=5)[0] == 200, f"{packet}: the gateway does not serve")
        offline += fault.ask("GET", "/readyz", gateway=gateway)[0] != 200
    fault.note("gateways", f"{len(sides)}, {offline} of them offline")
    for number, ((_, port, *_), proxy) in enumerate(zip(sides, proxies)):
        proxy.kill()
        fault.start_proxy(port=port, name=f"proxy-{number}")
    back = time.monotonic()
    for packet, _, gateway, _ in sides:
        ready = lambda gateway=gateway: fault.ask("GET", "/readyz", gateway=gateway)[0] == 200  # noqa: E731
        fault.wait(f"the gateway is ready again after: {packet}", ready, RECONNECT_LIMIT)
    fault.recover(back)
    fault.distrust(since)
    fault.settle()
