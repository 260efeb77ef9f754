"""The load on a gateway during a fault. Everything is numbered, so that each loss and each duplicate is counted."""

import asyncio
import collections
import contextlib
import dataclasses
import json
import socket
import threading
import time
import uuid

from well_behaved import Reader, WellBehavedClient, connect, read_head
from wire import mqtt_packets, outcome, publish, request, subscribe, target

# Seconds after which a publication, a health check or the start of all readers has failed: the gateway hangs.
LIMIT = 10
# The timeout of a request in seconds, and how much later its response may come.
REQUEST_TIMEOUT = 3
GRACE = 2
# Seconds between two requests, between two looks at /readyz, and between two health checks.
REQUEST_INTERVAL = 0.25
# Number of calls that are answered before the traffic counts as started.
CALLS_BEFORE = 4
READINESS_INTERVAL = 0.05
HEALTH_INTERVAL = 0.1
# Seconds after which one of the readers leaves, to resume after a pause.
STAY = 2
# Seconds between two attempts of a peer to connect to the broker.
RECONNECT_INTERVAL = 0.02
OPERATION = "com.example.faults.echo"
PREFIX = "rest-"


@dataclasses.dataclass
class Publication:
    """A publication over REST. `status` is its status and problem, or the name of an error."""

    sent: float
    answered: float
    status: str
    is_deferred: bool


@dataclasses.dataclass
class Answer:
    """The outcome of a call over REST. `status` is its status and problem, or the name of an error."""

    asked: float
    seconds: float
    status: str


async def read_answer(reader):
    """Returns the status and the body of a response."""
    status, headers = await read_head(reader)
    return status, await reader.readexactly(int(headers.get("content-length", 0)))


