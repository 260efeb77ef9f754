"""Identities, and the objects that stand for them."""

import json
import uuid

from rows import row
from wire import frame, outcome, request, target


@row(seconds=20, soak={"objects": 50})
def identity_objects(attack, objects=10_050, batch=100):
    """Advertises 10,050 small Identity objects by POST; no agent stands behind them."""
    for begin in range(0, objects, batch):
        if attack.left <= 3:
            attack.note(f"only {begin} objects advertised")
            break
        requests = [
            request("POST", "/v1/advertise", {"object": identity(f"Nobody {number}")})
            for number in range(begin, min(begin + batch, objects))
        ]
        with attack.telling(), attack.connect() as client:
            client.send(b"".join(requests))
            for _ in requests:
                attack.told[outcome(*client.response())] += 1
    # The innocent client's own object must still be known.
    task = identity("Innocent") | {"coreType": "CoatyObject", "objectType": "com.example.Late"}
    attack.observe(request("POST", "/v1/advertise", {"object": task}))
    attack.hold(1)
    status, body = attack.observe(request("GET", f"/v1/objects/{task['objectId']}"))
    attack.note(f"an object that is advertised afterwards: {outcome(status, body) if status else body}")
    status, body = attack.observe(request("GET", "/v1/agents"))
    if status == 200:
        attack.note(f"{body.count(b'coaty.Identity')} agents listed")
    attack.hold()


def identity(name):
    return {"coreType": "Identity", "objectType": "coaty.Identity", "objectId": str(uuid.uuid4()), "name": name}


@row(seconds=25, addresses=5, soak={"clients": 1})
def identify_names(attack, clients=100, size=1_000_000):
    """100 clients ask for a client identity with a name of 1 MB."""
    identify = frame({"op": "identify", "id": "me", "name": "x" * size})
    for client in attack.open_websockets(clients, patience=5):
        if attack.left <= 6:
            attack.note("not all clients could ask in time")
            break
        with attack.telling():
            client.send(identify)
            attack.tell_frame(client.message())
    status, body = attack.observe(request("POST", target("/v1/discover", timeout="2000", limit="0"), {"coreTypes": ["Identity"]}))
    if status == 200:
        result = json.loads(body)
        attack.note(f"an innocent discover gets {len(result['responses'])} responses, reason {result['reason']}")
    else:
        attack.note(f"an innocent discover gets {outcome(status, body) if status else body}")
    attack.hold()


@row(seconds=25, addresses=3, soak={"clients": 2})
def kept_objects(attack, clients=60, objects=16, size=950_000):
    """60 clients with an identity each advertise 15 MB of objects that belong to it: it advertises them again after each reconnect."""
    text = "x" * size
    for client in attack.open_websockets(clients, patience=5):
        if attack.left <= 3:
            attack.note("not all clients could advertise in time")
            break
        with attack.telling():
            client.send(frame({"op": "identify", "id": "me", "name": "keeper"}))
            answer = attack.tell_frame(client.message())
            if answer["op"] != "ok":
                continue
            parent = answer["identity"]["objectId"]
            for number in range(objects):
                kept = identity(f"Kept {number}") | {"coreType": "CoatyObject", "objectType": "com.example.Kept"}
                kept |= {"parentObjectId": parent, "text": text}
                client.send(frame({"op": "publish", "id": str(number), "event": "advertise", "data": {"object": kept}}))
                attack.tell_frame(client.message())
    attack.hold()
