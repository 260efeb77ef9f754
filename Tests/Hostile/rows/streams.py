"""Clients that do not read, and unfinished messages."""

import time

from attack import SMALL_BUFFER
from rows import row
from wire import encoded, frame, handshake, publish, request, target

SENDER = "0b1e6d0a-9a55-4c6c-b0a4-8d1f6f8f4a23"


def large_event(size):
    thing = {"coreType": "CoatyObject", "objectType": "com.example.Large", "objectId": SENDER, "name": "Large"}
    head = encoded({"object": thing | {"filling": ""}})
    return head[:-3] + b"x" * (size - len(head)) + head[-3:]


def publish_events(attack, channel, size, count):
    """Publishes large events through the broker, evenly over the remaining time."""
    packet = publish(f"coaty/3/-/CHN:{channel}/{SENDER}", large_event(size))
    publisher = attack.publisher()
    pause = max(0.05, (attack.left - 2) / count)
    sent = 0
    while sent < count and attack.left > 1:
        begin = time.monotonic()
        publisher.send(packet)
        sent += 1
        time.sleep(max(0, begin + pause - time.monotonic()))
    if sent < count:
        attack.note(f"only {sent} of {count} events published")
    with attack.counting_errors():
        publisher.finish()


@row(seconds=25, addresses=40, soak={"clients": 4})
def websocket_unread(attack, clients=2_000, size=1 << 20, events=12):
    """2,000 clients of /v1/ws subscribe to a channel with events of 1 MiB, and do not read."""
    subscription = frame({"op": "subscribe", "id": "s", "event": "channel", "channelId": "large"})
    readers = attack.open_websockets(clients, subscription, receive_buffer=SMALL_BUFFER)
    attack.note(f"{len(readers)} subscribed")
    publish_events(attack, "large", size, events)
    attack.hold()
    attack.count_closed(readers)


@row(seconds=25, addresses=10, soak={"clients": 1, "size": 4 << 20, "events": 2})
def websocket_unread_large(attack, clients=150, size=15 << 20, events=6):
    """As websocket-unread, with 150 clients, and events of 15 MiB from the broker."""
    websocket_unread(attack, clients, size, events)


@row(seconds=25, addresses=20, soak={"clients": 4})
def sse_unread(attack, clients=500, size=1 << 20, events=12):
    """500 clients open an event stream of a channel with events of 1 MiB, and do not read."""
    query = request("GET", target("/v1/sse/channel", channelId="large"))
    readers = attack.open_many(clients, query, receive_buffer=SMALL_BUFFER)
    attack.note(f"{len(readers)} subscribed")
    publish_events(attack, "large", size, events)
    attack.hold()
    attack.count_closed(readers)


@row(seconds=20, addresses=40, soak={"clients": 4})
def unfinished_messages(attack, clients=2_000, size=1 << 20):
    """2,000 WebSockets send a message of 1 MiB without its last byte."""
    message = frame(b'{"op":"ping","id":"' + b"x" * (size - 21) + b'"}')[:-1]
    senders = attack.open_websockets(clients)
    for sender in senders:
        if attack.left <= 1:
            attack.note("not all messages sent in time")
            break
        with attack.counting_errors():
            sender.send(message)
    attack.hold()
    attack.count_closed(senders)
