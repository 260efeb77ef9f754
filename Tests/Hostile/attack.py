#!/usr/bin/env python3
"""Runs the attack of one row: attack.py ROW JSON

The JSON object has the ports `gateway` and `broker`, the duration in `seconds`, the number of `addresses` to attack from, the `parameters`
of the row, and the control port `trickle` of the trickling broker if the row needs it.
When the attack is over, prints a JSON object with the counted replies to the attacker, and the notes and failures of the row.
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

# Number of connections that are opened before the first response is read.
BATCH = 64
# The smallest receive buffer. If a client with it does not read, its data is queued in the gateway and not in the kernel.
SMALL_BUFFER = 4096


class Attack:
    """The context of an attack: the ports, the end time, and the counted outcomes."""

    def __init__(self, gateway, broker, seconds, addresses=1, trickle=None, refusing=None, parameters=None):
        self.gateway = gateway
        self.broker = broker
        #: Control port of the trickling broker, for rows that have one.
        self.trickle = trickle
        #: Which broker of `refusing.py` the gateway has, if it is one of them.
        self.refusing = refusing
        self.addresses = [f"127.0.{1 + number // 250}.{1 + number % 250}" for number in range(addresses)]
        self.seconds = seconds
        self.start = time.monotonic()
        self.outcomes = collections.Counter()
        self.notes = []
        self.failures = []
        self.held = []

    @property
    def left(self):
        """Seconds until the attack ends."""
        return self.start + self.seconds - time.monotonic()

    def note(self, text):
        """Adds a note to the report of the row."""
        self.notes.append(text)

    def fail(self, text):
        """Fails the row, for a reason that the harness does not check by itself."""
        self.failures.append(text)

    def connect(self, number=0, **options):
        """Connects to the gateway. Connections with consecutive numbers use the addresses round-robin."""
        return Client(self.gateway, self.addresses[number % len(self.addresses)], **options)

    def publisher(self):
        return Publisher(self.broker)

    @contextlib.contextmanager
    def counting_errors(self):
        """Counts the errors of a connection as outcomes, instead of raising them."""
        try:
            yield
        except Closed as closed:
            self.outcomes[str(closed)] += 1
        except TimeoutError:
            self.outcomes["no answer"] += 1
        except OSError as error:
            self.outcomes[type(error).__name__] += 1

    def ask(self, data, number=0, timeout=wire.TIMEOUT):
        """Sends a request on a new connection. Returns the status and the body, or None if there is no response."""
        with self.counting_errors(), self.connect(number, timeout=timeout) as client:
            client.send(data)
            status, body = client.response()
            self.outcomes[outcome(status, body)] += 1
            return status, body
        return None

    def observe(self, data, timeout=wire.TIMEOUT):
        """Sends a request from the address of the well-behaved client. Returns the status and the body, or None and the error."""
        try:
            with Client(self.gateway, timeout=timeout) as client:
                client.send(data)
                return client.response()
        except (OSError, Closed) as error:
            return None, str(error) or type(error).__name__

    def open_many(self, count, first, **options):
        """Opens connections, sends `first` on each (bytes, or a function of its number), and reads the head of the response.

        Returns the clients that got a success status. All outcomes are counted.
        """
        clients = []
        for begin in range(0, count, BATCH):
            if self.left <= 0:
                self.note(f"only {begin} of {count} connections opened in time")
                break
            batch = []
            for number in range(begin, min(begin + BATCH, count)):
                with self.counting_errors():
                    client = self.connect(number, **options)
                    self.held.append(client)
                    client.send(first(number) if callable(first) else first)
                    batch.append(client)
            for client in batch:
                with self.counting_errors():
                    status, headers = client.head()
                    body = client._take(int(headers.get("content-length", 0))) if status >= 300 else b""
                    self.outcomes[outcome(status, body)] += 1
                    if status < 300:
                        clients.append(client)
        return clients

    def open_websocket(self):
        """Opens a WebSocket on `/v1/ws`. Raises `Closed` if the gateway refuses it."""
        clients = self.open_websockets(1)
        if not clients:
            raise Closed("the refusal of its connection")
        return clients[0]

    def open_websockets(self, count, first_frame=None, **options):
        """Opens WebSockets on `/v1/ws`. With `first_frame` (bytes, or a function of a number), sends it on each and reads the reply.

        Returns the clients that got a reply.
        """
        clients = self.open_many(count, handshake(), **options)
        if first_frame is None:
            return clients
        answered = []
        for begin in range(0, len(clients), BATCH):
            for number, client in enumerate(clients[begin : begin + BATCH], begin):
                with self.counting_errors():
                    client.send(first_frame(number) if callable(first_frame) else first_frame)
            for client in clients[begin : begin + BATCH]:
                if self.left <= 0:
                    break
                with self.counting_errors():
                    self.count_reply(client.message())
                    answered.append(client)
        return answered

    def count_reply(self, data):
        """Counts the reply to a frame. Returns it as JSON."""
        message = json.loads(data)
        text = message["op"]
        if text == "error":
            text += f" {message['status']} {message['type'].rpartition(':')[2]}"
        self.outcomes[text] += 1
        return message

    def hold(self, seconds=None):
        """Waits until the attack ends, or for at most `seconds`."""
        time.sleep(max(0, self.left if seconds is None else min(seconds, self.left)))

    def count_closed(self, clients):
        """Counts the connections that the gateway has closed by now."""
        if closed := wire.closed_count(clients):
            self.outcomes["connection ended"] += closed


def main():
    from rows import ROWS

    name, options = sys.argv[1], json.loads(sys.argv[2])
    row = ROWS[name]
    attack = Attack(**options)
    # SIGTERM ends an attack that takes too long. The outcomes until then are reported.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    try:
        row.run(attack, **(row.parameters | (options.get("parameters") or {})))
    except SystemExit:
        attack.note("the attack was ended before it was complete")
    except (OSError, Closed) as error:
        attack.outcomes[f"attack ended by {str(error) or type(error).__name__}"] += 1
    usage = resource.getrusage(resource.RUSAGE_SELF)
    report = {"outcomes": attack.outcomes, "notes": attack.notes, "failures": attack.failures, "cpu": usage.ru_utime + usage.ru_stime}
    print(json.dumps(report), flush=True)
    # Skips closing thousands of sockets one by one.
    os._exit(0)


if __name__ == "__main__":
    main()
