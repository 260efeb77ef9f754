#!/usr/bin/env python3
"""A client that keeps to its limits and measures its latencies: well_behaved.py GATEWAY-PORT BROKER-PORT [EVENTS-PER-SECOND]

An agent publishes numbered events at the broker. Three readers count them: an event stream and a WebSocket at the gateway, and
an MQTT subscriber at the broker, which measures the delay of the broker itself. Every 100 ms, a WebSocket handshake, a ping frame, a
POST /v1/advertise and a GET /healthz are sent, without waiting for earlier answers, so that a stall is measured in full.

Prints a line of JSON every 250 ms: the worst latency of the last second, and how far the readers are behind. The line `report SECONDS` on
standard input ends the publishing; the readers then catch up, and a report is printed that covers everything since SECONDS on the
monotonic clock. With `report SECONDS now`, the report does not wait for the readers. The client stays connected until its input ends.
"""

import asyncio
import collections
import contextlib
import json
import socket
import sys
import time
import uuid

from wire import frame, handshake, mqtt_packets, outcome, publish, request, subscribe, target, tls_context

ADDRESS = "127.0.0.1"
CHANNEL = "well-behaved"
RATE = 200
# Seconds between two probes of a kind, and until a probe counts as unanswered.
INTERVAL = 0.1
TIMEOUT = 60
# Seconds that readers have at the end to receive queued events.
CATCHING_UP = 15
STATUS_INTERVAL = 0.25
# Seconds before a reader whose connection has ended connects again.
RECONNECT_PAUSE = 0.5
PROBES = ("handshake", "ping", "advertise", "healthz")


class Refused(Exception):
    """The gateway answered with an error."""


async def connect(port):
    reader, writer = await asyncio.open_connection(
        "127.0.0.1", port, local_addr=(ADDRESS, 0), limit=16 << 20, ssl=tls_context()
    )
    writer.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return reader, writer


async def read_head(reader):
    lines = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    return int(lines[0].split(" ")[1]), {
        name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines[1:] if line)
    }


async def read_response(reader):
    status, headers = await read_head(reader)
    body = await reader.readexactly(int(headers.get("content-length", 0)))
    if status >= 300:
        raise Refused(outcome(status, body))


async def open_websocket(port, path="/v1/ws"):
    reader, writer = await connect(port)
    try:
        writer.write(handshake(path))
        status, headers = await read_head(reader)
        if status != 101:
            raise Refused(outcome(status, await reader.read(int(headers.get("content-length", 0)))))
        return reader, writer
    except BaseException:
        writer.close()
        raise


async def read_message(reader, writer):
    """Returns the payload of a WebSocket text message, or None for a control frame."""
    first, length = await reader.readexactly(2)
    if length > 125:
        length = int.from_bytes(await reader.readexactly(2 if length == 126 else 8), "big")
    payload = await reader.readexactly(length)
    if first & 15 == 9:
        writer.write(frame(payload, 10))
    if first & 15 == 8:
        raise Refused(f"close {int.from_bytes(payload[:2], 'big')}")
    return payload if first & 15 == 1 else None


