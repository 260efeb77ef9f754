"""Several brokers: bridges between two of them, and haproxy in front of them."""

import contextlib
import signal
import time

from cluster import AT_BROKERS, BROKERS, GATEWAYS, MQTT_FRONT, MQTT_PORT, READY, RECIPES
from observing import Load, Observer
from table import Broken, row
from wire import Publisher, mqtt_connect, publish, subscribe

RATE = 200
SECONDS = 5
# Seconds in which a loop of bridges must be reported, and the time that it lasts: it uses all processors.
LOOP_LIMIT = 5
LOOP_SECONDS = 3
# Seconds within which gateways and observers must have left a frozen broker.
MOVE_LIMIT = 10
# Seconds within which gateways must notice that the brokers are partitioned: they miss the messages of the other one after 10 s.
PARTITION_LIMIT = 20
# How often gateways are started until they are at different brokers.
ATTEMPTS = 10
# Longer than the default timeouts of haproxy in Debian, in seconds.
QUIET = 55


def bridge(to):
    """Returns the lines of a bridge to another broker."""
    text = (RECIPES / "mosquitto-bridge.conf").read_text()
    return text.replace(BROKERS[1], BROKERS[to]).splitlines()


@row("two brokers with a bridge at one side, a gateway at each")
def bridged(cluster):
    """The gateways see each other. Observers at both get the events of agents at both brokers once and in order. There is no loop."""
    cluster.start_broker(1)
    cluster.start_broker(0, *bridge(to=1))
    for number in range(2):
        cluster.start_gateway(number, brokers=[AT_BROKERS[number]])
    cluster.wait_until_complete()
    observers = [Observer(host, transport) for host in GATEWAYS for transport in ("ws", "sse")]
    cluster.observe(observers)
    load = Load(RATE, AT_BROKERS[:2])
    cluster.hold(SECONDS)
    gaps = cluster.settle(load, observers)
    cluster.promise(not gaps, "there are gaps, although nothing can be missing")
    for number in range(2):
        loops = cluster.status(number)["cluster"]["loops"]
        cluster.promise(loops == 0, f"gateway {number} reports {loops} loops")


@row("two brokers with a bridge, a gateway at each; SIGSTOP of haproxy between the brokers")
def partition(cluster):
    """Both gateways notice the partition within 20 s: the other one is `partitioned`, because it is ready. When haproxy continues, they see
    each other."""
    cluster.start_broker(1)
    link = cluster.start_haproxy("haproxy-mqtt", lambda text: text.replace(BROKERS[0], BROKERS[1]).replace(BROKERS[2], BROKERS[1]))
    cluster.wait("haproxy forwards MQTT", lambda: mqtt_connect(MQTT_PORT, address=MQTT_FRONT).close() or True, READY)
    cluster.start_broker(0, *(line.replace(BROKERS[1], MQTT_FRONT) for line in bridge(to=1)))
    for number in range(2):
        cluster.start_gateway(number, brokers=[AT_BROKERS[number]])
    cluster.wait_until_complete()
    since = time.monotonic()
    link.process.send_signal(signal.SIGSTOP)
    for number in range(2):
        cluster.wait("the partition is noticed", lambda number=number: states(cluster, number) == ["partitioned"], PARTITION_LIMIT)
    cluster.note("noticed", f"after {time.monotonic() - since:.1f} s")
    since = time.monotonic()
    link.process.send_signal(signal.SIGCONT)
    cluster.wait_until_complete()
    cluster.note("healed", f"after {time.monotonic() - since:.1f} s")
    for gateway in cluster.gateways.values():
        cluster.promise(gateway.wait_for_line("is reachable, but its messages do not arrive"), "the log has no line about the partition")


def states(cluster, number):
    """Returns the states of the other gateways."""
    return [each["state"] for each in cluster.status(number)["cluster"]["gateways"]]


@row("two brokers with a bridge at each side: a loop")
def bridge_loop(cluster):
    """The gateway reports the loop within 5 s, in `cluster.loops` of its status and in its log."""
    for number in range(2):
        cluster.start_broker(number, *bridge(to=1 - number))
    gateway = cluster.start_gateway(0)
    start = time.monotonic()
    try:
        loops = cluster.wait("the gateway reports the loop", lambda: cluster.status(0)["cluster"]["loops"], LOOP_LIMIT)
        cluster.note("reported", f"{time.monotonic() - start:.1f} s after the start")
        cluster.promise(gateway.wait_for_line("look for a loop of bridges"), "the log has no line about the loop")
        cluster.hold(max(0, start + LOOP_SECONDS - time.monotonic()))
        loops = cluster.status(0)["cluster"]["loops"]
        cluster.note("loops", f"{loops:,} after {time.monotonic() - start:.1f} s")
    finally:
        # One of the two ends the loop.
        cluster.brokers[1].kill()


