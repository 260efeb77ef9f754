"""Limits of descriptors, connections, requests and timers."""

import json
import uuid

from rows import row
from wire import closed_count, outcome, request, target

# Number of clients of each kind that a gateway must serve if it starts.
SENSIBLE_CLIENTS = 64


@row(soak={"renewals": 500})
def lease_renewals(attack, renewals=100_000, connections=4, batch=200):
    """Renews the lease of one IO node 100,000 times, for an hour each."""
    answer = attack.ask(request("POST", "/v1/io/nodes", {"contextName": "c", "ioSources": [{"name": "s", "valueType": "v"}]}))
    if answer is None or answer[0] != 201:
        return
    path = f"/v1/io/nodes/{json.loads(answer[1])['node']['objectId']}"
    renewal = request("POST", f"{path}/lease", {"leaseDuration": 3_600_000})
    clients = [attack.connect(number) for number in range(connections)]
    sent = 0
    with attack.counting_errors():
        while sent < renewals and attack.left > 1:
            for client in clients:
                client.send(renewal * batch)
            for client in clients:
                for _ in range(batch):
                    attack.outcomes[outcome(*client.response())] += 1
            sent += batch * connections
    attack.note(f"{sent} renewals sent")
    attack.hold(3)
    attack.ask(request("DELETE", path))
    attack.hold()


@row(seconds=8, descriptors=1024)
def few_descriptors(attack, clients=SENSIBLE_CLIENTS):
    """The gateway starts with a hard limit of 1,024 descriptors: it must refuse to start, or serve 64 WebSockets and 64 HTTP connections."""
    websockets = attack.open_websockets(clients, timeout=2)
    plain = attack.open_many(clients, request("GET", "/healthz"), timeout=2)
    attack.note(f"{len(websockets)} WebSockets and {len(plain)} HTTP connections of {clients} each served")
    if min(len(websockets), len(plain)) < clients:
        attack.fail(f"the gateway started, but serves {len(websockets)} WebSockets and {len(plain)} HTTP connections")
    attack.hold()


@row(seconds=25, addresses=40, soak={"connections": 20, "during": 5})
def connection_burst(attack, connections=7_528, during=20):
    """7,528 connections with one request each are opened within 20 s, and stay open."""
    clients = []
    for begin in range(0, connections, 64):
        attack.hold(during * begin / connections - (attack.seconds - attack.left))
        clients += attack.open_many(min(64, connections - begin), request("GET", "/healthz"), timeout=5)
    attack.note(f"{len(clients)} of {connections} answered")
    attack.hold()
    attack.note(f"{closed_count(clients)} of them closed by the gateway")


@row(soak={"requests": 20})
def abandoned_discovers(attack, requests=4_096, timeout=60_000):
    """4,096 clients send a discover with a timeout of a minute, and disconnect."""
    discover = request("POST", target("/v1/discover", timeout=str(timeout), limit="0"), {"objectTypes": ["com.example.Nobody"]})
    clients = []
    for number in range(requests):
        with attack.counting_errors():
            client = attack.connect(number)
            client.send(discover)
            clients.append(client)
        if len(clients) == 256:
            attack.hold(0.2)
            for client in clients:
                client.close()
            clients = []
    for client in clients:
        client.close()
    attack.hold(3)
    status, body = attack.observe(request("POST", target("/v1/discover", timeout="500"), {"objectTypes": [f"t{uuid.uuid4()}"]}))
    attack.note(f"3 s after they have disconnected, a discover gets {outcome(status, body) if status else body}")
    status, body = attack.observe(request("GET", "/v1/status"))
    if status == 200:
        attack.note(f"/v1/status then reports {json.loads(body)['requests']['pending']} pending requests")
    attack.hold()

