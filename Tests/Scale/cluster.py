"""The programs of a row: brokers, gateways and haproxy, at the addresses of the files in deploy/scale."""

import contextlib
import os
import pathlib

from observing import Observers
from stack import Broker, Gateway, Program
from table import Broken, Scene, ask

RECIPES = pathlib.Path(__file__).resolve().parent.parent.parent / "deploy/scale"
FRONT, MQTT_FRONT = "192.0.2.10", "192.0.2.20"
GATEWAYS = ["192.0.2.11", "192.0.2.12"]
BROKERS = ["192.0.2.21", "192.0.2.22", "192.0.2.23"]
ADDRESSES = [FRONT, MQTT_FRONT, *GATEWAYS, *BROKERS]
PORT = 8080
MQTT_PORT = 1883
#: The addresses and ports of the brokers.
AT_BROKERS = [(broker, MQTT_PORT) for broker in BROKERS]
SECRET = "the secret of the gateways in this test\n"
# Seconds within which programs, gateways and observers are ready. It is generous, for busy machines.
READY = 30
# Seconds within which all observers have all events, after the last one was published.
SETTLING = 20


class Cluster(Scene):
    def __init__(self, stack, folder, binary):
        super().__init__(stack, folder, binary)
        #: By number.
        self.brokers = {}
        self.gateways = {}
        self.starts = 0
        self.key = folder / "cluster-key"
        self.key.write_text(SECRET)
        self.key.chmod(0o400)

    # MARK: Programs

    def start_broker(self, number, *lines):
        """Starts a broker with further lines of configuration. It never drops events for a slow reader."""
        lines = ["max_queued_messages 0", *lines]
        broker = Broker(self.folder, f"broker-{number}", ports=(MQTT_PORT,), address=BROKERS[number], lines=lines)
        self.brokers[number] = self.keep(broker)
        return broker

    def start_gateway(self, number, *arguments, brokers=AT_BROKERS[:1], is_member=True, **options):
        """Starts a gateway, or starts it again at the same address. `brokers` are those that it tries in turn."""
        self.starts += 1
        key = ["--cluster-key-file", self.key] if is_member else []
        arguments = [*key, "--trusted-proxies", "192.0.2.0/24", "--forwarded-header", "x-forwarded-for", *arguments]
        urls = ",".join(f"mqtt://{address}:{port}" for address, port in brokers)
        name = f"gateway-{number}-{self.starts}"
        gateway = Gateway(self.folder, name, self.binary, urls, host=GATEWAYS[number], port=PORT, arguments=arguments, **options)
        self.keep(gateway)
        if not gateway.port:
            raise Broken(f"the gateway did not start, see {gateway.log}")
        self.gateways[number] = gateway
        return gateway

    def start_haproxy(self, name="haproxy", replace=lambda text: text):
        """Starts haproxy with the file of this name, whose text may be replaced."""
        configuration = self.folder / f"{name}.cfg"
        configuration.write_text("global\n    log stdout format raw local0\n" + replace((RECIPES / f"{name}.cfg").read_text()))
        binary = "/usr/sbin/haproxy" if os.path.exists("/usr/sbin/haproxy") else "haproxy"
        return self.keep(Program(self.folder / f"{name}.log", [binary, "-f", configuration, "-db"]))

    def start(self, *arguments):
        """Starts a broker, two gateways, which see each other, and haproxy."""
        self.start_broker(0)
        for number in range(len(GATEWAYS)):
            self.start_gateway(number, *arguments)
        self.start_front()

    def start_front(self):
        """Starts haproxy in front of the gateways, once they see each other."""
        self.wait_until_complete()
        self.start_haproxy()
        self.wait("haproxy forwards requests", lambda: self.ask(FRONT, "GET", "/readyz")[0] == 200, READY)

    def observe(self, observers):
        """Starts observers, and waits until all have subscribed."""
        observing = Observers(observers)
        self.stack.callback(observing.end)
        observing.start()
        self.wait("all observers have subscribed", lambda: all(each.is_ready for each in observers), READY)
        return observing

    # MARK: Requests

    def ask(self, host, method, path, body=None, timeout=15, **headers):
        """Sends a request to an address. Returns the status and the body, as JSON if it is."""
        return ask(PORT, method, path, body, timeout, host, **headers)

    def status(self, number):
        return self.ask(GATEWAYS[number], "GET", "/v1/status")[1]

    def identity(self, number):
        """Returns the id of the gateway's identity."""
        return self.status(number)["cluster"]["identity"]

    def is_ready(self, number):
        with contextlib.suppress(OSError):
            return self.ask(GATEWAYS[number], "GET", "/readyz")[0] == 200
        return False

    def wait_until_complete(self, limit=READY):
        """Waits until all gateways are ready and see each other."""
        for number in self.gateways:
            self.wait(f"gateway {number} is ready", lambda number=number: self.is_ready(number), limit)
        for number in self.gateways:
            self.wait(f"gateway {number} sees the others", lambda number=number: self.sees_others(number), limit)

    def sees_others(self, number):
        gateways = self.status(number)["cluster"]["gateways"]
        return sum(each["state"] == "live" for each in gateways) == len(self.gateways) - 1

    # MARK: Promises

    def check_programs(self):
        for number, gateway in self.gateways.items():
            if not gateway.is_running:
                raise Broken(f"the process of gateway {number} ended with status {gateway.process.returncode}")

    def settle(self, load, observers):
        """Ends the load, waits until all observers have its last event, and checks that none is missing or was delivered twice."""
        load.finish()
        with self.suppressed():
            self.wait("all observers have the last events", lambda: all(each.has(load.counts) for each in observers), SETTLING)
        load.end()
        received = sum(each.received for each in observers)
        lost, repeated, gaps = (sum(getattr(each, name) for each in observers) for name in ("lost", "repeated", "gaps"))
        self.note("events", f"{sum(load.counts):,} published, {received:,} delivered to {len(observers)} observers")
        self.note("lost without a gap", f"{lost:,}")
        self.note("twice", f"{repeated:,}")
        self.note("gaps", f"{gaps:,}")
        self.promise(not lost, f"{lost} events were lost without a gap: {[each.example for each in observers if each.lost][:2]}")
        self.promise(not repeated, f"{repeated} events were delivered twice: {[each.example for each in observers if each.repeated][:2]}")
        self.promise(not load.errors, f"agents have lost their broker: {load.errors}")
        for each in observers:
            self.promise(not each.unexpected, f"observer {each.name} got {each.unexpected[:3]}")
        return gaps
