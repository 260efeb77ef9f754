"""An HTTP client of the gateway, with event streams and WebSockets, over which a test sets its address and its certificate authority."""

import base64
import http.client
import json
import os
import socket
import ssl
import time
import urllib.parse

from checks import Failed, require

# The longest wait for a response or an event, in seconds.
PATIENCE = 15


class Client:
    """A client of the gateway at `url`. `address` is the address of this machine from which it connects. `server` is the address to
    which it connects, if it is another one than in `url`, as behind the address translation of a container engine."""

    def __init__(self, url, *, token=None, authority=None, address="127.0.0.1", host=None, server=None):
        parts = urllib.parse.urlsplit(url)
        self.name, self.port, self.token, self.address = parts.hostname, parts.port, token, address
        self.host, self.server = host or self.name, server or self.name
        self.context = ssl.create_default_context(cafile=str(authority)) if parts.scheme == "https" else None
        self.port = self.port or (443 if self.context else 80)

    def connect(self):
        connection = socket.create_connection((self.server, self.port), PATIENCE, (self.address, 0))
        return self.context.wrap_socket(connection, server_hostname=self.name) if self.context else connection

    def fields(self, more=()):
        fields = {"Host": self.host} | ({"Authorization": f"Bearer {self.token}"} if self.token else {})
        return fields | dict(more)

    def request(self, method, path, body=None, **fields):
        """Returns the status, the header fields and the body of a response."""
        data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        connection = http.client.HTTPConnection(self.name, self.port)
        connection.sock = self.connect()
        try:
            more = {name.replace("_", "-"): value for name, value in fields.items()}
            if data is not None:
                more = {"Content-Type": "application/json"} | more
            connection.request(method, path, data, self.fields(more))
            response = connection.getresponse()
            return response.status, response.headers, response.read()
        finally:
            connection.close()

    def get(self, path):
        """Returns the JSON of a response with the status 200."""
        status, _, body = self.request("GET", path)
        require(status == 200, f"{path}: status {status}: {body[:300]!r}")
        return json.loads(body)

    def stream(self, path):
        return Stream(self, path)

    def socket(self):
        return WebSocket(self)

    def publish(self, channel, name, size=0):
        """Publishes an object of a channel. `size` is the size of an additional property."""
        thing = {"coreType": "CoatyObject", "objectType": "com.example.Deploy", "objectId": "5a9c1f6e-3b52-4d0a-8f6e-2f6f0a3c7d11"}
        thing |= {"name": name} | ({"filling": "x" * size} if size else {})
        status, _, body = self.request("POST", f"/v1/channel/{channel}", {"object": thing})
        require(status == 202, f"the publication gets status {status}: {body[:300]!r}")


class Stream:
    """An event stream (Server-Sent Events)."""

    def __init__(self, client, path):
        self.connection = client.connect()
        head = "".join(f"{name}: {value}\r\n" for name, value in client.fields().items())
        self.connection.sendall(f"GET {path} HTTP/1.1\r\n{head}Accept: text/event-stream\r\n\r\n".encode())
        self.text = b""
        self.wait_for(b"event: ok")
        require(self.text.startswith(b"HTTP/1.1 200"), f"the stream does not begin: {self.text[:300]!r}")

    def wait_for(self, text, timeout=PATIENCE):
        """Reads until the text has arrived."""
        end = time.monotonic() + timeout
        while text not in self.text:
            self.connection.settimeout(max(0.01, end - time.monotonic()))
            try:
                part = self.connection.recv(65536)
            except TimeoutError:
                raise Failed(f"{text!r} does not arrive within {timeout} s; the stream ends in {self.text[-300:]!r}") from None
            if not part:
                raise Failed(f"the stream ends: {self.text[-300:]!r}")
            self.text += part

    def close(self):
        self.connection.close()


class WebSocket:
    """A connection to /v1/ws, authenticated by its first frame as in a browser."""

    def __init__(self, client):
        self.connection = client.connect()
        self.connection.settimeout(PATIENCE)
        self.received = b""
        key = base64.b64encode(os.urandom(16)).decode()
        self.connection.sendall(
            f"GET /v1/ws HTTP/1.1\r\nHost: {client.host}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            f"Sec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Protocol: coaty.v1\r\n\r\n".encode()
        )
        head = self._read_head()
        require(head.startswith(b"HTTP/1.1 101 "), f"the handshake gets {head[:300]!r}")
        if client.token:
            self.send({"op": "authenticate", "id": "a", "token": client.token})
            self.wait_for("ok", id="a")

    def send(self, frame):
        data = json.dumps(frame).encode()
        length = bytes([0x80 | len(data)]) if len(data) < 126 else bytes([0xFE]) + len(data).to_bytes(2, "big")
        # A masking key of zeros is valid, and leaves the payload unchanged.
        self.connection.sendall(b"\x81" + length + bytes(4) + data)

    def wait_for(self, op, **members):
        """Reads frames until one has this operation and these members. Returns it."""
        while True:
            opcode, payload = self._read_frame()
            if opcode == 9:
                self.connection.sendall(bytes([0x8A, 0x80 | len(payload)]) + bytes(4) + payload)
            require(opcode != 8, f"the WebSocket closes: {payload!r}")
            frame = json.loads(payload) if opcode == 1 else {}
            require(frame.get("op") != "error", f"the gateway reports {frame}")
            if frame.get("op") == op and members.items() <= frame.items():
                return frame

    def _read(self, count):
        while len(self.received) < count:
            part = self.connection.recv(65536)
            require(part, "the WebSocket ends without a close frame")
            self.received += part
        data, self.received = self.received[:count], self.received[count:]
        return data

    def _read_head(self):
        head = b""
        while not head.endswith(b"\r\n\r\n"):
            head += self._read(1)
        return head

    def _read_frame(self):
        first, length = self._read(2)
        if length in (126, 127):
            length = int.from_bytes(self._read(2 if length == 126 else 8), "big")
        return first & 0x0F, self._read(length)

    def close(self):
        self.connection.close()
