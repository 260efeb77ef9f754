"""Publications because of which a broker closes the connection: larger than it accepts, or denied."""

import collections
import re
import time

from fault import FLIGHT, RECONNECT_LIMIT, SETTLING
from refusing import BROKERS, Interruptions, Receiver, RefusingBroker, poison
from table import Broken, rows
from wire import Client, outcome, request

# The address of the client with the poison, which the gateway tells from the other clients.
CULPRIT = "127.0.0.2"
# The longest interruption, in seconds.
LONGEST = 2
# Seconds after a publication in which the broker closes the connection, and the gateway connects again and finds the cause.
REACTION = 10
# Harmless publications behind each poison while the broker is away.
BEHIND = 50
# The harmless publications of that client have these channels.
HARMLESS = "harmless-"
HARMLESS_ID = "5f8c7a52-3b0e-4d54-8f0e-2c9a4f0b6a11"


class Culprit:
    """The client with the poison, and what the gateway and its other clients suffer from it."""

    def __init__(self, fault, kind, refuses=True):
        self.fault = fault
        self.refusing = RefusingBroker(kind, fault.folder, fault.keep)
        self.refusing.start(refuses)
        fault.broker_port, fault.gateway_port, fault.brokers = self.refusing.port, self.refusing.gateway_port, self.refusing.brokers
        fault.start_gateway(*self.refusing.arguments)
        fault.start_traffic()
        self.interruptions = Interruptions(fault.gateway.port)
        self.receiver = Receiver(self.refusing.port)
        fault.stack.callback(self.receiver.close)
        self.responses = collections.Counter()
        self.harmless = 0

    def send(self, method, path, body):
        with Client(self.fault.gateway.port, CULPRIT, timeout=10) as client:
            client.send(request(method, path, body, close=True))
            status, answer = client.response()
        return outcome(status, answer) + (" deferred" if b'"deferred":true' in answer else "")

    def publish_poison(self, number):
        channel, thing = poison(self.refusing.kind, number)
        self.responses[self.send("POST", f"/v1/channel/{channel}", {"object": thing})] += 1

    def advertise_poison(self, number):
        self.responses[self.send("POST", "/v1/advertise", {"object": poison(self.refusing.kind, number)[1]})] += 1

    def publish_harmless(self):
        thing = {"coreType": "CoatyObject", "objectType": "com.example.Harmless", "objectId": HARMLESS_ID, "name": "Harmless"}
        status = self.send("POST", f"/v1/channel/{HARMLESS}{self.harmless}", {"object": thing})
        self.fault.promise(status.startswith("202"), f"a harmless publication of the client got {status}")
        self.harmless += 1

    def arrived(self):
        """Returns the numbers of the harmless publications in the order in which the broker has received them."""
        if not self.refusing.brokers:
            return [int(channel[len(HARMLESS) :]) for channel, _ in list(self.receiver.received) if channel.startswith(HARMLESS)]
        pattern = re.compile(rf"Received PUBLISH from \S+ \(d0, q0, r0, m0, 'coaty/3/-/CHN:{HARMLESS}(\d+)/")
        return [int(number) for number in pattern.findall(self.refusing.main.log.read_text(errors="replace"))]

    def settle(self, poisons, outages=0):
        """Checks that the poisons have interrupted the gateway at most once each, besides outages of the broker, and harmed no other client."""
        fault, interruptions = self.fault, self.interruptions
        interruptions.end()
        times = interruptions.times[outages:]
        longest = max((end - begin for begin, end in times), default=0)
        fault.flights += [(begin - FLIGHT, end + FLIGHT) for begin, end in interruptions.times]
        fault.figures["responses"] = ", ".join(f"{count} × {status}" for status, count in self.responses.items())
        fault.figures["interruptions"] = f"{len(times)}, the longest {longest:.1f} s" if times else "0"
        fault.figures["given up"] = str(interruptions.refused)
        fault.promise(len(times) <= poisons, f"{len(times)} interruptions by {poisons} poisons")
        fault.promise(longest <= LONGEST, f"an interruption took {longest:.1f} s")
        arrived = self.arrived()
        fault.figures["harmless of the same client"] = f"{len(set(arrived))} of {self.harmless} arrived"
        fault.promise(len(arrived) == len(set(arrived)), f"{len(arrived) - len(set(arrived))} of them arrived twice")
        fault.promise(arrived == sorted(arrived), "they arrived in another order")
        fault.promise(not self.receiver.doubles, f"a receiver got {self.receiver.doubles} events twice")
        if not interruptions.is_online:
            raise Broken("the gateway is still offline")
        fault.recover(time.monotonic())
        fault.settle(has_gaps=bool(interruptions.times))
        self._check_others()

    def _check_others(self):
        fault, times = self.fault, self.interruptions.times
        gaps = max(reader.gaps for reader in fault.traffic.readers.values())
        fault.promise(gaps <= len(times), f"an observer got {gaps} gaps in {len(times)} interruptions")
        for answer in fault.traffic.answers:
            during = any(answer.asked <= end + FLIGHT and answer.asked + answer.seconds >= begin - FLIGHT for begin, end in times)
            fault.promise(during or answer.status == "200", f"a call got {answer.status} without an interruption")


@rows(BROKERS, "an advertised object that the broker refuses by closing the connection; {}")
def poison_kept(fault, broker):
    """At most one interruption of 2 s, and none when the client advertises it again. The gateway does not advertise the object after each
    reconnect. With MQTT 5 and a limit of the broker, 413 at once. Other clients lose nothing without a gap."""
    culprit = Culprit(fault, broker)
    for _ in range(2):
        culprit.advertise_poison(0)
        fault.hold(REACTION)
        culprit.publish_harmless()
    culprit.settle(0 if culprit.refusing.states_limit else 1)


@rows(BROKERS, "2 publications that the broker refuses by closing the connection, each before 50 harmless ones, deferred by an outage; {}")
def poison_deferred(fault, broker):
    """All harmless ones arrive, in order. At most one interruption of 2 s for each poison. Other clients lose nothing without a gap."""
    culprit = Culprit(fault, broker, refuses=False)
    since = time.monotonic()
    culprit.refusing.stop()
    fault.notice(since, 2)
    for number in range(2):
        culprit.publish_poison(number)
        for _ in range(BEHIND):
            culprit.publish_harmless()
    fault.promise(set(culprit.responses) == {"202 deferred"}, "the poisons were not deferred")
    culprit.refusing.start()
    with fault.suppressed():
        fault.wait("all harmless publications arrive", lambda: len(set(culprit.arrived())) == culprit.harmless, RECONNECT_LIMIT + SETTLING)
    fault.hold(2)
    culprit.settle(2, outages=1)


@rows(BROKERS, "8 publications of the same kind that the broker refuses by closing the connection, one every 2 s; {}")
def poison_repeated(fault, broker):
    """At most one interruption of 2 s, and none for the repetitions. Other clients lose nothing without a gap, and their calls fail only
    during the interruption. With MQTT 5 and a limit of the broker, 413 at once."""
    culprit = Culprit(fault, broker)
    for _ in range(8):
        culprit.publish_poison(0)
        fault.hold(1)
        culprit.publish_harmless()
        fault.hold(1)
    culprit.settle(0 if culprit.refusing.states_limit else 1)
