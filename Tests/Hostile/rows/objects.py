"""Queries of the object registry."""

import time
import uuid

from attack import SMALL_BUFFER
from rows import row
from rows.filters import leaves
from wire import encoded, frame, outcome, publish, request, target


#: Parts that fill an object up to its size: first, repeated and last.
TEXT = (b',"filling":"', b"x", b'"')
ESCAPED_KEYS = (b"", rb',"\n":0', b"")
NUMBERS = (b',"filling":[0', b",0", b"]")


def advertise_objects(attack, count, size, filling=TEXT):
    """Advertises objects of a size in bytes through the broker, as one agent, and waits until they are registered."""
    publisher = attack.publisher()
    send_objects(publisher, uuid.uuid4(), [uuid.uuid4() for _ in range(count)], size, filling)
    publisher.finish()
    await_objects(attack, count)


def send_objects(publisher, agent, ids, size, filling=TEXT, start=0):
    """Sends an Advertise event for each id. The numbers of the objects begin with `start`."""
    first, repeated, last = filling
    topic = f"coaty/3/-/ADV:CoatyObject/{agent}"
    for number, identifier in enumerate(ids, start):
        head = encoded(
            {
                "coreType": "CoatyObject",
                "objectType": "com.example.Filling",
                "objectId": str(identifier),
                "name": f"Filling {number}",
                "number": number,
            }
        )
        count_of_repeated = max(0, size - len(head) - len(first) - len(last)) // len(repeated)
        publisher.send(publish(topic, b'{"object":' + head[:-1] + first + repeated * count_of_repeated + last + b"}}"))
        # mosquitto drops messages for a subscriber that does not keep up.
        time.sleep(max(0.0002, size / 50_000_000))


def await_objects(attack, count):
    """Waits until the object registry contains the objects, and notes their number."""
    total = 0
    for _ in range(20):
        status, body = attack.observe(request("GET", "/v1/objects?coreType=CoatyObject&objectType=com.example.Filling&limit=1"))
        if status != 200:
            attack.note(f"the objects can't be counted: {status} {body[:60]}")
            return
        before, total = total, int(body.rpartition(b'"total":')[2].partition(b",")[0])
        if total >= count or total == before > 0:
            break
        time.sleep(0.1)
    attack.note(f"{total} objects listed")


@row(seconds=20, soak={"objects": 100, "at_once": 1, "size": 5000, "leaf_count": 20})
def objects_filter(attack, objects=10_000, size=5_000, leaf_count=100, at_once=2, pause=5):
    """Queries 10,000 objects of 5 KB with a filter of 100 leaves, twice at once, and disconnects after 5 s."""
    advertise_objects(attack, objects, size, ESCAPED_KEYS)
    query = request("GET", target("/v1/objects", filter=leaves(leaf_count), limit=1))
    clients = [attack.connect(number, timeout=pause) for number in range(at_once)]
    for client in clients:
        client.send(query)
    for client in clients:
        with attack.counting_errors():
            attack.outcomes[outcome(*client.response())] += 1
        client.close()
    attack.hold()


@row(seconds=9, stops=True)
def objects_filter_stop(attack, objects=10_000, size=5_000, leaf_count=100, at_once=2, pause=2):
    """As objects-filter, and the gateway gets SIGTERM while the queries run."""
    objects_filter(attack, objects, size, leaf_count, at_once, pause)


@row(seconds=20, addresses=10, soak={"objects": 20, "clients": 1})
def objects_unread(attack, objects=1_000, size=60_000, clients=50):
    """Fifty clients list 1,000 objects of 60 KB each, and do not read the response."""
    advertise_objects(attack, objects, size)
    query = request("GET", "/v1/objects?objectType=com.example.Filling&limit=1000")
    attack.open_many(clients, query, receive_buffer=4096)
    attack.hold()


@row(seconds=20, soak={"objects": 20, "at_once": 1})
def objects_order(attack, objects=1_000, size=60_000, at_once=2, properties=16):
    """Lists 1,000 objects of 60 KB and 30,000 values each, sorted by 16 properties, twice at once."""
    advertise_objects(attack, objects, size, NUMBERS)
    order = ",".join(f"p{number}" for number in range(properties))
    query = request("GET", target("/v1/objects", objectType="com.example.Filling", order=order, limit=1000))
    attack.open_many(at_once, query, receive_buffer=4096, timeout=max(1, attack.left))
    attack.hold()


@row(seconds=25, addresses=4, soak={"objects": 20, "rounds": 4})
def snapshots_unread(attack, objects=200, size=60_000, rounds=40):
    """Forty clients subscribe to all objects and do not read. After each subscription, all 12 MB of objects are replaced."""
    publisher = attack.publisher()
    agent, ids = uuid.uuid4(), [uuid.uuid4() for _ in range(objects)]
    subscription = frame({"op": "subscribe", "id": "s", "event": "advertise", "snapshot": True})
    readers = []
    while len(readers) < rounds and attack.left > 2:
        # The numbers differ, because equal objects would not be replaced.
        send_objects(publisher, agent, ids, size, start=len(readers) * objects)
        readers += attack.open_websockets(1, subscription, receive_buffer=SMALL_BUFFER)
    attack.note(f"{len(readers)} subscribed")
    with attack.counting_errors():
        publisher.finish()
    attack.hold()
    attack.count_closed(readers)
