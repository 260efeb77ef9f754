"""Gateways, brokers, agents and curl for tests of the console, on free ports of 127.0.0.1."""

import contextlib
import http.server
import json
import os
import pathlib
import re
import select
import signal
import socket
import subprocess
import sys
import threading
import time
import uuid

HERE = pathlib.Path(__file__).parent
ROOT = HERE.parent.parent
# Seconds. No condition takes as long, not even on a busy machine.
PATIENCE = 30
TICK = 0.02

TEMPERATURE_CONTEXT = "b61740a6-95d7-4d1a-8be5-53f3aa1e0b79"
TEMPERATURE_NAMESPACE = "com.iorouting"


def eventually(what, condition, seconds=PATIENCE):
    """Returns the result of a condition as soon as it is true.

    Raises AssertionError with the last result if the condition does not become true in time.
    """
    deadline = time.monotonic() + seconds
    while True:
        result = condition()
        if result:
            return result
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {seconds} seconds: {what} (last: {result!r})")
        time.sleep(TICK)


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Child:
    """A process whose output is written to files. It ends at the latest when the test process ends."""

    def __init__(self, log, command, environment=None, stdin=subprocess.DEVNULL):
        self.log = log
        variables = {name: value for name, value in os.environ.items() if not name.startswith("COATY_")}
        with open(log.with_suffix(".out"), "w") as output, open(log, "a") as errors:
            self.process = subprocess.Popen(
                ["setpriv", "--pdeathsig", "KILL", "--", *map(str, command)],
                env=variables | (environment or {}),
                stdin=stdin,
                stdout=output,
                stderr=errors,
            )

    @property
    def output(self):
        return self.log.with_suffix(".out").read_text(errors="replace")

    def wait_for_output(self, what, pattern):
        """Returns the match of a regular expression in standard output."""

        def found():
            match = re.search(pattern, self.output, re.MULTILINE)
            if match is None and self.process.poll() is not None:
                raise AssertionError(f"{what}: the process has ended with {self.process.returncode}:\n{self.log.read_text()}")
            return match

        return eventually(f"{what} in {self.log.with_suffix('.out')}", found)

    def kill(self):
        self.end(signal.SIGKILL)

    def end(self, number=signal.SIGTERM):
        if self.process.stdin:
            self.process.stdin.close()
        if self.process.poll() is None:
            self.process.send_signal(number)
            try:
                self.process.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()


class Broker:
    """A mosquitto that can be killed and started again on its port."""

    def __init__(self, folder):
        self.port = free_port()
        self._log = folder / f"mosquitto-{self.port}.log"
        self._configuration = folder / f"mosquitto-{self.port}.conf"
        lines = [f"listener {self.port} 127.0.0.1", "allow_anonymous true", "persistence false", "log_dest stderr"]
        # No limits: the tests of the load count every event.
        lines += ["max_queued_messages 0", "max_queued_bytes 0"]
        if os.geteuid() == 0:
            lines.append("user root")
        self._configuration.write_text("\n".join(lines) + "\n")
        self.start()

    @property
    def url(self):
        return f"mqtt://127.0.0.1:{self.port}"

    def start(self):
        binary = "/usr/sbin/mosquitto"
        self._child = Child(self._log, [binary, "-c", self._configuration])
        eventually(f"mosquitto on port {self.port}", self._answers)

    def kill(self):
        self._child.kill()

    stop = kill

    def _answers(self):
        try:
            connect_mqtt(self.port).close()
            return True
        except OSError:
            return False


def connect_mqtt(port):
    """Returns a socket with an accepted MQTT 3.1.1 connection without keepalive."""
    link = socket.create_connection(("127.0.0.1", port), timeout=PATIENCE)
    link.sendall(bytes([0x10, 12, 0, 4, 0x4D, 0x51, 0x54, 0x54, 4, 2, 0, 0, 0, 0]))
    answer = link.recv(4)
    if answer != bytes([0x20, 2, 0, 0]):
        link.close()
        raise ConnectionError(f"the broker refuses the connection: {answer!r}")
    return link


