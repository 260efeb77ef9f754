"""Brokers that close the connection because of a publication, and what that does to others."""

import collections
import contextlib
import json
import socket
import sys
import threading
import time
import uuid

from stack import HERE, Broker, Program, free_port
from wire import Client, Closed, frame, handshake, mqtt_connect, mqtt_packet_length, outcome, request, subscribe

# The largest packet of the brokers that refuse by size, in bytes, and the size of what they refuse.
LIMIT = 20_000
LARGE = 50_000
# A topic with this text is denied by the brokers that refuse by topic.
DENIED = "Poison"
BROKERS = ("mosquitto 5", "mosquitto 3.1.1", "proxy", "RabbitMQ")
# The user of the gateway and of all others. It may not publish DENIED: RabbitMQ closes the connection of a client that does.
DEFINITIONS = {
    "vhosts": [{"name": "/"}],
    "users": [{"name": "coaty", "password": "secret", "tags": ["administrator"]}],
    "permissions": [{"user": "coaty", "vhost": "/", "configure": ".*", "write": ".*", "read": ".*"}],
    "topic_permissions": [{"user": "coaty", "vhost": "/", "exchange": "amq.topic", "write": f"^(?!.*{DENIED}).*$", "read": ".*"}],
}


class RabbitMQ(Program):
    """A RabbitMQ node that denies topics. It has removed its folder when `kill` returns."""

    def __init__(self, folder):
        definitions, configuration = folder / "definitions.json", folder / "rabbitmq.conf"
        definitions.write_text(json.dumps(DEFINITIONS))
        configuration.write_text(f"load_definitions = {definitions}\n")
        command = [HERE.parent / "Brokers" / "rabbitmq-cluster", "--nodes", 1, "--logs", folder / "rabbitmq", "--configuration", configuration]
        super().__init__(folder / "rabbitmq.log", command, pipes=True)
        words = self.process.stdout.readline().split()
        if words[:1] != ["ready"]:
            sys.exit(f"RabbitMQ did not start, see {self.log}")
        self.port = int(words[1])

    def kill(self):
        self.process.stdin.close()
        with contextlib.suppress(Exception):
            self.process.wait(30)
        super().kill()


class RefusingBroker:
    """A broker of one of the `BROKERS`: mosquitto closes the connection because of a size, a proxy and RabbitMQ because of a topic.

    `port` is for others, and `gateway_port` for the gateway, with `arguments`. `brokers` are the mosquittos that were started.
    """

    def __init__(self, kind, folder, keep):
        self.kind, self.folder, self.keep = kind, folder, keep
        #: Whether the gateway knows what the broker refuses before it publishes it.
        self.states_limit = kind == "mosquitto 5"
        self.arguments = {"mosquitto 3.1.1": ["--mqtt-version", "3.1.1"], "RabbitMQ": ["--topic-dialect", "slashes"]}.get(kind, [])
        self.port, self.gateway_port = free_port(), free_port()
        self.brokers = []
        if kind == "RabbitMQ":
            self.main = keep(RabbitMQ(folder))
            self.port = self.main.port
        elif kind == "proxy":
            self._start_mosquitto((self.port,))
        self._for_gateway = None

    def start(self, refuses=True):
        """Starts what the gateway connects to, or starts it again. `refuses` is whether it refuses anything."""
        if is_by_size(self.kind):
            lines = [f"max_packet_size {LIMIT}"] if refuses else []
            self._for_gateway = self._start_mosquitto((self.port, self.gateway_port), lines)
            return
        options = ["--cut-topic", DENIED] if refuses and self.kind == "proxy" else []
        command = [sys.executable, HERE.parent / "Brokers" / "fault-proxy", "--upstream", f"127.0.0.1:{self.port}", *options]
        log = self.folder / "proxy.log"
        log.write_text("")
        self._for_gateway = self.keep(Program(log, [*command, "--port", self.gateway_port, "--log", self.folder / "packets.log"]))
        if not self._for_gateway.wait_for_line(r"ready \d+ "):
            sys.exit(f"the proxy did not start, see {log}")

    def stop(self):
        self._for_gateway.kill()

    def _start_mosquitto(self, ports, lines=()):
        self.main = self.keep(Broker(self.folder, "broker", ports=ports, lines=["log_type all", *lines]))
        self.brokers.append(self.main)
        return self.main


def is_by_size(kind):
    return kind.startswith("mosquitto")


def poison(kind, number):
    """Returns the name of a channel and an object that the broker refuses there. Those with different numbers differ in name and size, and
    each is smaller than the previous one."""
    thing = {"coreType": "CoatyObject", "objectType": f"com.example.Poison{number}", "objectId": str(uuid.UUID(int=(1 << 96) + number))}
    return f"{DENIED}-{number}", thing | {"name": "Poison", "filling": "x" * (LARGE - 290 * number if is_by_size(kind) else 0)}


