"""Gateways that are killed while clients observe events, and what it costs that they know of each other."""

import itertools
import os
import statistics

from cluster import AT_BROKERS, FRONT, GATEWAYS, READY
from observing import Load, Observer
from table import row

KILLS = int(os.environ.get("SCALE_KILLS") or 20)
RATE = int(os.environ.get("SCALE_RATE") or 5_000)
AGENTS = 2
OBSERVERS = [("ws", FRONT), ("ws", FRONT), ("sse", FRONT)]
# Seconds for which the next gateway has run before a kill. After the longer time it can resume the streams of the other; after the
# shorter one, which each fifth kill has, it must report a gap.
PAUSES = [9, 9, 9, 9, 0.5]
# Seconds until haproxy knows that a gateway is ready: the interval of its checks, and a check.
CHECK = 1.5
# Minimum share of the resumes at a gateway that has run for the longer time that have no gap. A gateway that is more than two seconds
# behind the other one, on a busy machine, must report one.
GAPLESS_SHARE = 0.8
# The longest time to resume in seconds, on a busy machine.
RESUME_LIMIT = 10
# Seconds of load for the processor time.
SECONDS = 8


@row(f"kill -9 of the gateway with all observers, {KILLS} times alternately, at up to {RATE:,} events per second")
def kills(cluster):
    """The observers connect to the other gateway through haproxy, and resume from their cursors within 10 s: without a gap if that gateway
    has run for a while. No event is lost without a gap, and none is delivered twice without a gap between."""
    cluster.start()
    observers = [Observer(host, transport, f"{transport} {number}") for number, (transport, host) in enumerate(OBSERVERS)]
    # haproxy divides the observers between the gateways until the first kill.
    cluster.observe(observers)
    load = Load(RATE, AT_BROKERS[:1] * AGENTS)
    moves = kill_alternately(cluster, load, observers, KILLS, cluster.start_gateway)
    cluster.settle(load, observers)
    note_rate(cluster, load)
    cluster.note("repeated after a gap", sum(each.repeated_after_gap for each in observers))
    note_moves(cluster, moves)
    gaps = [has_gap for pause, _, has_gap in moves if pause == max(PAUSES)]
    cluster.promise(gaps.count(False) >= GAPLESS_SHARE * len(gaps), f"{gaps.count(True)} of {len(gaps)} resumes had a gap")


def kill_alternately(cluster, load, observers, count, start_gateway):
    """Kills the two gateways in turn. Returns for each resume of an observer how long the other gateway had run at least, the seconds to
    the next event, and whether a gap was before it."""
    moves = []
    for kill, pause in zip(range(count), itertools.cycle(PAUSES)):
        cluster.hold(pause)
        begin = [len(each.resumes) for each in observers]
        number = kill % 2
        cluster.gateways.pop(number).kill()
        published = [count + 1 for count in load.counts]
        cluster.wait("the observers get new events", lambda published=published: all(each.has(published) for each in observers), READY)
        found = [(pause, *resume) for each, start in zip(observers, begin) for resume in each.resumes[start:]]
        cluster.promise(found, f"no observer has resumed after kill {kill}")
        moves += found
        start_gateway(number)
        cluster.wait_until_complete()
        # haproxy now sends new connections to both, so that those of the killed gateway move to the other one.
        cluster.hold(CHECK)
    return moves


def note_rate(cluster, load, rate=RATE):
    cluster.note("events per second", f"{load.reached:,.0f}" + (f" of {rate:,}" if load.reached < 0.98 * rate else ""))


def note_moves(cluster, moves):
    """Adds the figures of resumes: the seconds since the start of the other gateway, the seconds to resume, and whether there was a gap."""
    times = [seconds for _, seconds, _ in moves]
    for is_long, name in ((True, "resumed without a gap"), (False, "resumed without a gap, at a gateway that has just started")):
        found = [has_gap for pause, _, has_gap in moves if (pause == max(PAUSES)) == is_long]
        if found:
            cluster.note(name, f"{found.count(False)} of {len(found)}")
    if times:
        cluster.note("time to resume", f"median {1000 * statistics.median(times):.0f} ms, at most {1000 * max(times):.0f} ms")
        cluster.promise(max(times) <= RESUME_LIMIT, f"an observer resumed after {max(times):.1f} s")


@row(f"processor time of two gateways at up to {RATE:,} events per second, all observers at the first one")
def steady_cost(cluster):
    """Nothing is lost. The second gateway needs processor time for the feeds that it keeps for the clients of the first one."""
    cluster.start_broker(0)
    for name, is_member in (("alone", False), ("in a cluster", True)):
        for number in range(2):
            cluster.start_gateway(number, is_member=is_member)
        if is_member:
            cluster.wait_until_complete()
        observers = [Observer(GATEWAYS[0]) for _ in range(2)]
        observing = cluster.observe(observers)
        # The second gateway then knows what the first one observes.
        cluster.hold(3)
        load = Load(RATE, AT_BROKERS[:1] * AGENTS)
        before = {number: gateway.processor_time() for number, gateway in cluster.gateways.items()}
        cluster.hold(SECONDS)
        load.finish()
        spent = {number: gateway.processor_time() - before[number] for number, gateway in cluster.gateways.items()}
        cluster.settle(load, observers)
        note_rate(cluster, load)
        shares = " and ".join(f"{share / load.seconds:.1%}" for share in spent.values())
        micros = " and ".join(f"{1e6 * share / sum(load.counts):.1f}" for share in spent.values())
        cluster.note(f"{name}, the first and the second gateway", f"{shares} of a processor, {micros} µs per event")
        # Otherwise they would connect to the next gateways.
        observing.end()
        for gateway in cluster.gateways.values():
            gateway.kill()
        cluster.gateways.clear()


