"""Agents that publish numbered events, and observers that count them."""

import asyncio
import contextlib
import json
import re
import threading
import time
import uuid

from well_behaved import Refused, read_head
from wire import Publisher, frame, handshake, outcome, publish, request, target

CHANNEL = "scale"
EVENT = {"event": "channel", "channelId": CHANNEL}
# The largest `buffer`, because events may still be queued for a moment if the machine is busy.
BUFFER = 4096
# Seconds before an observer connects again.
PAUSE = 0.05
# Seconds between the batches of an agent.
BATCH = 0.01
# Numbers are text, so that they pass unchanged. Parsing the frames would take ten times as long.
NUMBER = re.compile(rb'"cursor":"([^"]*)".*?"number":"(\d+)/(\d+)"')
# Events per second and agent after `finish`: they follow the last event, so that its loss is noticed.
TRICKLE = 5


class Load:
    """Agents that publish events with the numbers 0, 1, …, each at the address and port of a broker. All have the same rate."""

    def __init__(self, rate, brokers):
        self.rate = rate
        #: The number of events of each agent.
        self.counts = [0] * len(brokers)
        #: Why agents have stopped before the end.
        self.errors = []
        self._is_finishing = self._has_ended = False
        self.start = time.monotonic()
        self._threads = [threading.Thread(target=self._run, args=each, daemon=True) for each in enumerate(brokers)]
        for thread in self._threads:
            thread.start()

    def finish(self):
        """Slows the load down. `counts` does not change any more."""
        if not self._is_finishing:
            self._is_finishing = True
            self.seconds = time.monotonic() - self.start

    def end(self):
        self._has_ended = True
        for thread in self._threads:
            thread.join(5)

    @property
    def reached(self):
        """The events per second that all agents have published."""
        return sum(self.counts) / self.seconds

    def _run(self, agent, broker):
        try:
            self._publish(agent, broker)
        except OSError as error:
            self.errors.append(repr(error))

    def _publish(self, agent, broker):
        id = str(uuid.uuid4())
        thing = {"coreType": "CoatyObject", "objectType": "com.example.Scale", "objectId": id, "name": "Numbered", "number": "@"}
        thing |= {"unit": "Celsius", "value": 21.5, "place": "Hall of the turbines"}
        text = json.dumps({"object": thing}, separators=(",", ":")).encode()
        topic = f"coaty/3/-/CHN:{CHANNEL}/{id}"
        address, port = broker
        publisher = Publisher(port, address)
        packet = lambda number: publish(topic, text.replace(b"@", b"%d/%d" % (agent, number)))  # noqa: E731
        start = time.monotonic()
        while not self._is_finishing:
            due = int((time.monotonic() - start) * self.rate / len(self.counts)) + 1 - self.counts[agent]
            if due > 0:
                publisher.send(b"".join(packet(self.counts[agent] + number) for number in range(due)))
                self.counts[agent] += due
            time.sleep(BATCH)
        number = self.counts[agent]
        while not self._has_ended:
            publisher.send(packet(number))
            number += 1
            time.sleep(1 / TRICKLE)
        publisher.finish()


