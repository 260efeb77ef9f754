"""A small MQTT 3.1.1 client with QoS 0, for checks and for requests in lockstep. It must not be used to generate load."""

import socket


def _text(value):
    data = value.encode()
    return len(data).to_bytes(2, "big") + data


class Client:
    def __init__(self, port, name, timeout=60):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=timeout)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.stream = self.socket.makefile("rb")
        self._send(0x10, _text("MQTT") + b"\x04\x02\x00\x00" + _text(name))
        self._expect(2)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stream.close()
        self.socket.close()

    def subscribe(self, topic):
        self._send(0x82, b"\x00\x01" + _text(topic) + b"\x00")
        self._expect(9)

    def publish(self, topic, payload):
        self._send(0x30, _text(topic) + payload)

    def receive(self):
        """Waits for a message. Returns its topic and payload."""
        body = self._expect(3)
        length = int.from_bytes(body[:2], "big")
        return body[2 : 2 + length].decode(), body[2 + length :]

    def _send(self, head, body):
        size, length = len(body), bytearray()
        while True:
            size, byte = divmod(size, 128)
            length.append(byte | (128 if size else 0))
            if not size:
                break
        self.socket.sendall(bytes([head]) + length + body)

    def _expect(self, kind):
        """Returns the next packet of a kind, and skips others."""
        while True:
            head = self._read(1)[0]
            size = shift = 0
            while True:
                byte = self._read(1)[0]
                size |= (byte & 127) << shift
                shift += 7
                if byte < 128:
                    break
            body = self._read(size)
            if head >> 4 == kind:
                return body

    def _read(self, count):
        data = self.stream.read(count)
        if len(data) < count:
            raise ConnectionError("the broker closed the connection")
        return data


def received_by_broker(port):
    """Returns the number of messages that clients have published, as mosquitto counts them, with a delay of up to a second."""
    with Client(port, "bench-count") as client:
        client.subscribe("$SYS/broker/publish/messages/received")
        return int(client.receive()[1])
