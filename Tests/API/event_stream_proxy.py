"""A proxy that ends event streams after what comes first, so that a client that waits for the end of a body gets one.

Everything else passes byte by byte, malformed requests too.
"""

import contextlib
import random
import socket
import threading

# For how long a stream may be silent after its first bytes, in seconds: its beginning may come in pieces.
SILENCE = 0.05
# Seconds that an unfinished upload is read on for when it has been answered, so that no reset overtakes the answer.
LINGERING = 5
LAST_CHUNK = b"0\r\n\r\n"


def some_address():
    """One of the loopback's. The gateway throttles failed authentications by address, and there are many on purpose."""
    return ".".join(["127", *(str(random.randrange(1, 255)) for _ in range(3))])


class EventStreamProxy:
    """Listens on a free port of the loopback, in front of the server on `upstream_port`."""

    def __init__(self, upstream_port):
        self.upstream_port = upstream_port
        # How many event streams have passed.
        self.streams = 0
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self.serve, args=(client,), daemon=True).start()

    def serve(self, client):
        upstream, source = ("127.0.0.1", self.upstream_port), (some_address(), 0)
        with client, contextlib.suppress(OSError), socket.create_connection(upstream, source_address=source) as server:
            for each in (client, server):
                # Head and body come apart, and must not wait for each other.
                each.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            asking = threading.Thread(target=self.ask, args=(client, server), daemon=True)
            asking.start()
            with contextlib.suppress(OSError):
                self.answer(server, client)
            client.shutdown(socket.SHUT_WR)
            with contextlib.suppress(OSError):
                server.shutdown(socket.SHUT_RDWR)
            asking.join(LINGERING)

    def ask(self, client, server):
        is_read = True
        with contextlib.suppress(OSError):
            while data := client.recv(65536):
                try:
                    if is_read:
                        server.sendall(data)
                except OSError:
                    is_read = False
        with contextlib.suppress(OSError):
            server.shutdown(socket.SHUT_WR)

    def answer(self, server, client):
        """Passes responses on. Returns at the end of an event stream's beginning, else when the server ends."""
        while data := server.recv(65536):
            client.sendall(data)
            # A head comes in one piece, and a client that does not pipeline reads one response after the other.
            head, _, body = data.partition(b"\r\n\r\n")
            if head.startswith(b"HTTP/1.1 200") and b"\r\ncontent-type: text/event-stream" in head.lower():
                self.streams += 1
                self.end_stream(body, server, client)
                return

    def end_stream(self, body, server, client):
        while True:
            server.settimeout(SILENCE if body else None)
            try:
                more = server.recv(65536)
            except TimeoutError:
                client.sendall(LAST_CHUNK)
                return
            if not more:
                return
            body += more
            client.sendall(more)
