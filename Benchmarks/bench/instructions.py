"""The number of instructions of the hot paths, as callgrind counts them over all threads.

A gateway under callgrind does one operation after the other: the next begins when the previous one has had its effect. The result is the
minimum of several blocks, because other work of the gateway only adds instructions.
"""

import hashlib
import http.client
import json
import pathlib
import re
import socket
import subprocess
import threading
import time

from . import load, mqtt
from .processes import FOLDER, Broker, Failed, Server

BLOCKS = 5
# Operations before the first block, which allocate what is kept.
WARM_UP = 50
# Repetitions of a program of the library. The difference between the two has no start and no end of the process.
REPETITIONS = (2000, 6000)
# A gateway without work for this long has nothing to do. It looks for work of its own every few seconds.
QUIET_SECONDS = 0.005
# The gateway is fifty times slower under callgrind.
TIMEOUT_SECONDS = 120

THING = {"coreType": "CoatyObject", "objectType": "com.example.Thing", "objectId": "5b1ad0a4-2f3f-4d0a-9c0e-000000000000", "name": "Thing"}
EVENT = json.dumps({"object": THING | {"value": "x" * 150}}).encode()
ANSWER = json.dumps({"object": THING}).encode()
TOKENS = {"served": "served-0123456789abcdef", "limited": "limited-0123456789abcdef"}
# The client `limited` uses up its rate with its first request.
CONFIGURATION = """
access:
  tokens:
    - {{name: served, sha256: "{served}", roles: [admin]}}
    - {{name: limited, sha256: "{limited}", roles: [limited]}}
  roles:
    limited: [{{publish: [advertise], types: ["*"]}}]
  limits:
    roles: {{limited: {{requests: 1/h}}}}
"""


def totals(folder):
    """Returns the instructions of each dump of callgrind by file, without dumps that are not complete."""
    found = {}
    for path in folder.glob("out*"):
        if match := re.search(r"^totals: (\d+)", path.read_text(errors="replace"), re.MULTILINE):
            found[path] = int(match[1])
    return found


def callgrind(folder, binary, *arguments):
    """Returns the command that counts the instructions of a program."""
    # valgrind does not understand the debugging information of Swift.
    subprocess.run(["strip", "-o", folder / binary.name, binary], check=True)
    return ["valgrind", "--tool=callgrind", f"--callgrind-out-file={folder}/out", folder / binary.name, *arguments]


class Requests:
    """A connection to the gateway that waits for each response."""

    def __init__(self, port, client, path, body, status):
        self.connection = http.client.HTTPConnection("127.0.0.1", port, timeout=TIMEOUT_SECONDS)
        self.head = {"Content-Type": "application/json", "Authorization": f"Bearer {TOKENS[client]}"}
        self.path, self.body, self.status = path, body, status

    def __call__(self):
        self.connection.request("POST", self.path, self.body, self.head)
        response = self.connection.getresponse()
        text = response.read()
        if response.status != self.status:
            raise Failed(f"{self.path}: status {response.status}: {text.decode()}")
        return text


class WebSocket:
    """A subscription that waits for each event."""

    def __init__(self, port, channel):
        connection = socket.create_connection(("127.0.0.1", port), timeout=TIMEOUT_SECONDS)
        connection.sendall(
            f"GET /v1/ws/channel?channelId={channel} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
            "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n"
            f"Authorization: Bearer {TOKENS['served']}\r\n\r\n".encode()
        )
        self.stream = connection.makefile("rb")
        connection.close()
        while self.stream.readline().strip():
            pass
        self.expect("ok")

    def expect(self, kind):
        while True:
            head, size = self.stream.read(2)
            if size == 126:
                size = int.from_bytes(self.stream.read(2), "big")
            text = self.stream.read(size)
            # The gateway sends pings from time to time.
            if head & 15 == 1:
                break
        if f'"op":"{kind}"'.encode() not in text:
            raise Failed(f"{kind} expected: {text.decode()}")


class Events:
    """Publishes an event to a number of subscriptions, and waits until each has received it."""

    def __init__(self, port, publisher, count):
        self.publisher, self.topic = publisher, f"coaty/3/-/CHN:to{count}/{load.SOURCE}"
        self.subscriptions = [WebSocket(port, f"to{count}") for _ in range(count)]

    def __call__(self):
        self.publisher.publish(self.topic, EVENT)
        for subscription in self.subscriptions:
            subscription.expect("event")


def respond(broker):
    """Answers Discover events until the broker stops."""
    with mqtt.Client(broker.port, "bench-responder", timeout=None) as client:
        client.subscribe("coaty/3/-/DSC/+/+")
        while True:
            topic, _ = client.receive()
            # The gateway asks for identities at its start.
            client.publish(f"coaty/3/-/RSV/{load.SOURCE}/{topic.rpartition('/')[2]}", ANSWER)


