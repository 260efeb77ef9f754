"""Filters that are expensive for each event."""

from rows import row
from wire import encoded, frame, publish, request

CHANNEL = "escaped"
WELL_BEHAVED = "well-behaved"


def leaves(count):
    """Returns a condition that holds only after all of its leaves were evaluated."""
    return {"and": [["ä", ["NotExists"]]] * count}


def wide_event(members):
    """Returns the payload of an event whose object has members with escaped keys, of 7 bytes each."""
    head = encoded(
        {
            "coreType": "CoatyObject",
            "objectType": "com.example.Wide",
            "objectId": "0b1e6d0a-9a55-4c6c-b0a4-8d1f6f8f4a21",
            "name": "Wide",
        }
    )
    return b'{"object":' + head[:-1] + rb',"\n":0' * members + b"}}"


def attack_filters(attack, subscriptions, leaf_count, members, timeout=None):
    """Subscribes, and publishes the event through the gateway, or through the broker if the gateway refuses it."""
    client = attack.open_websocket()
    for number in range(subscriptions):
        client.send(
            frame({"op": "subscribe", "id": str(number), "event": "channel", "channelId": CHANNEL, "filter": leaves(leaf_count)})
        )
    for _ in range(subscriptions):
        attack.count_reply(client.message())
    payload = wide_event(members)
    answer = attack.ask(request("POST", f"/v1/channel/{CHANNEL}", payload), timeout=timeout or max(1, attack.left))
    if answer is None or answer[0] >= 300:
        publisher = attack.publisher()
        publisher.send(publish(f"coaty/3/-/CHN:{CHANNEL}/0b1e6d0a-9a55-4c6c-b0a4-8d1f6f8f4a22", payload))
        publisher.finish()
    return client


@row(seconds=12, soak={"subscriptions": 1, "leaf_count": 20, "members": 20_000})
def escaped_keys(attack, subscriptions=6, leaf_count=100, members=128_000):
    """Subscribes with filters of 100 leaves each, and publishes one event of 900 KB with 128,000 escaped keys."""
    attack_filters(attack, subscriptions, leaf_count, members)
    attack.hold()


@row(seconds=12)
def escaped_keys_of_nine(attack, subscriptions=9, leaf_count=100, members=128_000):
    """As escaped-keys, with nine subscriptions, which take longer than the keepalive of the broker connection."""
    attack_filters(attack, subscriptions, leaf_count, members)
    attack.hold()


@row(seconds=12, soak={"subscriptions": 1, "leaf_count": 20, "members": 20_000})
def escaped_keys_then_close(attack, subscriptions=6, leaf_count=100, members=128_000, pause=1):
    """As escaped-keys, and the attacker closes its socket while the filters run."""
    client = attack_filters(attack, subscriptions, leaf_count, members)
    attack.hold(pause)
    client.close()
    attack.hold()


@row(seconds=3, stops=True)
def escaped_keys_stop(attack, subscriptions=6, leaf_count=100, members=128_000, pause=1):
    """As escaped-keys, and the gateway gets SIGTERM 2 s later."""
    client = attack_filters(attack, subscriptions, leaf_count, members, timeout=1)
    attack.hold(pause)
    client.close()
    attack.hold()


def subscribe_many(attack, clients, subscriptions, options):
    """Subscribes to the channel of the well-behaved client, and does not read."""
    for number in range(clients):
        client = attack.open_websocket()
        for count in range(subscriptions):
            frames = {"op": "subscribe", "id": str(count), "event": "channel", "channelId": WELL_BEHAVED} | options(number * subscriptions + count)
            client.send(frame(frames))
        attack.count_reply(client.message())
    attack.hold()


@row(seconds=20, soak={"clients": 1})
def cheap_filters(attack, clients=40, subscriptions=250):
    """40 connections have 250 subscriptions each to the channel of the well-behaved client, with different cheap filters that never match."""
    subscribe_many(attack, clients, subscriptions, lambda number: {"filter": ["name", ["LessThan", f"!{number}"]]})


@row(seconds=20, soak={"clients": 1})
def cheap_filters_of_many(attack, clients=40, subscriptions=250):
    """As cheap-filters, and each filter takes 40 steps."""
    leaf = lambda number: ["objectType", ["NotEquals", f"x{number}"]]
    subscribe_many(
        attack,
        clients,
        subscriptions,
        lambda number: {"filter": {"and": [leaf(number)] * 10 + [["name", ["LessThan", f"!{number}"]]]}},
    )


@row(seconds=20, soak={"clients": 1})
def many_readers(attack, clients=40, subscriptions=250):
    """40 connections have 250 subscriptions each to the channel of the well-behaved client, without filters, and do not read."""
    subscribe_many(attack, clients, subscriptions, lambda number: {})
