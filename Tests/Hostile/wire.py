"""HTTP, WebSocket and MQTT 3.1.1 over plain sockets. Requests and frames can be built before they are sent, to save processor time."""

import array
import base64
import contextlib
import fcntl
import functools
import json
import os
import re
import select
import socket
import ssl
import struct
import termios
import time
from urllib.parse import quote

# Seconds that a client waits for an answer.
TIMEOUT = 30
# The environment variable that makes all programs of the harness use TLS.
TLS = "HOSTILE_TLS"


@functools.cache
def tls_context():
    """Returns the TLS context for connections to the gateway, which trusts any certificate, or None without TLS."""
    if not os.environ.get(TLS):
        return None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


def encoded(value):
    """Returns a value as compact JSON."""
    return json.dumps(value, separators=(",", ":")).encode()


def request(method, path, body=None, *, media_type="application/json", close=False, **headers):
    """Returns the bytes of an HTTP request. A body that is not bytes is encoded as JSON."""
    lines = [f"{method} {path} HTTP/1.1", "Host: localhost"]
    if body is not None:
        body = body if isinstance(body, (bytes, bytearray)) else encoded(body)
        lines += [f"Content-Type: {media_type}", f"Content-Length: {len(body)}"]
    if close:
        lines.append("Connection: close")
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + (body or b"")


def target(path, **parameters):
    """Returns a path with a query. Values that are not strings are encoded as JSON."""
    pairs = (
        f"{name}={quote(value if isinstance(value, str) else json.dumps(value, separators=(',', ':')), safe='')}"
        for name, value in parameters.items()
    )
    return f"{path}?{'&'.join(pairs)}"


def handshake(path="/v1/ws"):
    """Returns the bytes of a WebSocket handshake."""
    key = base64.b64encode(b"0123456789abcdef").decode()
    fields = {"Connection": "Upgrade", "Upgrade": "websocket", "Sec_WebSocket_Version": 13, "Sec_WebSocket_Key": key}
    if path == "/v1/ws":
        fields["Sec_WebSocket_Protocol"] = "coaty.v1"
    return request("GET", path, **fields)


def frame(value, opcode=1):
    """Returns a WebSocket frame of a client. The masking key is zero, so that the payload is not changed."""
    payload = value if isinstance(value, (bytes, bytearray)) else encoded(value)
    length = len(payload)
    if length < 126:
        head = bytes([0x80 | opcode, 0x80 | length])
    elif length < 1 << 16:
        head = bytes([0x80 | opcode, 0x80 | 126]) + struct.pack(">H", length)
    else:
        head = bytes([0x80 | opcode, 0x80 | 127]) + struct.pack(">Q", length)
    return head + bytes(4) + payload


class Closed(Exception):
    """The gateway has closed the connection. `code` is that of the close frame, if there was one."""

    def __init__(self, how, code=None):
        super().__init__(f"{how} {code}" if code else how)


class Client:
    """One connection to the gateway, with blocking calls."""

    def __init__(self, port, address="127.0.0.1", *, host="127.0.0.1", receive_buffer=None, timeout=TIMEOUT):
        self.socket = socket.socket()
        self._received = bytearray()
        try:
            if receive_buffer:
                self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
            self.socket.settimeout(timeout)
            # IP_BIND_ADDRESS_NO_PORT: the kernel chooses the port at connect, so that there are enough for each address.
            self.socket.setsockopt(socket.IPPROTO_IP, 24, 1)
            self.socket.bind((address, 0))
            self.socket.connect((host, port))
            self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if context := tls_context():
                self.socket = context.wrap_socket(self.socket)
        except OSError:
            self.socket.close()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self.socket.close()

    def send(self, data):
        self.socket.sendall(data)

    def drop_received(self):
        """Reads and discards everything that the gateway has sent by now."""
        self.socket.settimeout(0)
        with contextlib.suppress(BlockingIOError, ssl.SSLWantReadError):
            while self.socket.recv(1 << 20):
                pass

    def unread(self):
        """Returns the number of received bytes that were not read yet. With TLS, they are the bytes of its records."""
        pending = array.array("i", [0])
        fcntl.ioctl(self.socket, termios.FIONREAD, pending)
        return len(self._received) + pending[0]

    def _fill(self, count):
        while len(self._received) < count:
            part = self.socket.recv(max(65536, min(count - len(self._received), 1 << 20)))
            if not part:
                raise Closed("closed")
            self._received += part

    def _take(self, count):
        self._fill(count)
        data = bytes(self._received[:count])
        del self._received[:count]
        return data

    def head(self):
        """Reads the head of a response. Returns the status and the header fields, with names in lower case."""
        while (end := self._received.find(b"\r\n\r\n")) < 0:
            self._fill(len(self._received) + 1)
        lines = self._take(end + 4).decode("latin-1").split("\r\n")
        status = int(lines[0].split(" ")[1])
        return status, {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines[1:] if line)}

    def response(self):
        """Reads a whole response. Returns the status and the body."""
        status, headers = self.head()
        if headers.get("transfer-encoding") == "chunked":
            body = b""
            while True:
                while (end := self._received.find(b"\r\n")) < 0:
                    self._fill(len(self._received) + 1)
                size = int(self._take(end + 2).split(b";")[0], 16)
                body += self._take(size + 2)[:-2]
                if size == 0:
                    return status, body
        return status, self._take(int(headers.get("content-length", 0)))

    def message(self):
        """Reads a WebSocket message. Returns its payload; raises `Closed` for a close frame."""
        payload = b""
        while True:
            first, length = self._take(2)
            if length == 126:
                (length,) = struct.unpack(">H", self._take(2))
            elif length == 127:
                (length,) = struct.unpack(">Q", self._take(8))
            part = self._take(length)
            opcode = first & 15
            if opcode == 8:
                raise Closed("close", int.from_bytes(part[:2], "big"))
            if opcode == 9:
                self.send(frame(part, 10))
            elif opcode < 3:
                payload += part
                if first & 0x80:
                    return payload