class Interruptions(threading.Thread):
    """Polls `/v1/status` of a gateway, and records when it lost the connection to its broker."""

    INTERVAL = 0.05

    def __init__(self, gateway):
        super().__init__(daemon=True)
        self.gateway = gateway
        #: From the last time when the gateway was online to the first when it was again.
        self.times = []
        #: Publications that the gateway has given up.
        self.refused = 0
        self._reconnects = None
        self._last_online = time.monotonic()
        self._is_ending = threading.Event()
        self._poll()
        self.start()

    def _poll(self):
        with Client(self.gateway, timeout=10) as client:
            client.send(request("GET", "/v1/status", close=True))
            broker = json.loads(client.response()[1])["broker"]
        now = time.monotonic()
        self.refused, self.is_online = broker["refusedPublications"], broker["state"] == "online"
        # A connection can be lost and established between two polls.
        new = broker["reconnects"] - self._reconnects if self._reconnects is not None else 0
        self._reconnects = broker["reconnects"]
        self.times += [(self._last_online, now)] * new
        if self.is_online:
            self._last_online = now
        elif self.times and self.times[-1][0] == self._last_online:
            self.times[-1] = (self._last_online, now)

    def run(self):
        while not self._is_ending.wait(self.INTERVAL):
            with contextlib.suppress(OSError, Closed, ValueError):
                self._poll()

    def end(self):
        """Stops to poll. A gateway that is offline counts as interrupted."""
        self._is_ending.set()
        self.join()
        if not self.is_online:
            self.times.append((self._last_online, float("inf")))

    @property
    def longest(self):
        """The seconds of the longest interruption."""
        return max((min(end, time.monotonic()) - begin for begin, end in self.times), default=0)

    def most_within(self, seconds):
        """Returns the largest number of interruptions that began within some seconds."""
        begins = [begin for begin, _ in self.times]
        return max((sum(begin <= other < begin + seconds for other in begins) for begin in begins), default=0)


class Receiver(threading.Thread):
    """A subscriber directly at the broker. `received` lists the event and the number of each object of a Channel event, in their order."""

    def __init__(self, port):
        super().__init__(daemon=True)
        self.received = []
        self._socket = mqtt_connect(port)
        self._socket.settimeout(None)
        self._socket.sendall(subscribe("coaty/3/-/+/+"))
        self._is_subscribed = threading.Event()
        self.start()
        self._is_subscribed.wait(10)

    def run(self):
        data = b""
        with contextlib.suppress(OSError):
            while part := self._socket.recv(1 << 16):
                data += part
                while (length := mqtt_packet_length(data)) and len(data) >= length:
                    self._take(data[:length])
                    data = data[length:]

    def _take(self, packet):
        if packet[0] >> 4 == 9:
            self._is_subscribed.set()
        if packet[0] >> 4 != 3:
            return
        start = next(index for index in range(1, 5) if packet[index] < 0x80) + 3
        end = start + int.from_bytes(packet[start - 2 : start], "big")
        event = packet[start:end].decode().split("/")[3]
        if event.startswith("CHN:"):
            self.received.append((event[4:], json.loads(packet[end:])["object"].get("number")))

    def numbers(self, channel):
        """Returns the numbers that have arrived on a channel."""
        return [number for name, number in list(self.received) if name == channel]

    def close(self):
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)

    @property
    def doubles(self):
        """How many events have arrived again."""
        return sum(count - 1 for count in collections.Counter(self.received).values())


class Innocents(threading.Thread):
    """A client that publishes numbered events over REST ten times a second, an observer of them, and a receiver at the broker."""

    CHANNEL = "innocent"
    INTERVAL = 0.1

    def __init__(self, gateway, broker):
        super().__init__(daemon=True)
        self.gateway = gateway
        #: By number: when a publication was sent and answered, and its outcome.
        self.publications = {}
        self.observed = []
        self.gaps = 0
        self.receiver = Receiver(broker)
        self._observer = Client(gateway)
        self._observer.send(handshake())
        self._observer.head()
        self._observer.socket.settimeout(None)
        self._observer.send(frame({"op": "subscribe", "id": "s", "event": "channel", "channelId": self.CHANNEL}))
        self._observer.message()
        self._is_ending = threading.Event()
        threading.Thread(target=self._observe, daemon=True).start()
        self.start()

    def _observe(self):
        with contextlib.suppress(OSError, Closed):
            while True:
                message = json.loads(self._observer.message())
                if message["op"] == "gap":
                    self.gaps += 1
                elif message["op"] == "event":
                    self.observed.append(message["data"]["object"]["number"])

    def run(self):
        thing = {"coreType": "CoatyObject", "objectType": "com.example.Innocent", "objectId": str(uuid.uuid4()), "name": "Innocent"}
        while not self._is_ending.wait(self.INTERVAL):
            number, sent = len(self.publications), time.monotonic()
            try:
                with Client(self.gateway, timeout=10) as client:
                    client.send(request("POST", f"/v1/channel/{self.CHANNEL}", {"object": thing | {"number": number}}, close=True))
                    status = outcome(*client.response())
            except (OSError, Closed) as error:
                status = type(error).__name__
            self.publications[number] = sent, time.monotonic(), status

    def end(self):
        """Stops to publish, and waits a moment for what is on its way."""
        self._is_ending.set()
        self.join()
        time.sleep(1)
        self.receiver.close()

    def problems(self, interruptions, flight):
        """Returns what the interruptions can't explain, as texts. Publications may be lost within `flight` seconds of an interruption."""
        received, observed = self.receiver.numbers(self.CHANNEL), self.observed
        times = [(begin - flight, end + flight) for begin, end in interruptions.times]
        due = {
            number
            for number, (sent, answered, status) in self.publications.items()
            if status == "202" and not any(sent <= end and answered >= begin for begin, end in times)
        }
        refused = collections.Counter(status for *_, status in self.publications.values() if status != "202")
        found = {
            "publications of others lost": len(due - set(received)),
            "publications of others refused": sum(refused.values()),
            "events lost for an observer without an interruption": len(due - set(observed)),
            "events twice for a receiver": self.receiver.doubles,
            "events twice for an observer": len(observed) - len(set(observed)),
            "gaps without an interruption": max(0, self.gaps - len(times)),
        }
        return [f"{count} {text}" for text, count in found.items() if count]
