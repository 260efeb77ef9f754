"""Rules and nodes of IO routing."""

import time

from rows import row
from wire import encoded, request

CONTEXT = "b61740a6-95d7-4d1a-8be5-53f3aa1e0b79"
CONFIGURATION = f"""
routing:
  contexts:
    - context: {{ coreType: IoContext, objectType: com.example.Context, objectId: {CONTEXT}, name: Hostile }}
      rules: []
"""


def attack_rules(attack, points, rules, leaf_count, members, timeout):
    """Replaces the rules of the context, and registers a node."""
    leaf = ["actorNode.characteristics.ä", ["Exists"]]
    condition = {"or": [leaf] * leaf_count}
    attack.ask(
        request(
            "PUT",
            f"/v1/routing/contexts/{CONTEXT}/rules",
            {"rules": [{"name": f"Rule {number}", "condition": condition} for number in range(rules)]},
        )
    )
    node = encoded(
        {
            "contextName": "Hostile",
            "leaseDuration": 3_600_000,
            "ioSources": [{"name": "s", "valueType": "v"}] * points,
            "ioActors": [{"name": "a", "valueType": "v"}] * points,
        }
    )
    # Escaped keys of 7 bytes. The body has at most 256 KiB.
    fitting = min(members, ((256 << 10) - len(node) - 40) // 7)
    node = node[:-1] + b',"characteristics":{"x":0' + rb',"\n":0' * fitting + b"}}"
    attack.ask(request("POST", "/v1/io/nodes", node), timeout=timeout)


@row(seconds=20, configuration=CONFIGURATION)
def routing_pairs(attack, points=50, rules=1_000, leaf_count=9, members=40_000):
    """Sets 1,000 rules of 9 leaves, and registers one node of 256 KB with 50 sources and 50 actors."""
    attack_rules(attack, points, rules, leaf_count, members, attack.left)
    # Measures how long the router takes for another client.
    start = time.monotonic()
    question = request("POST", f"/v1/routing/contexts/{CONTEXT}/evaluate", {"rules": []})
    status, body = attack.observe(question, timeout=max(1, attack.left - 1))
    attack.note(f"an evaluation without rules gets {status or body} after {time.monotonic() - start:.1f} s")
    attack.hold()


@row(seconds=4, configuration=CONFIGURATION, stops=True)
def routing_pairs_stop(attack, points=50, rules=1_000, leaf_count=9, members=40_000):
    """As routing-pairs, and the gateway gets SIGTERM while the rules are evaluated."""
    attack_rules(attack, points, rules, leaf_count, members, 2)
    attack.hold()
