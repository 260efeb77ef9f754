#!/usr/bin/env python3
"""Runs the attack of one row: attack.py ROW JSON

The JSON object has the ports `gateway` and `broker`, `seconds`, the number of `addresses` to attack from, the port `trickle` if the row
needs it, and `parameters` of the row.
Prints a JSON object when the attack is over: how often the attacker was told what, and what the row has observed.
"""

import collections
import contextlib
import json
import os
import resource
import signal
import sys
import time

import wire
from wire import Client, Closed, Publisher, handshake, outcome

# Connections that are opened before the first answer is read.
BATCH = 64
# The smallest receive buffer: a client that does not read holds little in the kernel, and what it is sent waits in the gateway.
SMALL_BUFFER = 4096


class Attack:
    """The context of an attack: how to reach the gateway, when to end, and what the attacker was told."""

    def __init__(self, gateway, broker, seconds, addresses=1, trickle=None, parameters=None):
        self.gateway = gateway
        self.broker = broker
        #: Control port of the trickling broker, for rows that have one.
        self.trickle = trickle
        self.addresses = [f"127.0.{1 + number // 250}.{1 + number % 250}" for number in range(addresses)]
        self.seconds = seconds
        self.start = time.monotonic()
        self.told = collections.Counter()
        self.notes = []
        self.failures = []
        self.held = []

    @property
    def left(self):
        """Seconds until the attack ends."""
        return self.start + self.seconds - time.monotonic()

    def note(self, text):
        """Notes what the row has observed."""
        self.notes.append(text)

    def fail(self, text):
        """Fails the row, because of what only this row can observe."""
        self.failures.append(text)

    def connect(self, number=0, **options):
        """Connects from the address that is the number's turn."""
        return Client(self.gateway, self.addresses[number % len(self.addresses)], **options)

    def publisher(self):
        return Publisher(self.broker)

    @contextlib.contextmanager
    def telling(self):
        """Counts how a connection ends, instead of raising it."""
        try:
            yield
        except Closed as closed:
            self.told[str(closed)] += 1
        except TimeoutError:
            self.told["no answer"] += 1
        except OSError as error:
            self.told[type(error).__name__] += 1

    def ask(self, data, number=0, patience=wire.PATIENCE):
        """Sends a request on a connection of its own. Returns the status and the body; None if there is no response."""
        with self.telling(), self.connect(number, patience=patience) as client:
            client.send(data)
            status, body = client.response()
            self.told[outcome(status, body)] += 1
            return status, body
        return None

    def observe(self, data, patience=wire.PATIENCE):
        """Sends a request from the innocent address. Returns the status and the body, or None and the kind of error."""
        try:
            with Client(self.gateway, patience=patience) as client:
                client.send(data)
                return client.response()
        except (OSError, Closed) as error:
            return None, str(error) or type(error).__name__

    def open_many(self, count, first, **options):
        """Opens connections, sends on each `first` (bytes, or a function of its number), and reads the head of the response.

        Returns the clients that were answered with success. What the others were told is counted.
        """
        clients = []
        for begin in range(0, count, BATCH):
            if self.left <= 0:
                self.note(f"only {begin} of {count} connections opened in time")
                break
            batch = []
            for number in range(begin, min(begin + BATCH, count)):
                with self.telling():
                    client = self.connect(number, **options)
                    self.held.append(client)
                    client.send(first(number) if callable(first) else first)
                    batch.append(client)
            for client in batch:
                with self.telling():
                    status, headers = client.head()
                    body = client._take(int(headers.get("content-length", 0))) if status >= 300 else b""
                    self.told[outcome(status, body)] += 1
                    if status < 300:
                        clients.append(client)
        return clients

    def open_websocket(self):
        """Opens a WebSocket on `/v1/ws`. Raises `Closed` if the gateway refuses it, which ends the attack."""
        clients = self.open_websockets(1)
        if not clients:
            raise Closed("the refusal of its connection")
        return clients[0]

    def open_websockets(self, count, first_frame=None, **options):
        """Opens WebSockets on `/v1/ws`. Sends a frame on each (bytes, or a function of its number), and reads the reply."""
        clients = self.open_many(count, handshake(), **options)
        if first_frame is None:
            return clients
        answered = []
        for begin in range(0, len(clients), BATCH):
            for number, client in enumerate(clients[begin : begin + BATCH], begin):
                with self.telling():
                    client.send(first_frame(number) if callable(first_frame) else first_frame)
            for client in clients[begin : begin + BATCH]:
                if self.left <= 0:
                    break
                with self.telling():
                    self.tell_frame(client.message())
                    answered.append(client)
        return answered

    def tell_frame(self, data):
        """Counts the reply to a frame. Returns it as JSON."""
        message = json.loads(data)
        text = message["op"]
        if text == "error":
            text += f" {message['status']} {message['type'].rpartition(':')[2]}"
        self.told[text] += 1
        return message

    def hold(self, seconds=None):
        """Waits until the attack ends, or some seconds."""
        time.sleep(max(0, self.left if seconds is None else min(seconds, self.left)))

    def count_closed(self, clients):
        """Counts connections that the gateway has ended by now."""
        if closed := wire.closed_count(clients):
            self.told["connection ended"] += closed


def main():
    from rows import ROWS

    name, options = sys.argv[1], json.loads(sys.argv[2])
    row = ROWS[name]
    attack = Attack(**options)
    # SIGTERM ends an attack that takes too long; what it was told until then counts.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    try:
        row.run(attack, **(row.parameters | (options.get("parameters") or {})))
    except SystemExit:
        attack.note("the attack was ended before it was complete")
    except (OSError, Closed) as error:
        attack.told[f"attack ended by {str(error) or type(error).__name__}"] += 1
    usage = resource.getrusage(resource.RUSAGE_SELF)
    report = {"told": attack.told, "notes": attack.notes, "failures": attack.failures, "cpu": usage.ru_utime + usage.ru_stime}
    print(json.dumps(report), flush=True)
    # Closing thousands of sockets one by one would only take time.
    os._exit(0)


if __name__ == "__main__":
    main()
