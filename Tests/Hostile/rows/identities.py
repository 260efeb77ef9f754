"""Client identities, and their objects."""

import json
import uuid

from rows import row
from wire import frame, outcome, request, target


@row(seconds=20, soak={"objects": 50})
def identity_objects(attack, objects=10_050, batch=100):
    """Advertises 10,050 small Identity objects by POST, without agents."""
    for begin in range(0, objects, batch):
        if attack.left <= 3:
            attack.note(f"only {begin} objects advertised")
            break
        requests = [
            request("POST", "/v1/advertise", {"object": identity(f"Nobody {number}")})
            for number in range(begin, min(begin + batch, objects))
        ]
        with attack.counting_errors(), attack.connect() as client:
            client.send(b"".join(requests))
            for _ in requests:
                attack.outcomes[outcome(*client.response())] += 1
    # The gateway must still register an object of another client.
    task = identity("Late") | {"coreType": "CoatyObject", "objectType": "com.example.Late"}
    attack.observe(request("POST", "/v1/advertise", {"object": task}))
    attack.hold(1)
    status, body = attack.observe(request("GET", f"/v1/objects/{task['objectId']}"))
    attack.note(f"GET of an object that is advertised afterwards: {outcome(status, body) if status else body}")
    status, body = attack.observe(request("GET", "/v1/agents"))
    if status == 200:
        attack.note(f"{body.count(b'coaty.Identity')} agents listed")
    attack.hold()


def identity(name):
    return {"coreType": "Identity", "objectType": "coaty.Identity", "objectId": str(uuid.uuid4()), "name": name}


@row(seconds=25, addresses=5, soak={"clients": 1})
def identify_names(attack, clients=100, size=1_000_000):
    """100 clients request a client identity with a name of 1 MB."""
    identify = frame({"op": "identify", "id": "me", "name": "x" * size})
    for client in attack.open_websockets(clients, timeout=5):
        if attack.left <= 6:
            attack.note("not all clients sent their request in time")
            break
        with attack.counting_errors():
            client.send(identify)
            attack.count_reply(client.message())
    status, body = attack.observe(request("POST", target("/v1/discover", timeout="2000", limit="0"), {"coreTypes": ["Identity"]}))
    if status == 200:
        result = json.loads(body)
        attack.note(f"a discover of a well-behaved client gets {len(result['responses'])} responses, reason {result['reason']}")
    else:
        attack.note(f"a discover of a well-behaved client gets {outcome(status, body) if status else body}")
    attack.hold()


@row(seconds=25, addresses=3, soak={"clients": 2})
def kept_objects(attack, clients=60, objects=16, size=950_000):
    """60 clients with an identity each advertise 15 MB of objects that belong to it, which it advertises again after each reconnect."""
    text = "x" * size
    for client in attack.open_websockets(clients, timeout=5):
        if attack.left <= 3:
            attack.note("not all clients advertised in time")
            break
        with attack.counting_errors():
            client.send(frame({"op": "identify", "id": "me", "name": "keeper"}))
            answer = attack.count_reply(client.message())
            if answer["op"] != "ok":
                continue
            parent = answer["identity"]["objectId"]
            for number in range(objects):
                kept = identity(f"Kept {number}") | {"coreType": "CoatyObject", "objectType": "com.example.Kept"}
                kept |= {"parentObjectId": parent, "text": text}
                client.send(frame({"op": "publish", "id": str(number), "event": "advertise", "data": {"object": kept}}))
                attack.count_reply(client.message())
    attack.hold()
