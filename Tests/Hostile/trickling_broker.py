#!/usr/bin/env python3
"""A broker that can announce a large message and send it slowly: trickling_broker.py BROKER-PORT

It passes MQTT on between its clients and a real broker. It prints `ready PORT CONTROL-PORT`. A line `SIZE SECONDS` at the control port
makes it insert a PUBLISH packet with a payload of SIZE bytes into what its oldest client receives, evenly over some seconds;
what the broker sends meanwhile comes behind it. The answer is a line with the number of bytes sent, and how it ended.
"""

import contextlib
import queue
import socket
import sys
import threading
import time

from wire import mqtt_packet_length, publish_head

TOPIC = "coaty/3/-/CHN:innocent/0b1e6d0a-9a55-4c6c-b0a4-8d1f6f8f4a29"
# A client that has not read anything for as long is taken to have stopped reading.
SILENCE = 10


def trickle(control_port, size, seconds):
    """Makes the broker send a message slowly. Returns the bytes sent, and how it ended."""
    with socket.create_connection(("127.0.0.1", control_port)) as control:
        control.sendall(f"{size} {seconds}\n".encode())
        sent, _, how = control.makefile().readline().strip().partition(" ")
        return int(sent or 0), how or "the trickling broker has ended"


class Link:
    """The connection of one client of the broker."""

    def __init__(self, client, upstream):
        self.client = client
        self.upstream = upstream
        self.orders = queue.Queue()
        self.is_open = True
        threading.Thread(target=self.pass_up, daemon=True).start()
        threading.Thread(target=self.pass_down, daemon=True).start()

    def pass_up(self):
        with contextlib.suppress(OSError):
            while data := self.client.recv(1 << 16):
                self.upstream.sendall(data)
        self.close()

    def pass_down(self):
        # The rest of the packet that is being passed on, and the beginning of one whose length is not known yet.
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
                # What is in `head` was sent before, and counts only for the length.
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
            self.client.settimeout(SILENCE)
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
    links = []

    def accept():
        while True:
            client, _ = listener.accept()
            upstream = socket.create_connection(("127.0.0.1", broker))
            for end in (client, upstream):
                end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            links.append(Link(client, upstream))

    threading.Thread(target=accept, daemon=True).start()
    print("ready", listener.getsockname()[1], control.getsockname()[1], flush=True)
    while True:
        order, _ = control.accept()
        with order:
            size, seconds = order.makefile().readline().split()
            link = next(link for link in links if link.is_open)
            answer = queue.Queue()
            link.orders.put((int(size), float(seconds), answer))
            order.sendall(answer.get().encode())


if __name__ == "__main__":
    main()