class Traffic(WellBehavedClient):
    """Clients of the gateway, and peers that are connected directly to the broker.

    Over REST, one client publishes, and one calls an operation. At the broker, one peer publishes events, which an event stream and two
    WebSockets observe; one of the WebSockets leaves and resumes all the time. Another peer receives all events, and answers calls.
    """

    def __init__(self, gateway, broker, *, publications=50, events=100, size=0, address="127.0.0.1"):
        super().__init__(gateway, broker, events)
        self.address = address
        self.publication_rate = publications
        self.filling = "x" * size
        self.readers["resuming"] = Reader()
        #: By number.
        self.publications = {}
        #: How often the receiving peer has received each publication and each call.
        self.received = collections.Counter()
        self.calls = collections.Counter()
        self.answers = []
        #: Changes of /readyz: time, whether the gateway is ready, and the reason.
        self.readiness = []
        #: Start and duration of each health check.
        self.health = []
        self.errors = []
        self._loop = asyncio.new_event_loop()
        self._is_ready = threading.Event()
        self._thread = threading.Thread(target=self._serve, daemon=True)

    # MARK: From other threads

    def start(self):
        """Returns when all readers have subscribed and the gateway is ready."""
        self._thread.start()
        if not self._is_ready.wait(2 * LIMIT) or self.errors:
            raise RuntimeError(f"the traffic does not start: {self.errors or 'timeout'}")

    def stop_publishing(self):
        self.is_publishing = False

    def end(self):
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._main.cancel)
        self._thread.join(LIMIT)

    @property
    def is_online(self):
        return bool(self.readiness) and self.readiness[-1][1]

    def change(self, since, is_ready, accepts=lambda reason: True):
        """Returns the first change of /readyz after a time: the time and the reason. None if there is none."""
        found = (change for change in self.readiness if change[0] >= since and change[1] == is_ready and accepts(change[2]))
        return next(((time, reason) for time, _, reason in found), None)

    def is_answered(self, since):
        """Returns whether a call that began after a time was successful."""
        return any(answer.asked >= since and answer.status == "200" for answer in reversed(self.answers))

    def has_caught_up(self):
        return all(reader.last == len(self.times) - 1 for reader in self.readers.values())

    def delivers(self, since):
        """Returns whether all readers have an event that was published after a time."""
        return all(reader.last >= 0 and self.times[reader.last] >= since for reader in self.readers.values())

    # MARK: In the thread of the traffic

    def _serve(self):
        asyncio.set_event_loop(self._loop)
        self._main = self._loop.create_task(self._run())
        with contextlib.suppress(asyncio.CancelledError):
            try:
                self._loop.run_until_complete(self._main)
            except Exception as error:
                self.errors.append(repr(error))
                self._is_ready.set()

    async def _run(self):
        async with asyncio.TaskGroup() as group:
            for work in (
                self.readers["sse"].run(self.read_event_stream),
                self.readers["ws"].run(self.read_websocket),
                self.readers["resuming"].run(self.read_and_leave),
                self.direct.run(self.read_broker),
                self.watch_readiness(),
                self.repeat_health_checks(),
            ):
                group.create_task(work)
            async with asyncio.timeout(2 * LIMIT):
                for reader in (*self.readers.values(), self.direct):
                    await reader.is_ready.wait()
                while not self.is_online:
                    await asyncio.sleep(READINESS_INTERVAL)
            for work in (self.publish(), self.publish_over_rest(), self.repeat_requests()):
                group.create_task(work)
            while not self.delivers(0) or len(self.answers) < CALLS_BEFORE:
                await asyncio.sleep(READINESS_INTERVAL)
            self._is_ready.set()

    async def read_and_leave(self, reader):
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(STAY):
                await self.read_websocket(reader)

    async def publish_over_rest(self):
        thing = {"coreType": "CoatyObject", "objectType": "com.example.Fault", "objectId": str(uuid.uuid4()), "name": "Numbered"}
        thing |= {"filling": self.filling}
        connection = None
        start = time.monotonic()
        for number in range(1 << 40):
            await asyncio.sleep(max(0, start + number / self.publication_rate - time.monotonic()))
            if not self.is_publishing:
                return
            sent = time.monotonic()
            status, is_deferred = "", False
            try:
                async with asyncio.timeout(LIMIT):
                    connection = connection or await connect(self.gateway)
                    reader, writer = connection
                    writer.write(request("POST", f"/v1/channel/{PREFIX}{number}", {"object": thing | {"number": number}}))
                    code, body = await read_answer(reader)
                status = outcome(code, body)
                is_deferred = code == 202 and json.loads(body)["deferred"]
            except (OSError, EOFError) as error:
                status = type(error).__name__
                if connection:
                    connection[1].close()
                connection = None
            self.publications[number] = Publication(sent, time.monotonic(), status, is_deferred)

    async def exchange(self, method, path, body=None):
        """Sends a request over a new connection. Returns the status and the body."""
        reader, writer = await connect(self.gateway)
        with contextlib.closing(writer):
            writer.write(request(method, path, body, close=True))
            return await read_answer(reader)

    async def repeat_requests(self):
        async def call(number):
            asked = time.monotonic()
            try:
                async with asyncio.timeout(REQUEST_TIMEOUT + LIMIT):
                    path = target(f"/v1/call/{OPERATION}", timeout=f"{REQUEST_TIMEOUT}s", min="1")
                    code, body = await self.exchange("POST", path, {"parameters": {"number": number}})
                status = outcome(code, body)
                if code == 200 and json.loads(body)["responses"][0]["data"]["result"] != number:
                    status = "wrong answer"
            except (OSError, EOFError) as error:
                status = type(error).__name__
            self.answers.append(Answer(asked, time.monotonic() - asked, status))

        number = 0
        async with asyncio.TaskGroup() as group:
            while self.is_publishing:
                group.create_task(call(number))
                number += 1
                await asyncio.sleep(REQUEST_INTERVAL)

    async def watch_readiness(self):
        while True:
            try:
                async with asyncio.timeout(LIMIT):
                    status, body = await self.exchange("GET", "/readyz")
                reason = json.loads(body).get("reason") or outcome(status, body)
            except (OSError, EOFError) as error:
                status, reason = 0, type(error).__name__
            if not self.readiness or self.readiness[-1][1:] != (status == 200, reason):
                self.readiness.append((time.monotonic(), status == 200, reason))
            await asyncio.sleep(READINESS_INTERVAL)

    async def repeat_health_checks(self):
        while True:
            start = time.monotonic()
            try:
                async with asyncio.timeout(LIMIT):
                    status, _ = await self.exchange("GET", "/healthz")
                self.health.append((start, time.monotonic() - start if status == 200 else LIMIT))
            except (OSError, EOFError):
                self.health.append((start, max(LIMIT, time.monotonic() - start)))
            await asyncio.sleep(HEALTH_INTERVAL)

    # MARK: Peers at the broker

    async def open_broker(self):
        source, writer = await asyncio.open_connection(self.address, self.broker)
        writer.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        writer.write(bytes([0x10, 12, 0, 4]) + b"MQTT" + bytes([4, 2, 0, 0, 0, 0]))
        try:
            await source.readexactly(4)
        except BaseException:
            writer.close()
            raise
        return source, writer

    async def publish(self):
        """Publishes events at the broker while it is there. An event that was written when the broker was killed may be lost."""
        topic = f"coaty/3/-/CHN:well-behaved/{self._agent}"
        event = {"coreType": "CoatyObject", "objectType": "com.example.WellBehaved", "objectId": self._agent, "name": "Numbered"}
        while self.is_publishing:
            try:
                source, writer = await self.open_broker()
                with contextlib.closing(writer):
                    while self.is_publishing and not source.at_eof():
                        event |= {"number": len(self.times), "time": time.monotonic()}
                        self.times.append(event["time"])
                        writer.write(publish(topic, json.dumps({"object": event}).encode()))
                        async with asyncio.timeout(1):
                            await writer.drain()
                        await asyncio.sleep(1 / self.rate)
            except (OSError, EOFError):
                await asyncio.sleep(RECONNECT_INTERVAL)

    async def read_broker(self, reader):
        source, writer = await self.open_broker()
        with contextlib.closing(writer):
            writer.write(subscribe("coaty/3/-/+/+") + subscribe(f"coaty/3/-/CLL:{OPERATION}/+/+"))
            async for packet in mqtt_packets(source):
                if packet[0] >> 4 == 9:
                    reader.is_ready.set()
                elif packet[0] >> 4 == 3:
                    self.take_packet(reader, packet, writer)

    def take_packet(self, reader, packet, writer):
        head = next(index for index in range(1, 5) if packet[index] < 0x80) + 1
        end = head + 2 + int.from_bytes(packet[head : head + 2], "big")
        event, *rest = packet[head + 2 : end].decode().split("/")[3:]
        payload = json.loads(packet[end:])
        if event.startswith("CHN:" + PREFIX):
            number = int(event[len("CHN:" + PREFIX) :])
            if payload["object"]["number"] != number or payload["object"]["filling"] != self.filling:
                self.errors.append(f"publication {number} has another payload")
            self.received[number] += 1
        elif event == "CHN:well-behaved":
            reader.take_event(payload["object"])
        elif event.startswith("CLL:"):
            # RabbitMQ delivers the dots of the operation as slashes.
            self.calls[rest[-1]] += 1
            answer = json.dumps({"result": payload["parameters"]["number"]}).encode()
            writer.write(publish(f"coaty/3/-/RTN/{self._agent}/{rest[-1]}", answer))