class Gateway:
    """A gateway under callgrind, for the duration of a `with` block."""

    def __init__(self, binary, folder, broker):
        self.folder, self.broker = folder, broker
        configuration = folder / "gateway.yaml"
        hashes = {name: hashlib.sha256(token.encode()).hexdigest() for name, token in TOKENS.items()}
        configuration.write_text(CONFIGURATION.format_map(hashes))
        subprocess.run(["cc", "-shared", "-fPIC", "-o", folder / "preload.so", FOLDER / "instructions" / "sigsuspend.c"], check=True)
        command = callgrind(folder, binary, "--port", 0, "--broker", f"mqtt://127.0.0.1:{broker.port}", "--config", configuration)
        self.server = Server(command, environment={"LD_PRELOAD": f"{folder}/preload.so"})

    def __enter__(self):
        self.server.__enter__()
        self.publisher = mqtt.Client(self.broker.port, "bench-publisher")
        return self

    def __exit__(self, *_):
        # An orderly stop takes long under callgrind, and writes another dump.
        self.server.process.kill()
        self.server.process.wait()
        self.publisher.__exit__()

    def control(self, option):
        command = ["callgrind_control", option, str(self.server.process.pid)]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def instructions(self, operation, count):
        """Returns the number of instructions of an operation: the minimum over the blocks of `count` operations each."""
        for _ in range(WARM_UP):
            operation()
        found = []
        for _ in range(BLOCKS):
            before = totals(self.folder)
            self.control("-z")
            for _ in range(count):
                operation()
            self.control("-d")
            while not (dumps := totals(self.folder).items() - before.items()):
                time.sleep(0.02)
            found.append(sum(total for _, total in dumps))
        return round(min(found) / count)

    def wait_until_quiet(self):
        """Waits until no thread has run for some time."""
        before = quiet_since = None
        while quiet_since is None or time.monotonic() < quiet_since + QUIET_SECONDS:
            tasks = pathlib.Path(f"/proc/{self.server.process.pid}/task").glob("*/schedstat")
            if (now := [path.read_text() for path in tasks]) != before:
                before, quiet_since = now, time.monotonic()
            time.sleep(QUIET_SECONDS / 5)

    def advertise(self):
        advertise = Requests(self.server.port, "served", "/v1/advertise", EVENT, 202)

        def advertise_and_observe():
            advertise()
            # The gateway also receives the event. The costs differ if it does so together with the next request.
            self.wait_until_quiet()

        return self.instructions(advertise_and_observe, 100)

    def refuse(self):
        requests = Requests(self.server.port, "limited", "/v1/advertise", EVENT, 202)
        requests()
        requests.status = 429
        return self.instructions(requests, 300)

    def discover(self):
        threading.Thread(target=lambda: suppress_end(respond, self.broker), daemon=True).start()
        discover = Requests(self.server.port, "served", "/v1/discover", b'{"objectTypes":["com.example.Thing"]}', 200)
        # The responder has subscribed when it has answered.
        while b'"responses":[{' not in discover():
            pass
        return self.instructions(discover, 100)

    def deliver(self, subscriptions, count):
        return self.instructions(Events(self.server.port, self.publisher, subscriptions), count)


def suppress_end(function, *arguments):
    try:
        function(*arguments)
    except OSError:
        pass


def repeat(binary, operation, folder):
    """Returns the number of instructions of an operation of hot-paths."""
    found = []
    for count in REPETITIONS:
        for path in totals(folder):
            path.unlink()
        subprocess.run(callgrind(folder, binary, operation, str(count)), check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        found.append(sum(totals(folder).values()))
    return round((found[1] - found[0]) / (REPETITIONS[1] - REPETITIONS[0]))


# What is counted in a gateway, by name.
SERVED = {
    "advertise": Gateway.advertise,
    "advertise-refused": Gateway.refuse,
    "event-to-1": lambda gateway: gateway.deliver(1, 300),
    "event-to-100": lambda gateway: gateway.deliver(100, 20),
    "discover": Gateway.discover,
}
# What is counted in hot-paths, by name.
REPEATED = {"filter-match": "filter", "decode": "decode", "decode-object": "object", "encode-object": "encode"}
PATHS = [*SERVED, *REPEATED]


def count(name, gateway, hot_paths, folder):
    """Returns the number of instructions of a path."""
    if name in REPEATED:
        return repeat(hot_paths, REPEATED[name], folder)
    # A gateway for each path, so that its number does not depend on the paths before it.
    with Broker() as broker, Gateway(gateway, folder, broker) as running:
        return SERVED[name](running)