class Observer:
    """Counts the events of a subscription, and resumes from its last cursor when its connection ends.

    A missing event must be covered by a gap before the next event of its agent.
    """

    def __init__(self, host, transport="ws", name=None):
        self.host = host
        self.transport = transport
        self.name = name or f"{transport} at {host}"
        self.is_ready = False
        self.cursor = None
        #: The highest number by agent.
        self.last = {}
        self.received = self.lost = self.repeated = self.gaps = 0
        #: Events that the gateway delivered again after a gap.
        self.repeated_after_gap = 0
        #: Seconds from the end of a connection to the next event, and whether a gap was reported between them.
        self.resumes = []
        self.example = ""
        self.unexpected = []
        # The time when the connection has ended, until the next event.
        self._ended = None
        self._has_gap = False
        # The last number by agent, which is lower than the highest if events before a gap were delivered again.
        self._position = {}
        # Events in gaps, and the agents whose next event they may precede.
        self._covered = 0
        self._open = set()

    def has(self, counts):
        """Returns whether the observer has an event after each agent's last one, or this one."""
        return all(self.last.get(agent, -1) >= count - 1 for agent, count in enumerate(counts))

    def take(self, data):
        found = NUMBER.search(data)
        if found:
            self.cursor = found[1].decode()
            return self._take_number(int(found[2]), int(found[3]))
        message = json.loads(data)
        self.cursor = message.get("cursor", self.cursor)
        match message["op"]:
            case "ok":
                self.is_ready = True
            case "gap":
                self.gaps += 1
                self._has_gap = True
                self._covered += float("inf") if message.get("dropped") is None else message["dropped"]
                self._open = set(self.last)
            case "error" | "done":
                raise Refused(f"{message['op']} {message.get('reason') or message.get('type', '').rpartition(':')[2]}")
            case _:
                self.unexpected.append(data.decode(errors="replace")[:200])

    def _take_number(self, agent, number):
        if self._ended:
            self.resumes.append((time.monotonic() - self._ended, self._has_gap))
            self._ended = None
        self.received += 1
        is_after_gap = agent in self._open
        self._open.discard(agent)
        last, position = self.last.get(agent), -1 if is_after_gap else self._position.get(agent, -1)
        if number <= position:
            self.repeated += 1
            self.example = f"agent {agent}: {number} after {position}"
            return
        self._position[agent] = number
        # The first event follows those before the subscription.
        if last is not None and number <= last:
            self.repeated_after_gap += 1
            return
        if last is not None and (missing := number - last - 1):
            covered = min(missing, self._covered) if is_after_gap else 0
            self._covered -= covered
            if missing > covered:
                self.lost += missing - covered
                self.example = f"agent {agent}: {number} after {last}, with {covered} of {missing} in a gap"
        if not self._open:
            self._covered = 0
        self.last[agent] = number

    # MARK: In the thread of the observers

    async def run(self):
        while True:
            try:
                await (self._read_websocket() if self.transport == "ws" else self._read_event_stream())
            except (OSError, EOFError, Refused, TimeoutError) as error:
                # A 503 comes from haproxy or a gateway that stops.
                if isinstance(error, Refused) and not str(error).startswith(("503", "close 4000")):
                    self.unexpected.append(str(error))
            if not self._ended:
                self._ended, self._has_gap = time.monotonic(), False
            await asyncio.sleep(PAUSE)

    @contextlib.asynccontextmanager
    async def _connect(self, data, expected):
        source, writer = await asyncio.open_connection(self.host, 8080, limit=4 << 20)
        with contextlib.closing(writer):
            writer.write(data)
            async with asyncio.timeout(10):
                status, headers = await read_head(source)
                if status != expected:
                    raise Refused(outcome(status, await source.read(int(headers.get("content-length", 0)))))
            yield source, writer

    async def _read_websocket(self):
        since = {"since": self.cursor} if self.cursor else {}
        async with self._connect(handshake(), 101) as (source, writer):
            writer.write(frame({"op": "subscribe", "id": "s", **EVENT, "buffer": BUFFER, **since}))
            data = b""
            while part := await source.read(1 << 18):
                data += part
                start = 0
                while (bounds := message_bounds(data, start)) and bounds[1] <= len(data):
                    opcode, payload = data[start] & 15, data[slice(*bounds)]
                    start = bounds[1]
                    if opcode == 1:
                        self.take(payload)
                    elif opcode == 9:
                        writer.write(frame(payload, 10))
                    elif opcode == 8:
                        raise Refused(f"close {int.from_bytes(payload[:2], 'big')}")
                data = data[start:]

    async def _read_event_stream(self):
        since = {"since": self.cursor} if self.cursor else {}
        parameters = {key: value for key, value in EVENT.items() if key != "event"} | {"buffer": str(BUFFER)} | since
        async with self._connect(request("GET", target("/v1/sse/channel", **parameters)), 200) as (source, _):
            text = b""
            while size := int((await source.readuntil(b"\r\n")).split(b";")[0], 16):
                text += (await source.readexactly(size + 2))[:-2]
                *lines, text = text.split(b"\n")
                for line in lines:
                    if line.startswith(b"data:"):
                        self.take(line[5:])


def message_bounds(data, start):
    """Returns where the payload of the WebSocket frame at an offset begins and ends, or None if that is not known yet."""
    if len(data) < start + 2:
        return None
    length, begin = data[start + 1] & 127, start + 2
    if length > 125:
        size = 2 if length == 126 else 8
        if len(data) < begin + size:
            return None
        length, begin = int.from_bytes(data[begin : begin + size], "big"), begin + size
    return begin, begin + length


class Observers:
    """A thread in which observers run."""

    def __init__(self, observers):
        self.observers = observers
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._serve, daemon=True)

    def start(self):
        self._thread.start()

    def end(self):
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._main.cancel)
        self._thread.join(5)

    def _serve(self):
        asyncio.set_event_loop(self._loop)
        self._main = self._loop.create_task(self._run())
        with contextlib.suppress(asyncio.CancelledError):
            self._loop.run_until_complete(self._main)

    async def _run(self):
        await asyncio.gather(*(observer.run() for observer in self.observers))
