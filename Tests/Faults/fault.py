"""One row of the table: its programs, its figures, and the promises that were broken."""

import collections
import re
import sys
import time

from stack import HERE as HOSTILE
from stack import TICK, Broker, Gateway, Program, free_port
from table import Broken, Scene, ask
from traffic import GRACE, PREFIX, REQUEST_TIMEOUT, Traffic

# The keepalive of the gateway in these tests, in seconds.
KEEPALIVE = 5
# The seconds after which a silent broker must answer within the same time. The gateway notices a broker that does not within these
# seconds: it checks once a second, and /readyz reports it a moment later.
CHECK_INTERVAL = 3
NOTICE_LIMIT = 2 * CHECK_INTERVAL + 2
# The longest pause between two attempts of the gateway to connect, the time of an attempt, and a margin for a busy machine, in seconds.
RECONNECT_LIMIT = 10 + 5 + 3
# Seconds that SIGTERM may take.
STOP_LIMIT = 10
# Seconds before a fault is noticed, and after it, in which a publication may be on its way to the broker.
FLIGHT = 0.3
# Seconds after a fault within which everything is delivered.
SETTLING = 20


class Fault(Scene):
    def __init__(self, stack, folder, binary, seed):
        super().__init__(stack, folder, binary)
        self.seed = seed
        self.broker_port = free_port()
        #: The gateway's own port of the broker, so that a rule of the firewall concerns only the gateway.
        self.gateway_port = free_port()
        self.brokers = []
        self.gateways = []
        self.traffic = None
        #: Times in which publications may be lost: from, to.
        self.flights = []
        #: The same, also for deferred publications.
        self.distrusted = []

    # MARK: Programs

    def start_broker(self, name="broker", address="127.0.0.1"):
        """Starts the broker, or starts it again on the same ports."""
        broker = Broker(self.folder, name, ports=(self.broker_port, self.gateway_port), address=address, lines=["log_type all"])
        self.brokers.append(self.keep(broker))
        return broker

    def start_gateway(self, *arguments, broker=None, name="gateway", folder=None, **options):
        arguments = ["--broker-keepalive", KEEPALIVE, "--broker-check-interval", CHECK_INTERVAL, *arguments]
        gateway = Gateway(folder or self.folder, name, self.binary, broker or self.gateway_port, arguments=arguments, **options)
        self.gateways.append(self.keep(gateway))
        if not gateway.port:
            raise Broken(f"the gateway did not start, see {gateway.log}")
        return gateway

    def start_proxy(self, *arguments, port=None, name="proxy"):
        """Starts a proxy between the gateway and the broker, which simulates a fault. Use its port as the gateway's broker.

        `packets` of the proxy is the log of the packets that have passed.
        """
        log, packets = self.folder / f"{name}.log", self.folder / f"{name}-packets.log"
        log.write_text("")
        packets.write_text("")
        command = [sys.executable, HOSTILE.parent / "Brokers" / "fault-proxy", "--upstream", f"127.0.0.1:{self.broker_port}"]
        proxy = self.keep(Program(log, [*command, "--port", port or 0, "--log", packets, *arguments]))
        ready = proxy.wait_for_line(r"ready (\d+) ")
        if not ready:
            raise Broken(f"the proxy did not start, see {log}")
        proxy.port, proxy.packets = int(ready[1]), packets
        return proxy

    def start_traffic(self, **options):
        self.traffic = Traffic(self.gateway.port, self.broker_port, **options)
        self.stack.callback(self.traffic.end)
        self.traffic.start()
        return self.traffic

    def start(self, *arguments, traffic=None, **options):
        """Starts a broker, a gateway and the traffic."""
        self.start_broker()
        self.start_gateway(*arguments, **options)
        self.start_traffic(**(traffic or {}))

    @property
    def gateway(self):
        return self.gateways[-1]

    def ask(self, method, path, body=None, timeout=15, gateway=None, **headers):
        """Sends a request to a gateway, by default the latest. Returns the status and the body, as JSON if it is."""
        return ask((gateway or self.gateway).port, method, path, body, timeout, **headers)

    # MARK: Promises

    def check_programs(self):
        if self.gateways and not self.gateway.is_running:
            raise Broken(f"the gateway process ended with status {self.gateway.process.returncode}")

    # MARK: Phases

    def notice(self, since, limit, reasons=None):
        """Waits until /readyz reports the fault that began at `since`, with one of these reasons."""
        condition = lambda: self.traffic.change(since, False, lambda reason: not reasons or reason in reasons)  # noqa: E731
        noticed, reason = self.wait(f"/readyz reports the fault{f' as {reasons}' if reasons else ''}", condition, limit)
        self.note("noticed", f"{noticed - since:.1f} s ({reason})")
        self.flights.append((since - FLIGHT, noticed + FLIGHT))
        return noticed

    def recover(self, since, limit=RECONNECT_LIMIT):
        """Waits until the gateway serves again after the fault that ended at `since`: it is ready, answers calls and delivers events."""
        self.wait("/readyz reports 200", lambda: self.traffic.is_online, limit)
        ready = max(since, self.traffic.readiness[-1][0])
        self.wait("a call is answered", lambda: self.traffic.is_answered(ready), REQUEST_TIMEOUT + GRACE)
        self.wait("all observers get new events", lambda: self.traffic.delivers(ready), SETTLING)
        self.note("recovered", f"{ready - since:.1f} s")

    def distrust(self, since):
        """Tolerates lost publications since a time: the gateway was connected to a broker that closes connections."""
        self.distrusted.append((since - FLIGHT, time.monotonic()))

    def settle(self, *, has_gaps=True, health=1.5, refusals=(), failing=(), has_late_calls=False):
        """Stops the load, waits for the rest, and checks the promises that hold for each fault.

        `has_gaps` is whether observers may have gaps. `health` is the longest time of a health check in seconds, if it is limited.
        `refusals` are the problems that publications may get, and `failing` the errors of connections that calls may get.
        `has_late_calls` is whether calls may have to wait for a connection.
        """
        traffic = self.traffic
        traffic.stop_publishing()
        with self.suppressed():
            self.wait("all observers have the last event", traffic.has_caught_up, SETTLING)
            self.wait("the gateway has no queued publications", lambda: self.ask("GET", "/v1/status")[1]["events"]["queued"] == 0, SETTLING)
        self._check_publications(refusals)
        self._check_requests(failing, has_late_calls)
        self._check_observers(has_gaps)
        worst = max((seconds for _, seconds in traffic.health), default=0)
        self.figures["slowest health check"] = f"{worst:.2f} s"
        self.promise(not health or worst <= health, f"a health check took {worst:.1f} s, more than {health} s")
        for error in traffic.errors:
            self.promise(False, error)

    def settle_publications(self, stopped):
        """Checks the promises for publications after a stop that began at a time. Later publications may get any response, or none."""
        publications = self.traffic.publications
        for number in [number for number, made in publications.items() if made.answered >= stopped and made.status != "202"]:
            del publications[number]
        self._check_publications(())

    def _is_flying(self, publication):
        times = self.distrusted + ([] if publication.is_deferred else self.flights)
        return any(publication.answered >= begin and publication.sent <= end for begin, end in times)

    def _reported(self):
        """Returns the publications that a gateway has named as possibly lost. A connection that ends costs at most one of them.

        A deferred publication can be on its way too: when the broker is back, and ends again while the queue is sent.
        """
        pattern = re.compile(rf"may be lost: the connection ended while a publication was being sent .*channel {PREFIX}(\d+)")
        logs = {gateway.log for gateway in self.gateways}
        found = [int(number) for log in logs for number in pattern.findall(log.read_text(errors="replace"))]
        self.promise(len(found) <= len(self.flights + self.distrusted), f"{len(found)} publications may be lost, more than connections")
        return set(found)

    def _arrived(self):
        """Returns how often each publication has arrived at a broker, from the brokers' logs if there are any."""
        if not self.brokers:
            return collections.Counter(self.traffic.received)
        pattern = re.compile(rf"Received PUBLISH from \S+ \(d0, q0, r0, m0, 'coaty/3/-/CHN:{PREFIX}(\d+)/")
        logs = {broker.log for broker in self.brokers}
        return collections.Counter(int(number) for log in logs for number in pattern.findall(log.read_text(errors="replace")))

    def _check_publications(self, refusals):
        publications = self.traffic.publications
        accepted = {number: publication for number, publication in publications.items() if publication.status == "202"}
        reported = self._reported()
        due = {number for number, publication in accepted.items() if number not in reported and not self._is_flying(publication)}
        deadline = time.monotonic() + 5
        while due - (arrived := self._arrived()).keys() and time.monotonic() < deadline:
            time.sleep(TICK)
        refused = collections.Counter(made.status for made in publications.values() if made.status != "202")
        lost = due - arrived.keys()
        flying = accepted.keys() - due - arrived.keys()
        repeated = sum(count - 1 for count in (arrived | self.traffic.received).values())
        repeated_calls = sum(count - 1 for count in self.traffic.calls.values())
        deferred = sum(made.is_deferred for made in accepted.values())
        self.figures["publications"] = f"{len(accepted)} accepted, {deferred} of them deferred" + "".join(
            f", {count} {status}" for status, count in refused.items()
        )
        self.figures["accepted and lost"] = f"{len(lost)}" + (f", and {len(flying)} on their way" if flying else "")
        self.figures["duplicates"] = str(repeated + repeated_calls)
        self.promise(not lost, f"{len(lost)} accepted publications never arrived, such as {sorted(lost)[:5]}")
        self.promise(not repeated, f"{repeated} publications arrived twice")
        self.promise(not repeated_calls, f"{repeated_calls} calls arrived twice")
        other = {status: count for status, count in refused.items() if status not in refusals}
        self.promise(not other, f"publications were refused, or got no response: {other}")

    def _check_requests(self, failing, has_late_calls):
        counts = collections.Counter(answer.status for answer in self.traffic.answers)
        failed = collections.Counter({status: count for status, count in counts.items() if status != "200"})
        answered = [answer for answer in self.traffic.answers if answer.status not in failing]
        worst = max((answer.seconds for answer in answered), default=0)
        late = [answer for answer in answered if answer.seconds > REQUEST_TIMEOUT + GRACE]
        self.figures["calls"] = f"{counts['200']} ok" + "".join(f", {count} {status}" for status, count in failed.items())
        self.figures["slowest call"] = f"{worst:.1f} s"
        self.promise(has_late_calls or not late, f"{len(late)} calls took longer than {REQUEST_TIMEOUT + GRACE} s")
        wrong = {status: count for status, count in failed.items() if status[:3] not in ("503", "504") and status not in failing}
        self.promise(not wrong, f"calls failed otherwise than with 503 or 504: {wrong}")

    def _check_observers(self, has_gaps):
        readers = self.traffic.readers
        lost = sum(reader.lost for reader in readers.values())
        late = sum(len(self.traffic.times) - 1 - reader.last for reader in readers.values())
        repeated = sum(reader.repeated for reader in (*readers.values(), self.traffic.direct))
        gaps = sum(reader.gaps for reader in readers.values())
        self.figures["events"] = f"{len(self.traffic.times)} published, {lost:.0f} lost without a gap, {repeated} twice, {gaps} gaps"
        endings = collections.Counter()
        for name in ("sse", "ws"):
            endings.update(readers[name].endings)
        self.promise(not lost, f"{lost:.0f} events were lost without a gap")
        self.promise(not late, f"{late} events were not delivered in time")
        self.promise(not repeated, f"{repeated} events were delivered twice")
        self.promise(has_gaps or not gaps, f"{gaps} gaps were reported, although nothing can be missing")
        self.promise(not endings, f"streams ended: {dict(endings)}")

    def finish(self):
        if self.gateway.is_running:
            self.stop()

    def stop(self):
        """Stops the gateway, which must end in time and with the status 0.

        On a busy machine, a component may miss its part of the time, which can be as short as 40 ms. It then has what the others leave.
        """
        seconds = self.gateway.stop(STOP_LIMIT + 5)
        status = self.gateway.process.returncode
        self.figures["stopped"] = f"{seconds:.1f} s" if seconds is not None else "killed"
        self.promise(seconds is not None and seconds <= STOP_LIMIT, f"SIGTERM took longer than {STOP_LIMIT} s")
        log = self.gateway.log.read_text(errors="replace")
        late = re.findall(r"does not stop in time: the gateway continues without it component=(\S+)", log)
        if late:
            self.note("components that stopped late", ", ".join(late))
        self.promise(status == 0, f"the exit status is {status}")
