"""The load generators: wrk and the C programs in load/. They run in their own processes, and check what they receive."""

import json
import re
import subprocess

from .processes import BUILD, FOLDER, Failed, output

# Folder and name of each C program, and its libraries.
C_PROGRAMS = {
    "bare/constant": ["microhttpd"],
    "bare/publish": ["microhttpd", "mosquitto"],
    "bare/fanout": ["mosquitto", "websockets", "uv"],
    "load/discover": [],
    "load/publisher": ["mosquitto"],
    "load/roundtrip": ["mosquitto"],
    "load/subscribers": [],
}
# A load generator that takes this much longer than planned has failed.
SLACK_SECONDS = 60
CHANNEL = "bench"
SOURCE = "8f2b6c4e-5d17-4a39-9c10-7e6a2b91d3f4"
CHANNEL_TOPIC = f"coaty/3/-/CHN:{CHANNEL}/{SOURCE}"
ADVERTISE_TOPIC = f"coaty/3/-/ADV:CoatyObject/{SOURCE}"


def compile_programs():
    BUILD.mkdir(parents=True, exist_ok=True)
    for path, libraries in C_PROGRAMS.items():
        target = BUILD / path.partition("/")[2]
        command = ["cc", "-O2", "-Wall", "-Wextra", "-o", target, FOLDER / f"{path}.c", *(f"-l{name}" for name in libraries)]
        subprocess.run(command, check=True)


def _run(name, *arguments, seconds):
    return json.loads(output(BUILD / name, *arguments, seconds=seconds + SLACK_SECONDS))


def wrk(url, connections, seconds):
    """Sends Advertise events. Returns the number of requests, and the requests per second."""
    command = ["wrk", "-t1", f"-c{connections}", f"-d{seconds}s", "-s", FOLDER / "advertise.lua", url]
    text = output(*command, seconds=seconds + SLACK_SECONDS)
    requests, rate, errors = map(int, re.search(r"^result (\d+) (\d+) (\d+)$", text, re.MULTILINE).groups())
    if errors:
        raise Failed(f"{errors} requests to {url} failed:\n{text}")
    return requests, rate


def discover(port, connections, seconds):
    """Sends discover requests over HTTP. Returns their number and latencies."""
    return _run("discover", port, connections, seconds, seconds=seconds)


def round_trip(port, seconds):
    """Sends discover requests over MQTT, one at a time. Returns their number and latencies."""
    return _run("roundtrip", port, seconds, seconds=seconds)


def publish(port, topic, rate, count, first=0):
    """Publishes `count` events with consecutive numbers from `first`, `rate` per second."""
    return _run("publisher", port, topic, rate, count, first, seconds=count / rate)


class Subscribers:
    """Connections that receive events and check that none is missing, for the duration of a `with` block.

    `kind` is `ws` (one subscription per WebSocket), `mux` (/v1/ws with a subscribe frame), `idle` (/v1/ws without a subscription),
    `sse`, or `mqtt` (MQTT over WebSocket).
    """

    def __init__(self, kind, port, target, count):
        self.command = [str(part) for part in (BUILD / "subscribers", kind, port, target, count)]

    def __enter__(self):
        self.process = subprocess.Popen(
            self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        if self.process.stdout.readline() != "ready\n":
            self.process.kill()
            raise Failed(f"subscribers: {self.process.stderr.read().strip()}")
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()

    def reset(self):
        """Starts a new count. The next event of each connection may have any number."""
        self._ask("reset")

    def expect(self, deliveries, seconds=10):
        """Waits until the connections have received as many events. Returns the counts and latencies since `reset`.

        Raises `Failed` if an event is missing, or if nothing arrives for `seconds`.
        """
        found = json.loads(self._ask(f"expect {deliveries} {seconds}"))
        if found["deliveries"] != deliveries or found["missing"] or found["gaps"] or found["closed"]:
            raise Failed(f"{deliveries} deliveries expected: {found}")
        return found

    def _ask(self, command):
        self.process.stdin.write(command + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        if not answer:
            raise Failed(f"subscribers: {self.process.stderr.read().strip()}")
        return answer
