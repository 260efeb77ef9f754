"""Events that cost the gateway much memory or work: fields, topics, removed objects and object ids."""

import time
import uuid

from rows import row
from wire import encoded, frame, outcome, pace, publish, request, target

AGENT = "0b1e6d0a-9a55-4c6c-b0a4-8d1f6f8f4a25"


@row(seconds=20, soak={"subscriptions": 16})
def fields_of_one_event(attack, clients=8, subscriptions=250, size=900_000):
    """8 connections have 250 subscriptions each to one channel, each with different fields, and an agent publishes events of 900 KB."""
    for number in range(clients):
        client = attack.open_websocket()
        for count in range(subscriptions):
            fields = ["filling", f"n{number}-{count}"]
            with attack.counting_errors():
                client.send(frame({"op": "subscribe", "id": str(count), "event": "channel", "channelId": "fields", "fields": fields}))
                attack.count_reply(client.message())
    thing = {"coreType": "CoatyObject", "objectType": "com.example.Wide", "objectId": AGENT, "name": "Wide", "filling": "x" * size}
    packet = publish(f"coaty/3/-/CHN:fields/{AGENT}", encoded({"object": thing}))
    publisher = attack.publisher()
    sent = 0
    for due in pace(1, attack.left - 3):
        publisher.send(packet * due)
        sent += due
    attack.note(f"{sent} events published")
    attack.hold()


@row(seconds=20, soak={"rate": 20})
def long_topics(attack, rate=500, length=60_000):
    """A subscription to raw `x/#`, and an agent publishes 500 empty messages a second on topics of 60 KB."""
    client = attack.open_websocket()
    client.send(frame({"op": "subscribe", "id": "s", "event": "raw", "topic": "x/#"}))
    attack.count_reply(client.message())
    publisher = attack.publisher()
    sent = 0
    for due in pace(rate, attack.left - 3):
        publisher.send(b"".join(publish(f"x/{number:08}{'t' * (length - 8)}", b"") for number in range(sent, sent + due)))
        sent += due
        # This client keeps up, so that only the replay buffer holds messages.
        client.drop_received()
    attack.note(f"{sent} messages published")
    attack.hold()


@row(seconds=20, soak={"rate": 2})
def removed_objects(attack, rate=60, size=900_000):
    """A subscription to Deadvertise events, and an agent advertises objects of 900 KB and deadvertises them, 60 times a second."""
    client = attack.open_websocket()
    client.send(frame({"op": "subscribe", "id": "s", "event": "deadvertise"}))
    attack.count_reply(client.message())
    publisher = attack.publisher()
    filling = "x" * size
    sent = 0
    for due in pace(rate, attack.left - 3):
        for _ in range(due):
            thing = {"coreType": "CoatyObject", "objectType": "coaty.CoatyObject", "objectId": str(uuid.uuid4()), "name": "Gone", "filling": filling}
            publisher.send(publish(f"coaty/3/-/ADV:CoatyObject/{AGENT}", encoded({"object": thing})))
            publisher.send(publish(f"coaty/3/-/DAD/{AGENT}", encoded({"objectIds": [thing["objectId"]]})))
            sent += 1
    attack.note(f"{sent} objects advertised and deadvertised")
    attack.hold()


@row(seconds=20, soak={"rate": 1})
def many_ids(attack, rate=2, ids=25_000):
    """Twice a second, a client deadvertises 25,000 ids in one event; every 2 s, an agent deadvertises 400,000 ids."""
    body = encoded({"objectIds": [str(uuid.UUID(int=number)) for number in range(ids)]})
    post = request("POST", target("/v1/deadvertise"), body)
    packet = publish(f"coaty/3/-/DAD/{AGENT}", encoded({"objectIds": [str(uuid.UUID(int=number)) for number in range(16 * ids)]}))
    publisher = attack.publisher()
    client = attack.connect()
    number = 0
    for due in pace(rate, attack.left - 2):
        for _ in range(due):
            with attack.counting_errors():
                client.send(post)
                attack.outcomes[outcome(*client.response())] += 1
            if number % 4 == 0:
                publisher.send(packet)
            number += 1
    attack.hold()


TOKEN = "coaty_hostile-0123456789abcdef"
# Clients without a token, such as the well-behaved client, are administrators. The token of the attacker has few grants.
ACCESS = """
access:
  tokens:
    - {name: attacker, sha256: "%s", roles: [little]}
  anonymous: [admin]
  roles:
    little:
      - publish: [advertise, deadvertise]
        types: ["com.example.Own"]
        where: ["object.name", ["Like", "Own%%"]]
"""


def configuration():
    import hashlib

    return ACCESS % hashlib.sha256(TOKEN.encode()).hexdigest()


@row(seconds=25, configuration=configuration())
def repeated_ids(attack, objects=1_000, ids=20_000, connections=2):
    """1,000 objects have one parent, and a client without a grant for them deadvertises the parent 20,000 times in one event."""
    parent = str(uuid.uuid4())
    publisher = attack.publisher()
    for _ in range(objects):
        thing = {"coreType": "CoatyObject", "objectType": "coaty.CoatyObject", "objectId": str(uuid.uuid4()), "name": "Child", "parentObjectId": parent}
        publisher.send(publish(f"coaty/3/-/ADV:CoatyObject/{AGENT}", encoded({"object": thing})))
    time.sleep(1)
    post = request("POST", "/v1/deadvertise", {"objectIds": [parent] * ids}, Authorization=f"Bearer {TOKEN}")
    clients = [attack.connect(timeout=60) for _ in range(connections)]
    while attack.left > 2:
        for client in clients:
            with attack.counting_errors():
                client.send(post)
        for client in clients:
            with attack.counting_errors():
                attack.outcomes[outcome(*client.response())] += 1
        time.sleep(0.1)
    attack.hold()
