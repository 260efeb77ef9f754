"""Checks the dashboard of Grafana, and runs its expressions against Prometheus."""

import contextlib
import json
import re
import time

import yaml
from checks import Failed, require, require_equal
from clients import PATIENCE, Client

# Replaces $__rate_interval. Contains at least two scrapes.
RATE_INTERVAL = "1m"
# The longest time until all expressions have data, in seconds: some scrapes after the traffic of the test.
DEADLINE = 120
# One more than the maximum number of unauthenticated WebSockets of an address.
WEBSOCKETS = 101


def check(checks, project, client, query):
    path = next(source for source in project.sandbox("grafana").files.values() if source.suffix == ".json")
    with checks.check("compose: the dashboard fits its provisioning, and its panels do not overlap"):
        model = json.loads(path.read_text())
        mounts = project.sandbox("grafana").files
        provider = yaml.safe_load(mounts["/etc/grafana/provisioning/dashboards/dashboards.yaml"].read_text())["providers"][0]
        source = yaml.safe_load(mounts["/etc/grafana/provisioning/datasources/datasources.yaml"].read_text())["datasources"][0]
        target = next(target for target, mounted in mounts.items() if mounted == path)
        require_equal(target.rpartition("/")[0], provider["options"]["path"], "the folder of the dashboard")
        require_equal(set(re.findall(r'"uid": "([^"]+)"', path.read_text())), {source["uid"], model["uid"]}, "the set of uids")
        check_layout(model["panels"])
    with checks.check("compose: every expression of the dashboard has data"):
        missing = dict(expressions(model))
        count = len(missing)
        end = time.monotonic() + DEADLINE
        cause_refusals(client)
        while missing:
            if time.monotonic() > end:
                raise Failed("without data: " + "; ".join(f"{title}: {text}" for title, text in missing.items()))
            client.publish("deploy", "for the dashboard")
            client.get("/v1/status")
            missing = {title: text for title, text in missing.items() if not has_data(query(text))}
            time.sleep(0.5)
    print(f"        {count} expressions")


def expressions(model):
    """Yields the title of each panel, and each of its expressions with the variables replaced."""
    for panel in model["panels"]:
        for target in panel.get("targets", []):
            yield f"{panel['title']} {target['refId']}", replaced(target["expr"])
    for variable in model["templating"]["list"]:
        yield f"variable {variable['name']}", re.fullmatch(r"label_values\((.*), \w+\)", variable["definition"])[1]


def replaced(expression):
    text = expression.replace("$__rate_interval", RATE_INTERVAL).replace("$instance", ".*")
    require("$" not in text, f"an unknown variable in {expression}")
    return text


def has_data(result):
    return any(item["value"][1] != "NaN" for item in result)


def cause_refusals(client):
    """Reaches a limit, because the metrics of limits have no values before."""
    with contextlib.ExitStack() as stack:
        anonymous = Client(f"http://{client.name}:{client.port}", address=client.address, host=client.host)
        for _ in range(WEBSOCKETS):
            try:
                stack.callback(anonymous.socket().close)
            except Failed:
                return
        raise Failed(f"{WEBSOCKETS} unauthenticated WebSockets are accepted within {PATIENCE} s")


def check_layout(panels):
    require(len({panel["id"] for panel in panels}) == len(panels), "two panels have the same id")
    cells = set()
    for panel in panels:
        place = panel["gridPos"]
        require(place["x"] + place["w"] <= 24, f"{panel['title']} is wider than the dashboard")
        own = {(x, y) for x in range(place["x"], place["x"] + place["w"]) for y in range(place["y"], place["y"] + place["h"])}
        require(not own & cells, f"{panel['title']} overlaps another panel")
        cells |= own
