#!/usr/bin/env python3
"""A broker that can announce a large message and send it slowly: trickling_broker.py BROKER-PORT

It forwards MQTT between its clients and a real broker. It prints `ready PORT CONTROL-PORT`. A line `SIZE SECONDS` on the control port makes
it send a PUBLISH packet with a payload of SIZE bytes to its oldest client, evenly over SECONDS; packets of the broker follow after it.
The answer is a line with the number of bytes sent and the outcome.
"""

import contextlib
import queue
import socket
import sys
import threading
import time

from wire import mqtt_packet_length, publish_head

TOPIC = "coaty/3/-/CHN:well-behaved/0b1e6d0a-9a55-4c6c-b0a4-8d1f6f8f4a29"
# Seconds without progress after which the client is considered to have stopped reading.
STALL = 10


def trickle(control_port, size, seconds):
    """Makes the broker send a message slowly. Returns the number of bytes sent and the outcome."""
    with socket.create_connection(("127.0.0.1", control_port)) as control:
        control.sendall(f"{size} {seconds}\n".encode())
        sent, _, how = control.makefile().readline().strip().partition(" ")
        return int(sent or 0), how or "the trickling broker has ended"


class Connection:
    """The connection of one client, and its connection to the broker."""

    def __init__(self, client, upstream):
        self.client = client
        self.upstream = upstream
        self.orders = queue.Queue()
        self.is_open = True
        threading.Thread(target=self.forward_up, daemon=True).start()
        threading.Thread(target=self.forward_down, daemon=True).start()

    def forward_up(self):
        with contextlib.suppress(OSError):
            while data := self.client.recv(1 << 16):
                self.upstream.sendall(data)
        self.close()

    def forward_down(self):
        # The number of bytes left of the current packet, and the first bytes of a packet whose length is not known yet.
        rest, head = 0, b""
        self.upstream.settimeout(0.05)
        with contextlib.suppress(OSError):
            while True:
                if rest == 0 and not head and not self.orders.empty():
                    self.insert(*self.orders.get())
                try:
                    data = self.upstream.recv(1 << 16)
                except TimeoutError:
                    continue
                if not data:
                    break
                self.client.sendall(data)
                data = head + data
                # `head` was already sent, and is only needed for the length.
                start = 0
                head = b""
                if rest:
                    start = min(rest, len(data))
                    rest -= start
                while rest == 0 and start < len(data):
                    length = mqtt_packet_length(data, start)
                    if length is None:
                        head = data[start:]
                        break
                    rest = max(0, start + length - len(data))
                    start = min(len(data), start + length)
        self.close()

    def insert(self, size, seconds, answer):
        sent, how = 0, "message sent whole"
        piece = b"x" * max(1, size // max(1, int(seconds * 50)))
        start = time.monotonic()
        try:
            self.client.settimeout(STALL)
            self.client.sendall(publish_head(TOPIC, size))
            while sent < size:
                part = piece[: size - sent]
                self.client.sendall(part)
                sent += len(part)
                time.sleep(max(0, start + seconds * sent / size - time.monotonic()))
        except TimeoutError:
            how = "gateway stopped reading"
        except OSError:
            how = "connection cut by the gateway"
        answer.put(f"{sent} {how}\n")

    def close(self):
        self.is_open = False
        for end in (self.client, self.upstream):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)


def main():
    broker = int(sys.argv[1])
    listener = socket.create_server(("127.0.0.1", 0), backlog=100)
    control = socket.create_server(("127.0.0.1", 0))
    connections = []

    def accept():
        while True:
            client, _ = listener.accept()
            upstream = socket.create_connection(("127.0.0.1", broker))
            for end in (client, upstream):
                end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            connections.append(Connection(client, upstream))

    threading.Thread(target=accept, daemon=True).start()
    print("ready", listener.getsockname()[1], control.getsockname()[1], flush=True)
    while True:
        order, _ = control.accept()
        with order:
            size, seconds = order.makefile().readline().split()
            connection = next(connection for connection in connections if connection.is_open)
            answer = queue.Queue()
            connection.orders.put((int(size), float(seconds), answer))
            order.sendall(answer.get().encode())


if __name__ == "__main__":
    main()