def publish_packet(topic, payload):
    """Returns an MQTT 3.1.1 PUBLISH packet with QoS 0."""
    rest = len(topic) + 2 + len(payload)
    head = bytearray([0x30])
    while True:
        head.append((rest & 0x7F) | (0x80 if rest > 0x7F else 0))
        rest >>= 7
        if rest == 0:
            break
    return bytes(head) + len(topic).to_bytes(2, "big") + topic + payload


def has_retained(broker, topic):
    """Returns whether the broker retains a message on a topic."""
    name = topic.encode()
    with connect_mqtt(broker.port) as link:
        link.sendall(bytes([0x82, 5 + len(name), 0, 1, 0, len(name)]) + name + bytes([0]))
        # A retained message follows the SUBACK at once, and the response to a ping comes last.
        link.sendall(bytes([0xC0, 0]))
        answer = b""
        while not answer.endswith(bytes([0xD0, 0])):
            answer += link.recv(4096)
    return len(answer) > 5 + 2


def publish_json(broker, topic, data):
    """Publishes JSON on any topic, without the checks of an agent."""
    with connect_mqtt(broker.port) as link:
        link.sendall(publish_packet(topic.encode(), json.dumps(data).encode()) + bytes([0xE0, 0]))
        link.recv(1)


class PageServer:
    """Serves the files of a folder on a port of 127.0.0.1, as a separate origin."""

    class Server(http.server.ThreadingHTTPServer):
        connections = ()

        def process_request(self, request, address):
            self.connections = (*self.connections, request)
            super().process_request(request, address)

    def __init__(self, folder, port=0):
        class Handler(http.server.SimpleHTTPRequestHandler):
            def __init__(self, *arguments):
                super().__init__(*arguments, directory=folder)

            def do_GET(self):
                # Browsers request it automatically.
                if self.path == "/favicon.ico":
                    self.send_response(204)
                    self.end_headers()
                else:
                    super().do_GET()

            def log_message(self, *_):
                pass

        self._server = self.Server(("127.0.0.1", port), Handler)
        self.port = self._server.server_address[1]
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    @property
    def origin(self):
        return f"http://127.0.0.1:{self.port}"

    def stop(self):
        self._server.shutdown()
        self._server.server_close()
        # Browsers connect in advance. Requests on such a connection would still be served.
        for connection in self._server.connections:
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)


class Gateway:
    """The gateway under test. It can be killed and started again on its port."""

    def __init__(self, folder, programs, broker, *arguments, environment=None):
        self.port = free_port()
        self._environment = environment
        self.broker = broker
        self._log = folder / f"gateway-{self.port}.log"
        self._command = [programs / "coaty-gateway", "--port", self.port, "--broker", broker.url, *arguments]
        self.start()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}"

    def start(self):
        self._child = Child(self._log, self._command, self._environment)
        self._child.wait_for_output("the gateway is ready", r" ready on http://")

    def kill(self):
        self._child.kill()

    def reload(self):
        """Reloads its access configuration."""
        self._child.process.send_signal(signal.SIGHUP)

    def stop(self):
        self._child.end()
        status = self._child.process.returncode
        if status not in (0, -signal.SIGKILL):
            raise AssertionError(f"the gateway ended with {status}: see {self._log}")

    def curl(self, method, path, body=None, content_type="application/json"):
        """Runs curl, and returns the response as JSON."""
        return json.loads(self.start_curl(method, path, body, content_type).communicate(timeout=2 * PATIENCE)[0])

    def start_curl(self, method, path, body=None, content_type="application/json"):
        command = ["curl", "--silent", "--show-error", "--max-time", str(PATIENCE), "-X", method, self.url + path]
        if body is not None:
            command += ["-H", f"content-type: {content_type}", "-d", json.dumps(body)]
        return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)

    def advertise(self, name, object_type="com.example.Thing", **properties):
        """Advertises an object with curl, and returns it."""
        thing = {
            "coreType": "CoatyObject",
            "objectType": object_type,
            "objectId": str(uuid.uuid4()),
            "name": name,
        } | properties
        answer = self.curl("POST", "/v1/advertise", {"object": thing})
        if "deferred" not in answer:
            raise AssertionError(f"not advertised: {answer}")
        return thing


