"""A proxy that ends event streams after their first bytes, for a client that waits for the end of a body.

All other data is forwarded unchanged, malformed requests included.
"""

import contextlib
import random
import socket
import threading

# Seconds of silence after which a stream is ended. Its first bytes may arrive in pieces.
SILENCE = 0.05
# Seconds for which an unfinished upload is read after its response, so that a reset does not discard the response.
LINGERING = 5
LAST_CHUNK = b"0\r\n\r\n"


def random_address():
    """Returns a random loopback address. The gateway throttles failed authentications by address, and many of them are intended."""
    return ".".join(["127", *(str(random.randrange(1, 255)) for _ in range(3))])


class EventStreamProxy:
    """Listens on a free port of the loopback interface, in front of the server on `upstream_port`."""

    def __init__(self, upstream_port):
        self.upstream_port = upstream_port
        # Number of event streams that were forwarded.
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
        upstream, source = ("127.0.0.1", self.upstream_port), (random_address(), 0)
        with client, contextlib.suppress(OSError), socket.create_connection(upstream, source_address=source) as server:
            for each in (client, server):
                # Head and body are sent separately, so Nagle's algorithm would delay the body.
                each.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            requests = threading.Thread(target=self.forward_requests, args=(client, server), daemon=True)
            requests.start()
            with contextlib.suppress(OSError):
                self.forward_responses(server, client)
            client.shutdown(socket.SHUT_WR)
            with contextlib.suppress(OSError):
                server.shutdown(socket.SHUT_RDWR)
            requests.join(LINGERING)

    def forward_requests(self, client, server):
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

    def forward_responses(self, server, client):
        """Forwards responses. Returns after the first bytes of an event stream, or when the server closes the connection."""
        while data := server.recv(65536):
            client.sendall(data)
            # The head arrives in one piece, and the client does not pipeline requests.
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
