"""Subscriptions that cost much memory or work: operands, throttling keys, wildcards."""

import time

from rows import row
from wire import encoded, frame, pace, publish, publish_head

SENDER = "0b1e6d0a-9a55-4c6c-b0a4-8d1f6f8f4a24"


@row(soak={"subscriptions": 2})
def in_operands(attack, subscriptions=100, values=500_000):
    """100 subscriptions of one client have a filter `In` with 500,000 values each."""
    client = attack.open_websocket()
    # Each value takes two bytes with its comma, so that the frame just fits the limit for messages.
    head = b'"op":"subscribe","event":"channel","channelId":"in","filter":["a",["In",[1' + b",1" * (values - 1) + b"]]]}"
    for number in range(subscriptions):
        if attack.left <= 0:
            break
        with attack.counting_errors():
            client.send(frame(b'{"id":"%d",' % number + head))
            attack.count_reply(client.message())
    attack.hold()


@row(seconds=25, soak={"events": 20})
def throttle_keys(attack, events=1_500, size=1_000_000):
    """A subscription throttles 1,500 events from the broker with object ids of 1 MB."""
    client = attack.open_websocket()
    subscription = {"op": "subscribe", "id": "s", "event": "channel", "channelId": "keys"}
    client.send(frame(subscription | {"throttle": 3_600_000, "fields": ["name"], "overflow": "latest"}))
    attack.count_reply(client.message())
    head = encoded({"object": {"coreType": "CoatyObject", "objectType": "com.example.Key", "name": "Key", "objectId": ""}})[:-3]
    filling = b"x" * (size - 8)
    topic = f"coaty/3/-/CHN:keys/{SENDER}"
    packet_head = publish_head(topic, len(head) + size + 3)
    publisher = attack.publisher()
    # The client keeps up, so that the gateway holds only the keys.
    sent = 0
    for due in pace(events / max(1, attack.left - 5), attack.left - 3):
        for _ in range(due):
            publisher.send(packet_head + head + b"%08d" % sent + filling + b'"}}')
            sent += 1
        client.drop_received()
        if sent >= events:
            break
    attack.note(f"{sent} events published")
    attack.hold()


def publish_messages(attack, rate, size):
    """Publishes messages through the broker at a rate until the attack ends."""
    packets = publish("hostile/load", b"x" * size)
    publisher = attack.publisher()
    sent = 0
    for due in pace(rate, attack.left):
        publisher.send(packets * due)
        sent += due
    attack.note(f"{sent} messages published")


@row(soak={"subscriptions": 2, "rate": 200})
def raw_wildcards(attack, subscriptions=25, rate=20_000, size=20):
    """25 subscriptions of one client to raw `#`, and an agent publishes 20,000 messages a second."""
    client = attack.open_websocket()
    for number in range(subscriptions):
        client.send(frame({"op": "subscribe", "id": str(number), "event": "raw", "topic": "#"}))
    for _ in range(subscriptions):
        attack.count_reply(client.message())
    publish_messages(attack, rate, size)


@row(seconds=20, soak={"filters": 200, "rate": 50})
def raw_filters(attack, filters=9_900, rate=500, size=4_000):
    """40 connections have 9,900 raw subscriptions with wildcards and one to `#`, and an agent publishes 500 messages a second."""
    # A connection has at most 256 subscriptions.
    per_connection = 250
    clients = attack.open_websockets(-(-filters // per_connection))
    if not clients:
        return
    for number, client in enumerate(clients):
        count = min(per_connection, filters - number * per_connection)
        client.send(
            b"".join(
                frame({"op": "subscribe", "id": str(i), "event": "raw", "topic": f"hostile/{number}/{i}/+"}) for i in range(count)
            )
        )
        for _ in range(count):
            with attack.counting_errors():
                attack.count_reply(client.message())
    clients[0].send(frame({"op": "subscribe", "id": "all", "event": "raw", "topic": "#"}))
    attack.count_reply(clients[0].message())
    attack.note(f"subscribed after {time.monotonic() - attack.start:.1f} s")
    attack.seconds += max(0, 8 - attack.left)
    publish_messages(attack, rate, size)