class TestAgent:
    """Tests/TestAgent: an agent in another process, which publishes on instruction."""

    # Not a test case.
    __test__ = False

    def __init__(self, folder, programs, broker, namespace="-"):
        log = folder / f"agent-{uuid.uuid4()}.log"
        self._child = Child(log, [programs / "test-agent", broker.url, namespace], stdin=subprocess.PIPE)
        self.id = self._child.wait_for_output("the test agent is ready", r'^\{"ready":"([^"]+)"')[1]

    def instruct(self, **instruction):
        """Publishes an event or sends a request: `publish` or `request`, `data`, and `channelId`, `topic` or `operation`."""
        self._child.process.stdin.write(json.dumps(instruction).encode() + b"\n")
        self._child.process.stdin.flush()

    def wait_for(self, kind, name):
        """Returns the first output line of a kind (`event` or `response`) with a name."""

        def found():
            lines = [json.loads(line) for line in self._child.output.split("\n")[:-1]]
            return next((line for line in lines if line.get(kind) == name), None)

        return eventually(f"{kind} {name}", found)

    def stop(self):
        self._child.end()


class Stack:
    """The processes of a test case. `stop` ends them in reverse order."""

    def __init__(self, folder, programs):
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self.programs = programs
        self._parts = []

    def broker(self):
        return self._keep(Broker(self.folder))

    def gateway(self, broker, *arguments, environment=None):
        return self._keep(Gateway(self.folder, self.programs, broker, *arguments, environment=environment))

    def router(self, broker):
        """Starts the gateway of Examples/io-routing."""
        return self.gateway(broker, "--config", ROOT / "Examples/io-routing/gateway.yaml")

    def pages(self, folder=None, port=0):
        return self._keep(PageServer(folder or self.folder, port))

    def agent(self, broker, namespace="-"):
        return self._keep(TestAgent(self.folder, self.programs, broker, namespace))

    def example(self, broker, name, *arguments):
        """Starts a program of Examples."""
        log = self.folder / f"{'-'.join((name, *map(str, arguments)))}-{uuid.uuid4()}.log"
        child = Child(log, [self.programs / name, *arguments], {"COATY_BROKER": broker.url})
        self._parts.append(child.end)
        return child

    def module(self, code):
        """Runs code for client.js in node, with the client module of this repository."""
        file = self.folder / f"module-{uuid.uuid4()}.mjs"
        console = ROOT / "Sources/CoatyGateway/Console"
        code, imports = re.subn(r'^(import \{ CoatyClient \} from) "http[^"]*/client\.js"$', rf'\1 "{console.as_uri()}/client.js"', code, flags=re.MULTILINE)
        if imports != 1:
            raise AssertionError(f"no import of client.js: {code}")
        # Not every node has a WebSocket.
        socket = 'import { createRequire } from "node:module"\nglobalThis.WebSocket ??= createRequire(import.meta.url)("ws").WebSocket\n'
        file.write_text(socket + code)
        child = Child(file.with_suffix(".log"), ["node", file], {"NODE_PATH": "/usr/share/nodejs"})
        self._parts.append(child.end)
        return child

    def load(self, broker, rate, seconds, namespace="-"):
        log = self.folder / f"load-{uuid.uuid4()}.log"
        child = Child(log, [sys.executable, "-B", HERE / "load.py", broker.port, rate, seconds, namespace])
        self._parts.append(child.end)
        return child

    def _keep(self, part):
        self._parts.append(part.stop)
        return part

    def stop(self):
        problems = []
        while self._parts:
            try:
                self._parts.pop()()
            except (AssertionError, OSError) as problem:
                problems.append(str(problem))
        if problems:
            raise AssertionError("; ".join(problems))