def summary(latencies):
    """Returns percentiles of latencies in seconds."""
    if not latencies:
        return None
    ordered = sorted(latencies)
    return {
        "count": len(ordered),
        "p50": ordered[len(ordered) // 2],
        "p99": ordered[min(len(ordered) - 1, int(len(ordered) * 0.99))],
        "max": ordered[-1],
    }


class Reader:
    """Counts the events of one subscription. A missing event must be covered by a gap at its position."""

    def __init__(self):
        self.last = -1
        self.cursor = None
        self.is_ready = asyncio.Event()
        self.latencies = []
        self.lost = self.gaps = self.dropped = self.late = self.repeated = self.reconnects = 0
        self.endings = collections.Counter()
        # Number of events in gaps since the last event; infinite if a gap does not report it.
        self._covered = 0

    def take_frame(self, data):
        message = json.loads(data)
        self.cursor = message.get("cursor", self.cursor)
        match message["op"]:
            case "ok":
                self.is_ready.set()
            case "gap":
                self.gaps += 1
                self._covered += float("inf") if message.get("dropped") is None else message["dropped"]
            case "event":
                self.take_event(message["data"]["object"])
            case other:
                raise Refused(f"{other} {message.get('reason') or message.get('type', '').rpartition(':')[2]}")

    def take_event(self, event):
        now = time.monotonic()
        number = event["number"]
        if number <= self.last:
            self.repeated += 1
            return
        self.skip_to(number)
        self.last = number
        self.latencies.append((event["time"], now - event["time"]))

    def skip_to(self, number):
        missing = number - self.last - 1
        covered = min(self._covered, missing)
        self.dropped += covered
        self.lost += missing - covered
        self._covered = 0

    def report(self, start, times):
        """Reports the events since `start`. `times` contains the publication time of every event."""
        now = time.monotonic()
        missing = times[self.last + 1 :]
        covered = int(min(self._covered, len(missing)))
        self.dropped += covered
        # Events after the last one that are in no gap may still be delivered, but too late. Their age counts as their latency.
        late = missing[covered:]
        self.late = len(late)
        latencies = self.latencies + [(published, now - published) for published in late]
        return {
            "latency": summary([latency for published, latency in latencies if published >= start]),
            "lost": self.lost,
            "late": self.late,
            "gaps": self.gaps,
            "dropped": self.dropped,
            "repeated": self.repeated,
            "reconnects": self.reconnects,
            "endings": self.endings,
        }

    async def run(self, read):
        """Reads, and resumes from the last cursor whenever the connection ends."""
        while True:
            try:
                await read(self)
                self.endings["closed"] += 1
            except (OSError, EOFError, Refused) as error:
                self.endings[str(error) if isinstance(error, Refused) else type(error).__name__] += 1
            self.reconnects += 1
            await asyncio.sleep(RECONNECT_PAUSE)


class WellBehavedClient:
    def __init__(self, gateway, broker, rate):
        self.gateway = gateway
        self.broker = broker
        self.rate = rate
        self.readers = {"sse": Reader(), "ws": Reader()}
        self.direct = Reader()
        #: Publication time of each event.
        self.times = []
        self.is_publishing = True
        # For each kind, start and latency of the probes that have an answer, or none within TIMEOUT.
        self.samples = {kind: [] for kind in PROBES}
        self.failures = {kind: collections.Counter() for kind in PROBES}
        self.pending = {kind: {} for kind in PROBES}
        self.lags = []
        self._pings = None
        self._agent = str(uuid.uuid4())
        self._advertise = request(
            "POST",
            "/v1/advertise",
            {"object": {"coreType": "CoatyObject", "objectType": "com.example.WellBehaved", "objectId": self._agent, "name": "Well-behaved"}},
        )
        self._healthz = request("GET", "/healthz")

    # MARK: Events

    async def read_event_stream(self, reader):
        since = {"since": reader.cursor} if reader.cursor else {}
        source, writer = await connect(self.gateway)
        with contextlib.closing(writer):
            writer.write(request("GET", target("/v1/sse/channel", channelId=CHANNEL, **since)))
            status, headers = await read_head(source)
            if status != 200:
                raise Refused(outcome(status, await source.read(int(headers.get("content-length", 0)))))
            text = b""
            while size := int((await source.readuntil(b"\r\n")).split(b";")[0], 16):
                text += (await source.readexactly(size + 2))[:-2]
                *lines, text = text.split(b"\n")
                for line in lines:
                    if line.startswith(b"data:"):
                        reader.take_frame(line[5:])

    async def read_websocket(self, reader):
        since = {"since": reader.cursor} if reader.cursor else {}
        source, writer = await open_websocket(self.gateway)
        with contextlib.closing(writer):
            writer.write(frame({"op": "subscribe", "id": "s", "event": "channel", "channelId": CHANNEL, **since}))
            while True:
                if data := await read_message(source, writer):
                    reader.take_frame(data)

    async def open_broker(self):
        source, writer = await asyncio.open_connection("127.0.0.1", self.broker)
        writer.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        writer.write(bytes([0x10, 12, 0, 4]) + b"MQTT" + bytes([4, 2, 0, 0, 0, 0]))
        await source.readexactly(4)
        return source, writer

    async def read_broker(self, reader):
        source, writer = await self.open_broker()
        with contextlib.closing(writer):
            writer.write(subscribe(f"coaty/3/-/CHN:{CHANNEL}/+"))
            async for packet in mqtt_packets(source):
                if packet[0] >> 4 == 9:
                    reader.is_ready.set()
                elif packet[0] >> 4 == 3:
                    reader.take_event(json.loads(packet[packet.index(b"{") :])["object"])

    async def publish(self):
        _, writer = await self.open_broker()
        topic = f"coaty/3/-/CHN:{CHANNEL}/{self._agent}"
        event = {"coreType": "CoatyObject", "objectType": "com.example.WellBehaved", "objectId": self._agent, "name": "Numbered"}
        start = time.monotonic()
        while self.is_publishing:
            due = start + len(self.times) / self.rate
            now = time.monotonic()
            if due > now:
                await asyncio.sleep(due - now)
                continue
            event |= {"number": len(self.times), "time": now}
            writer.write(publish(topic, json.dumps({"object": event}).encode()))
            self.times.append(now)
            await writer.drain()

    # MARK: Probes

    async def probe(self, kind, number, action):
        start = time.monotonic()
        self.pending[kind][number] = start
        try:
            async with asyncio.timeout(TIMEOUT):
                await action(number)
            self.samples[kind].append((start, time.monotonic() - start))
        except TimeoutError:
            self.failures[kind]["no answer"] += 1
            self.samples[kind].append((start, time.monotonic() - start))
        except (OSError, EOFError, Refused) as error:
            self.failures[kind][str(error) if isinstance(error, Refused) else type(error).__name__] += 1
        finally:
            del self.pending[kind][number]

    async def probe_handshake(self, _):
        _, writer = await open_websocket(self.gateway)
        writer.write(frame(b"\x03\xe8", 8))
        writer.close()

    async def probe_ping(self, number):
        connection = await self.ping_connection()
        answer = asyncio.get_running_loop().create_future()
        connection["answers"][str(number)] = answer
        connection["writer"].write(frame({"op": "ping", "id": str(number)}))
        await answer

    async def ping_connection(self):
        """Returns the connection for pings. Opens it if necessary."""
        if self._pings is None:
            self._pings = asyncio.ensure_future(self.open_ping_connection())
        try:
            return await asyncio.shield(self._pings)
        except (OSError, EOFError, Refused):
            self._pings = None
            raise

    async def open_ping_connection(self):
        reader, writer = await open_websocket(self.gateway)
        connection = {"writer": writer, "answers": {}}

        async def read():
            try:
                while True:
                    if data := await read_message(reader, writer):
                        connection["answers"].pop(json.loads(data)["id"]).set_result(None)
            except (OSError, EOFError, Refused) as error:
                self._pings = None
                writer.close()
                for answer in connection["answers"].values():
                    if not answer.done():
                        answer.set_exception(error)

        connection["reading"] = asyncio.ensure_future(read())
        return connection

    async def probe_http(self, data):
        # Uses a new connection each time, because the gateway divides its connections among threads.
        reader, writer = await connect(self.gateway)
        with contextlib.closing(writer):
            writer.write(data)
            await read_response(reader)

    async def repeat(self, kind, action):
        start = time.monotonic()
        number = 0
        tasks = set()
        while True:
            task = asyncio.ensure_future(self.probe(kind, number, action))
            tasks.add(task)
            task.add_done_callback(tasks.discard)
            number += 1
            await asyncio.sleep(max(0, start + number * INTERVAL - time.monotonic()))

    # MARK: Status and report

    def worst(self):
        """Returns the worst latency of the last second, including probes without an answer yet."""
        now = time.monotonic()
        ages = [now - start for pending in self.pending.values() for start in pending.values()]
        for samples in (*self.samples.values(), *(reader.latencies for reader in self.readers.values())):
            for start, latency in reversed(samples):
                if start + latency < now - 1:
                    break
                ages.append(latency)
        return max(ages, default=0)

    async def print_status(self):
        while True:
            due = time.monotonic() + STATUS_INTERVAL
            await asyncio.sleep(STATUS_INTERVAL)
            self.lags.append((due, max(0, time.monotonic() - due)))
            behind = len(self.times) - 1 - min(reader.last for reader in self.readers.values())
            print(json.dumps({"worst": self.worst(), "behind": behind, "published": len(self.times)}), flush=True)

    async def catch_up(self):
        deadline = time.monotonic() + CATCHING_UP
        while time.monotonic() < deadline:
            if all(reader.last == len(self.times) - 1 for reader in (*self.readers.values(), self.direct)):
                break
            await asyncio.sleep(0.05)

    def report(self, start):
        now = time.monotonic()
        probes = {}
        for kind in PROBES:
            unanswered = [now - time for time in self.pending[kind].values() if time >= start]
            latencies = [latency for time, latency in self.samples[kind] if time >= start]
            probes[kind] = {
                "latency": summary(latencies + unanswered),
                "unanswered": len([age for age in unanswered if age > 1]),
                "failures": self.failures[kind],
            }
        return {
            "published": len(self.times),
            "readers": {name: reader.report(start, self.times) for name, reader in self.readers.items()},
            "broker": self.direct.report(start, self.times),
            "probes": probes,
            "lag": summary([lag for time, lag in self.lags if time >= start]),
        }

    async def run(self):
        commands = asyncio.StreamReader()
        await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(commands), sys.stdin)
        tasks = [
            asyncio.ensure_future(self.readers["sse"].run(self.read_event_stream)),
            asyncio.ensure_future(self.readers["ws"].run(self.read_websocket)),
            asyncio.ensure_future(self.direct.run(self.read_broker)),
        ]
        async with asyncio.timeout(TIMEOUT):
            for reader in (*self.readers.values(), self.direct):
                await reader.is_ready.wait()
        publishing = asyncio.ensure_future(self.publish())
        tasks += [
            publishing,
            asyncio.ensure_future(self.print_status()),
            asyncio.ensure_future(self.repeat("handshake", self.probe_handshake)),
            asyncio.ensure_future(self.repeat("ping", self.probe_ping)),
            asyncio.ensure_future(self.repeat("advertise", lambda _: self.probe_http(self._advertise))),
            asyncio.ensure_future(self.repeat("healthz", lambda _: self.probe_http(self._healthz))),
        ]
        command = (await commands.readline()).decode().split()
        if command[:1] == ["report"]:
            self.is_publishing = False
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(publishing, 1)
            if command[2:] != ["now"]:
                await self.catch_up()
            print(json.dumps({"report": self.report(float(command[1]))}), flush=True)
            await commands.read()


if __name__ == "__main__":
    gateway, broker, *rate = map(int, sys.argv[1:])
    asyncio.run(WellBehavedClient(gateway, broker, *(rate or [RATE])).run())