def outcome(status, body):
    """Summarizes a response: returns its status and the type of a problem."""
    found = re.search(rb'"type":"urn:coaty-gateway:problem:([a-z-]+)"', body[:2000])
    return f"{status} {found[1].decode()}" if found else str(status)


# MARK: MQTT


def mqtt_connect(port, client_id=b"", timeout=TIMEOUT, address="127.0.0.1"):
    """Opens an MQTT connection without keepalive. Returns its socket."""
    connection = socket.create_connection((address, port), timeout)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    rest = b"\x00\x04MQTT\x04\x02\x00\x00" + len(client_id).to_bytes(2, "big") + client_id
    connection.sendall(bytes([0x10, len(rest)]) + rest)
    answer = connection.recv(4)
    if answer != bytes([0x20, 2, 0, 0]):
        connection.close()
        raise ConnectionError(f"the broker refused the connection: {answer!r}")
    return connection


def remaining_length(length):
    encoded_length = bytearray()
    while True:
        encoded_length.append((length & 0x7F) | (0x80 if length > 0x7F else 0))
        length >>= 7
        if length == 0:
            return bytes(encoded_length)


def publish_head(topic, payload_length):
    topic = topic.encode()
    return b"\x30" + remaining_length(2 + len(topic) + payload_length) + len(topic).to_bytes(2, "big") + topic


def publish(topic, payload):
    """Returns a PUBLISH packet of QoS 0."""
    return publish_head(topic, len(payload)) + payload


def subscribe(topic):
    """Returns a SUBSCRIBE packet with one topic filter."""
    rest = b"\x00\x01" + len(topic.encode()).to_bytes(2, "big") + topic.encode() + b"\x00"
    return b"\x82" + remaining_length(len(rest)) + rest


def mqtt_packet_length(data, start=0):
    """Returns the length of the packet that begins at an offset, or None if `data` ends before the length is known."""
    length, shift = 0, 0
    for index in range(start + 1, min(start + 5, len(data))):
        length |= (data[index] & 0x7F) << shift
        shift += 7
        if data[index] < 0x80:
            return index + 1 - start + length
    return None


async def mqtt_packets(source):
    """Yields each packet that arrives at a stream, until the stream ends."""
    data = b""
    while part := await source.read(1 << 16):
        data += part
        start = 0
        while (length := mqtt_packet_length(data, start)) and len(data) >= start + length:
            yield data[start : start + length]
            start += length
        data = data[start:]


class Publisher:
    """Publishes directly at the broker, as an agent does."""

    def __init__(self, port, address="127.0.0.1"):
        self._socket = mqtt_connect(port, address=address)

    def send(self, packets):
        self._socket.sendall(packets)

    def finish(self):
        """Disconnects. Returns when the broker has read all packets."""
        self._socket.sendall(bytes([0xE0, 0]))
        self._socket.recv(1)
        self._socket.close()


def pace(rate, seconds):
    """Yields every 10 ms how many items are due, at `rate` items per second, for some seconds."""
    start = time.monotonic()
    done = 0
    while (passed := time.monotonic() - start) < seconds:
        due = int((passed + 0.01) * rate)
        if due > done:
            yield due - done
            done = due
        time.sleep(max(0, start + done / rate - time.monotonic()) if rate < 100 else 0.01)


def closed_count(clients):
    """Returns how many of the connections the gateway has closed."""
    poll = select.poll()
    for client in clients:
        poll.register(client.socket, select.POLLRDHUP)
    return len(poll.poll(0))
