"""Brokers that are gone, frozen, or do not keep to the protocol."""

import signal
import time

from fault import KEEPALIVE, RECONNECT_LIMIT, row

# The requests that the gateway refuses while it is offline, and publications when its queue is full.
FULL = ("503 queue-full", "429 queue-full")


def be_gone(fault, seconds, **traffic):
    fault.start(traffic=traffic)
    since = time.monotonic()
    fault.brokers[-1].kill()
    if seconds >= 1:
        fault.notice(since, 2, ["connection-refused"])
        fault.hold(since + seconds - time.monotonic())
    else:
        fault.hold(seconds)
        fault.flights.append((since - 0.3, since + seconds + 2))
    fault.start_broker()
    back = time.monotonic()
    fault.wait("the gateway has connected again", lambda: fault.ask("GET", "/v1/status")[1]["broker"]["reconnects"] == 1, RECONNECT_LIMIT)
    fault.recover(back)


@row("broker killed, and started again after 0.1 s")
def gone_short(fault):
    """The gateway connects again within 2 s. Publications are deferred and published then. Observers get a gap."""
    be_gone(fault, 0.1)
    fault.settle()


@row("broker killed, and started again after 5 s")
def gone_5(fault):
    """/readyz reports it within 2 s. Calls get 503 at once. Publications are deferred. The gateway connects again within 18 s."""
    be_gone(fault, 5)
    fault.settle()


@row("broker killed, and started again after 60 s")
def gone_60(fault):
    """As before; with 250 publications per second, the queue of 10,000 is full after 40 s, and further ones get 503 `queue-full`."""
    be_gone(fault, 60, publications=250)
    fault.settle(refusals=FULL)


@row("broker stopped with SIGSTOP for 20 s (half-open connection)")
def sigstop(fault):
    """/readyz reports it within twice the keepalive. Until then, calls end with their timeout, and then with 503 at once."""
    fault.start(traffic={"size": 20_000})
    since = time.monotonic()
    broker = fault.brokers[-1]
    broker.process.send_signal(signal.SIGSTOP)
    fault.notice(since, 2 * KEEPALIVE + 3, ["no-answer", "timed-out"])
    fault.hold(since + 20 - time.monotonic())
    broker.process.send_signal(signal.SIGCONT)
    fault.recover(time.monotonic())
    fault.settle(refusals=FULL)