@row("haproxy in front of two brokers; SIGSTOP of one of them")
def frozen_broker(cluster):
    """haproxy closes the connections to the frozen broker after about 3 s. Within 10 s, the gateway has moved to the other broker and its
    observers get events again, after a gap. The observers of the other gateway get no gap."""
    # The bridge begins at the broker that stays.
    cluster.start_broker(0)
    cluster.start_broker(1, *bridge(to=0))
    cluster.start_haproxy("haproxy-mqtt", without_third)
    cluster.wait("haproxy forwards MQTT", lambda: mqtt_connect(MQTT_PORT, address=MQTT_FRONT).close() or True, READY)
    frozen, moving = 0, start_gateways_apart(cluster)
    observers = [Observer(host, transport) for host in GATEWAYS for transport in ("ws", "sse")]
    cluster.observe(observers)
    # The agent is at the broker that stays.
    load = Load(RATE, AT_BROKERS[1:2])
    cluster.hold(1)
    since = time.monotonic()
    cluster.brokers[frozen].process.send_signal(signal.SIGSTOP)
    cluster.wait("the gateway has lost its connection", lambda: not cluster.is_ready(moving), MOVE_LIMIT)
    cluster.note("connection closed", f"after {time.monotonic() - since:.1f} s")
    cluster.wait("the gateway is at the other broker", lambda: cluster.is_ready(moving), MOVE_LIMIT)
    cluster.note("gateway ready", f"after {time.monotonic() - since:.1f} s")
    behind = [observer for observer in observers if observer.host == GATEWAYS[moving]]
    count = load.counts[0]
    cluster.wait("its observers get new events", lambda: all(each.has([count]) for each in behind), MOVE_LIMIT)
    seconds = time.monotonic() - since
    cluster.note("observers get events", f"after {seconds:.1f} s")
    cluster.promise(seconds <= MOVE_LIMIT, f"the observers got events only after {seconds:.1f} s")
    cluster.settle(load, observers)
    for each in observers:
        cluster.promise(bool(each.gaps) == (each in behind), f"observer {each.name} got {each.gaps} gaps")


def without_third(text):
    """Returns a configuration of haproxy without the third broker."""
    return "".join(line for line in text.splitlines(True) if BROKERS[2] not in line)


def start_gateways_apart(cluster):
    """Starts gateways that haproxy connects to different brokers. Returns the number of the one at the first broker. Without checks of their
    own, they notice a frozen broker only when haproxy closes the connection."""
    for _ in range(ATTEMPTS):
        for number in range(2):
            cluster.start_gateway(number, "--broker-check-interval", "0", brokers=[(MQTT_FRONT, MQTT_PORT)])
            cluster.wait(f"gateway {number} is ready", lambda number=number: cluster.is_ready(number), READY)
            # Each gateway has two connections, so that haproxy would connect both in the same order.
            cluster.stack.callback(mqtt_connect(MQTT_PORT, address=MQTT_FRONT).close)
        cluster.wait_until_complete()
        log = cluster.brokers[0].log.read_text()
        here = [number for number in range(2) if f"Coaty{cluster.identity(number).replace('-', '')[:18]}" in log]
        if len(here) == 1:
            return here[0]
        for gateway in cluster.gateways.values():
            gateway.kill()
        cluster.gateways.clear()
    raise Broken("haproxy has connected both gateways to the same broker")


@row(f"haproxy in front of a broker; the connection of an agent is quiet for {QUIET} s")
def quiet_links(cluster):
    """haproxy keeps the connection: the agent then gets the next event."""
    cluster.start_broker(0)
    cluster.start_haproxy("haproxy-mqtt", without_third)
    agent = cluster.wait("haproxy forwards MQTT", lambda: mqtt_connect(MQTT_PORT, address=MQTT_FRONT), READY)
    cluster.stack.callback(agent.close)
    agent.sendall(subscribe("coaty/3/-/CHN:quiet/+"))
    agent.recv(5)
    cluster.hold(QUIET)
    Publisher(MQTT_PORT, BROKERS[0]).send(publish("coaty/3/-/CHN:quiet/agent", b"{}"))
    agent.settimeout(5)
    received = b""
    with contextlib.suppress(OSError):
        received = agent.recv(100)
    cluster.promise(b"CHN:quiet" in received, "the connection was closed, or the event did not arrive")
