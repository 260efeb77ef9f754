#!/usr/bin/env python3
"""Publishes Channel events at a rate, and prints their number: load PORT RATE SECONDS [NAMESPACE]

Uses MQTT 3.1.1 with QoS 0 over a plain socket, and sends a batch every hundredth of a second. The events are numbered from 0, and
have one sender, which is not advertised. Prints {"sent": …, "seconds": …}.
"""

import json
import sys
import time
import uuid

from stack import connect_mqtt, publish_packet

BATCHES_PER_SECOND = 100
NAME = "Temperature of the hall, sensor"


def template(namespace):
    """Returns a packet with a placeholder `%07d` for the number of the event."""
    thing = {
        "coreType": "CoatyObject",
        "objectType": "com.example.Reading",
        "objectId": str(uuid.uuid4()),
        "name": f"{NAME} 0000000",
        "unit": "Celsius",
        "location": {"building": 7, "floor": 3, "room": "Hall of the turbines"},
        "value": 21.5,
    }
    topic = f"coaty/3/{namespace}/CHN:load/{uuid.uuid4()}".encode()
    payload = json.dumps({"object": thing}, separators=(",", ":")).encode()
    return publish_packet(topic, payload).replace(b"0000000", b"%07d")


def main():
    port, rate, seconds = int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])
    event = template(*(sys.argv[4:] or ["-"]))
    total = int(rate * seconds)
    sent = 0
    with connect_mqtt(port) as link:
        start = time.monotonic()
        while sent < total:
            due = min(total, int((time.monotonic() - start) * rate) + rate // BATCHES_PER_SECOND)
            if due > sent:
                link.sendall(b"".join([event % number for number in range(sent, due)]))
                sent = due
            time.sleep(max(0, start + sent / rate - time.monotonic()))
        taken = time.monotonic() - start
        # DISCONNECT: when the broker closes the connection, it has read all packets before.
        link.sendall(bytes([0xE0, 0]))
        link.recv(1)
    print(json.dumps({"sent": sent, "seconds": round(taken, 2)}), flush=True)


main()
