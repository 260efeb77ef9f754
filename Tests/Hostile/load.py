#!/usr/bin/env python3
"""Publishes numbered events at a rate, and counts what two WebSockets receive: load.py GATEWAY-PORT BROKER-PORT RATE

A reader that gets a gap is counted as slow if more than LAG bytes are unread in its receive buffer at that time; otherwise it has kept up.

Prints a line of JSON every second. A line on standard input ends the publishing; the readers then catch up, and the last line is printed,
with `"last": true`.
"""

import json
import re
import sys
import threading
import time
import uuid

from well_behaved import CATCHING_UP
from wire import Client, Closed, Publisher, encoded, frame, handshake, pace, publish

READERS = 2
CHANNEL = "load"
# The largest `buffer`, because events for readers that keep up may still be queued for a moment.
BUFFER = 4096
LAG = 64 << 10
TOKEN = re.compile(rb'"op":"gap"[^}]*?"dropped":(\d+|null)|"number":(\d+) *[,}]|"cursor":"([^"]*)"')


class CountingReader:
    """Reads frames, and searches them for numbers and gaps. Parsing them would take ten times as long."""

    def __init__(self, port, address):
        self.port = port
        self.address = address
        self.last = -1
        self.received = self.lost = self.dropped = self.reconnects = 0
        # Events in gaps that were reported although the reader had kept up.
        self.dropped_in_time = 0
        self.endings = []
        self.is_ready = threading.Event()
        self._covered = 0
        self._is_in_time = True
        self._cursor = None
        threading.Thread(target=self._run, daemon=True).start()

    def _run(self):
        while True:
            try:
                with Client(self.port, self.address) as client:
                    self._read(client)
            except (OSError, Closed) as error:
                self.endings.append(str(error) or type(error).__name__)
            self.reconnects += 1
            time.sleep(0.5)

    def _read(self, client):
        client.send(handshake())
        status, _ = client.head()
        if status != 101:
            raise Closed(f"status {status}")
        subscription = {"op": "subscribe", "id": "s", "event": "channel", "channelId": CHANNEL, "buffer": BUFFER}
        if self._cursor:
            subscription["since"] = self._cursor
        client.send(frame(subscription))
        while True:
            self._take(client.message(), client)

    def _take(self, message, client):
        for gap, number, cursor in TOKEN.findall(message):
            if gap:
                self._covered += float("inf") if gap == b"null" else int(gap)
                self._is_in_time = client.unread() <= LAG
            elif number:
                self._take_number(int(number))
            else:
                self._cursor = cursor.decode()
        self.is_ready.set()

    def _take_number(self, number):
        if number <= self.last:
            return
        if missing := number - self.last - 1:
            covered = min(missing, self._covered)
            self.dropped += covered
            if self._is_in_time:
                self.dropped_in_time += covered
            self.lost += missing - covered
        self._covered = 0
        self.last = number
        self.received += 1


def main():
    gateway, broker, rate = map(int, sys.argv[1:])
    readers = [CountingReader(gateway, f"127.0.0.{2 + number}") for number in range(READERS)]
    for reader in readers:
        reader.is_ready.wait(30)
    has_ended = threading.Event()
    threading.Thread(target=lambda: (sys.stdin.readline(), has_ended.set()), daemon=True).start()
    thing = {"coreType": "CoatyObject", "objectType": "com.example.Load", "objectId": str(uuid.uuid4()), "name": "Load"}
    payload = encoded({"object": thing | {"unit": "Celsius", "value": 21.5, "place": "Hall of the turbines", "number": 1_000_000_000}})
    before, after = publish(f"coaty/3/-/CHN:{CHANNEL}/{uuid.uuid4()}", payload).split(b"1000000000")
    publisher = Publisher(broker)
    published = 0

    def report(**more):
        counts = [[reader.received, reader.lost, reader.dropped, reader.reconnects, reader.dropped_in_time] for reader in readers]
        endings = [reader.endings[-5:] for reader in readers]
        print(json.dumps({"published": published, "readers": counts, "endings": endings} | more), flush=True)

    reported = time.monotonic()
    for due in pace(rate, float("inf")):
        # Ten digits without leading zeros.
        numbers = range(published, published + due)
        publisher.send(b"".join([b"%b%-10d%b" % (before, number, after) for number in numbers]))
        published += due
        if time.monotonic() > reported + 1:
            report()
            reported += 1
        if has_ended.is_set():
            break
    deadline = time.monotonic() + CATCHING_UP
    while time.monotonic() < deadline and any(reader.last < published - 1 for reader in readers):
        time.sleep(0.05)
    report(last=True, late=[published - 1 - reader.last for reader in readers])


if __name__ == "__main__":
    main()
