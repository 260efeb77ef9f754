"""Checks compose.yaml, and runs its services with the same configuration files."""

import contextlib
import datetime
import json
import re
import shutil
import subprocess
import sys
import urllib.parse

import dashboard
import yaml
from checks import ROOT, require, require_equal, run, version, wait
from clients import Client
from project import GATEWAY_ADDRESS, HOST, Project
from traffic import check_proxy

ALERTS = ROOT / "deploy/prometheus/alerts.yaml"
AGENT = "00000000-0000-4000-8000-00000000000a"
FOREIGN = "plant/door/open"
# The address of the machine, which no interface has here: in a container, Caddy does not have it either.
MACHINE = "192.0.2.80"


def check(checks, work, gateway):
    project = Project(work, gateway)
    check_files(checks, project)
    with contextlib.ExitStack() as stack:
        witness = add_witness(project)
        with checks.check("compose: mosquitto starts with its accounts and its ACL", is_needed=True):
            broker = project.start(stack, "broker", "-v")
            wait("mosquitto listens", lambda: "mosquitto version" in project.log("broker") and " running" in project.log("broker"))
        with checks.check("compose: the gateway starts, read-only and as its user, and is ready", is_needed=True):
            project.start(stack, "gateway")
            direct = Client(f"http://{GATEWAY_ADDRESS}:8080", token=project.tokens[0], address=GATEWAY_ADDRESS, host=HOST)
            wait("the gateway is ready", lambda: direct.request("GET", "/readyz")[0] == 200)
        check_broker(checks, project, direct, witness)
        caddy = check_tls(checks, stack, project)
        check_address(checks, stack, project, caddy)
        check_monitoring(checks, stack, project, direct, broker)


def check_files(checks, project):
    with checks.check("compose: compose.yaml follows the Compose specification"):
        run(sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.compose-spec", project.folder / "compose.yaml")
    with checks.check("compose: each image has a version, and each container has few rights"):
        require_equal(project.services["gateway"]["image"], f"coaty-gateway:{version(project.gateway)}", "the gateway's image")
        for name, service in project.services.items():
            require(re.search(r":v?\d+\.\d+\.\d+$", service["image"]), f"{name}: the image {service['image']} has no full version")
            require(service.get("read_only") is True, f"{name} can write to its root")
            require(service.get("cap_drop") == ["ALL"], f"{name} keeps capabilities")
            require(service.get("security_opt") == ["no-new-privileges:true"], f"{name} can get new privileges")
            require(service.get("logging") == {"driver": "local"}, f"{name}: its log is not rotated")
            if name != "caddy":
                require(service.get("user", "0:0").split(":")[0] != "0", f"{name} runs as root")
                published = [port for port in service.get("ports", []) if not port.startswith("127.0.0.1:")]
                require(not published, f"{name} publishes {published} to other machines")
    with checks.check("compose: each mounted file and each secret exists after setup, and is readable for all"):
        for name in project.services:
            for target, source in project.sandbox(name).files.items():
                require(source.exists(), f"{name}: there is no {source} for {target}")
                for path in (source, *source.glob("*")):
                    needed = 0o005 if path.is_dir() else 0o004
                    require(path.stat().st_mode & needed == needed, f"{name}: other users can't read {path}")
        gateway = project.sandbox("gateway")
        state = gateway.environment["COATY_GATEWAY_STATE_DIRECTORY"]
        require(state in gateway.folders, f"gateway: there is no volume for {state}")
        require_equal((project.folder / "secrets").stat().st_mode & 0o777, 0o700, "the mode of secrets")
    with checks.check("compose: the gateway trusts the address of Caddy, and of nobody else"):
        settings = yaml.safe_load((project.folder / "config/gateway.yaml").read_text())
        require_equal(settings["trusted-proxies"], project.services["caddy"]["networks"]["proxy"]["ipv4_address"], "trusted-proxies")
        require_equal(project.services["gateway"]["networks"]["proxy"]["ipv4_address"], GATEWAY_ADDRESS, "the gateway's address")
    with checks.check("compose: setup replaces all examples, and keeps existing secrets"):
        text = (project.folder / "config/gateway.yaml").read_text() + (project.folder / "secrets/gateway.env").read_text()
        require("EXAMPLE" not in text and "0" * 60 not in text, "gateway.yaml or gateway.env has an example")
        secret = project.secret("broker-password")
        again = subprocess.run([project.folder / "setup", "--host", HOST], capture_output=True, text=True)
        require(again.returncode == 1 and "to replace all secrets" in again.stderr, f"setup does not refuse: {again.stderr}")
        require_equal(project.secret("broker-password"), secret, "the password")
    with checks.check("compose: setup refuses a host with a port, and reports files that containers can't read"):
        folder = project.work / "private"
        shutil.copytree(project.folder.parent, folder, ignore=shutil.ignore_patterns("secrets"))
        (folder / "compose/mosquitto/acl").chmod(0o600)

        def setup(host):
            return subprocess.run([folder / "compose/setup", "--host", host], capture_output=True, text=True)

        refused = setup("localhost:8443")
        require(refused.returncode == 1 and "has no port" in refused.stderr, f"setup accepts the port: {refused.stderr}")
        warned = setup("localhost")
        require(warned.returncode == 0 and warned.stderr.endswith("/mosquitto/acl\n"), f"setup does not warn: {warned.stderr}")


def add_witness(project):
    """Adds an account that may do everything, with which the test observes the broker."""
    with (project.folder / "mosquitto/acl").open("a") as acl:
        acl.write("\nuser witness\ntopic readwrite #\n")
    run("mosquitto_passwd", "-b", project.folder / "secrets/broker-accounts", "witness", "password")
    (project.folder / "secrets/broker-accounts").chmod(0o644)
    return ["-u", "witness", "-P", "password"]


def publish(account, topic, payload):
    return subprocess.run(["mosquitto_pub", "-h", "broker", *account, "-t", topic, "-m", payload], capture_output=True, text=True)


@contextlib.contextmanager
def subscribed(project, account, name):
    """Subscribes to everything that an account may receive. Yields a function that returns the lines `topic payload` so far."""
    log = project.work / f"received-by-{name}"
    with log.open("wb") as output:
        process = subprocess.Popen(
            ["stdbuf", "-oL", "mosquitto_sub", "-h", "broker", *account, "-t", "#", "-F", "%t %p"], stdout=output, stderr=output
        )
        try:
            # The subscription is in place as soon as a message of the account arrives.
            def is_subscribed():
                publish(account, "coaty/3/-/CHN:ready/x", "{}")
                return "CHN:ready" in log.read_text()

            wait(f"{name} is subscribed", is_subscribed)
            yield log.read_text
        finally:
            process.terminate()
            process.wait()


def check_broker(checks, project, client, witness):
    agent = ["-u", "agent", "-P", project.secret("agent-password")]
    with checks.check("compose: mosquitto refuses clients without an account, and with a wrong password"):
        for account in ([], ["-u", "gateway", "-P", "wrong"]):
            result = publish(account, "coaty/3/-/CHN:x/y", "{}")
            require("not authorised" in result.stderr.lower(), f"{account or 'no account'}: {result.stderr or 'accepted'}")
    with checks.check("compose: events pass in both directions between the gateway and agents"):
        with subscribed(project, agent, "agent") as received, contextlib.closing(
            client.stream("/v1/sse/advertise?coreType=Identity")
        ) as stream:
            client.publish("deploy", "from the gateway")
            wait("the agent gets the event", lambda: "coaty/3/-/CHN:deploy/" in received() and "from the gateway" in received())
            identity = {"coreType": "Identity", "objectType": "coaty.Identity", "objectId": AGENT, "name": "deploy agent"}
            publish(agent, f"coaty/3/-/ADV:Identity/{AGENT}", json.dumps({"object": identity}))
            stream.wait_for(b"deploy agent")
    with checks.check("compose: discover and call get responses over the broker"):
        status, _, body = client.request("POST", "/v1/discover", {"coreTypes": ["Identity"]})
        require(status == 200 and len(json.loads(body)["responses"]) == 1, f"discover: status {status}: {body[:300]!r}")
        with contextlib.closing(client.socket()) as socket:
            socket.send({"op": "subscribe", "id": "s", "event": "call", "operation": "com.example.deploy"})
            socket.wait_for("ok", id="s")
            request = {"op": "request", "id": "r", "event": "call", "operation": "com.example.deploy", "data": {"parameters": [1]}}
            socket.send(request)
            event = socket.wait_for("event", id="s")
            answer = {"op": "respond", "id": "x", "event": "return", "correlationId": event["correlationId"], "data": {"result": 7}}
            socket.send(answer)
            require_equal(socket.wait_for("response", id="r")["data"], {"result": 7}, "the response")
    with checks.check("compose: the gateway counts agents of other namespaces"):
        identity = {"coreType": "Identity", "objectType": "coaty.Identity", "objectId": AGENT, "name": "other agent"}
        publish(witness, f"coaty/3/other/ADV:Identity/{AGENT}", json.dumps({"object": identity}))
        expected = [{"namespace": "other", "agents": 1}]

        def are_counted():
            require_equal(client.get("/v1/status")["otherNamespaces"], expected, "otherNamespaces")
            return True

        wait("the status lists them", are_counted)
    with checks.check("compose: mosquitto refuses publications of the gateway and of agents to foreign topics"):
        with subscribed(project, witness, "witness") as received:
            status, _, body = client.request("POST", f"/v1/raw/{FOREIGN.replace('/', '%2F')}", b"open", Content_Type="application/octet-stream")
            require_equal(status, 202, f"the status of the raw event ({body[:200]!r})")
            denial = rf"Denied PUBLISH from Coaty\w+ .*'{FOREIGN}'"
            wait("mosquitto denies it", lambda: re.search(denial, project.log("broker")), 15)
            publish(agent, f"coaty/3/other/CHN:deploy/{AGENT}", "{}")
            denial = r"Denied PUBLISH from .*'coaty/3/other/CHN:deploy/"
            wait("mosquitto denies it", lambda: re.search(denial, project.log("broker")), 15)
            forbidden = [line for line in received().splitlines() if line.startswith((FOREIGN, "coaty/3/other/CHN"))]
            require(not forbidden, f"the witness has received {forbidden}")
    with checks.check("compose: mosquitto does not deliver foreign topics to the gateway and to agents"):
        with subscribed(project, agent, "agent-again") as received, subscribed(project, witness, "witness-again") as all_received, \
                contextlib.closing(client.stream(f"/v1/sse/raw?topic={FOREIGN}")) as stream:
            publish(witness, FOREIGN, "closed")
            wait("the witness gets the message", lambda: f"{FOREIGN} closed" in all_received())
            publish(witness, f"coaty/3/-/CHN:end/{AGENT}", "{}")
            wait("the agent gets the next event", lambda: "CHN:end" in received())
            require(FOREIGN not in received(), "the agent has received the message")
            try:
                stream.wait_for(b"event: event", 1)
            except Exception:
                pass
            require(b"event: event" not in stream.text, "the gateway has received the message")


def check_tls(checks, stack, project):
    sandbox = project.sandbox("caddy")
    with checks.check("compose: caddy validate accepts the Caddyfile"):
        run(*sandbox.command("caddy", "validate", "--config", "/etc/caddy/Caddyfile", "--adapter", "caddyfile"))
    with checks.check("compose: Caddy starts and has a certificate of its own authority", is_needed=True):
        caddy = project.start(stack, "caddy")
        authority = project.volume("caddy_data") / "caddy/pki/authorities/local/root.crt"
        wait("Caddy has its authority", authority.exists)
        clients = [Client(f"https://{HOST}", token=token, authority=authority) for token in (*project.tokens, None)]
        operator, viewer, nobody = clients
        wait("Caddy serves the gateway", lambda: operator.request("GET", "/readyz")[0] == 200)
    check_proxy(checks, "compose: Caddy", operator, lambda: project.log("gateway"), stranger="127.0.0.71")
    with checks.check("compose: the viewer can read but not publish; without a token nothing is allowed"):
        viewer.get("/v1/agents")
        event = {"object": {"coreType": "CoatyObject", "objectType": "x", "objectId": AGENT, "name": "n"}}
        require_equal(viewer.request("POST", "/v1/channel/deploy", event)[0], 403, "the status of the viewer's publication")
        require_equal(viewer.request("GET", "/v1/status")[0], 403, "the status of /v1/status for the viewer")
        require_equal(nobody.request("GET", "/v1/agents")[0], 401, "the status without a token")
    with checks.check("compose: Caddy offers no HTTP/3, whose port is not published"):
        offer = operator.request("GET", "/readyz")[1].get("Alt-Svc")
        require(offer is None, f"Alt-Svc is {offer}")
    with checks.check("compose: a reload over Caddy applies a new token"):
        token = run(project.gateway, "token", "create", "--name", "wall-display", "--role", "viewer")
        secret, line = re.search(r"^coaty_\S+$", token, re.MULTILINE)[0], re.search(r"^- .*$", token, re.MULTILINE)[0]
        display = Client(f"https://{HOST}", token=secret, authority=authority)
        require_equal(display.request("GET", "/v1/agents")[0], 401, "the status before the reload")
        file = project.folder / "config/gateway.yaml"
        file.write_text(file.read_text().replace("  tokens:\n", f"  tokens:\n    {line}\n"))
        status, _, body = operator.request("POST", "/v1/admin/reload")
        require(status == 200 and json.loads(body) == {"changed": ["access"]}, f"the reload gets status {status}: {body[:300]!r}")
        display.get("/v1/agents")
    return caddy


def check_address(checks, stack, project, caddy):
    """Checks Caddy with an IP address as its host, in place of `caddy`. Clients then send no name in the handshake."""
    with checks.check("compose: clients reach the gateway by an IP address"):
        by_address = Project(project.work / "address", project.gateway, MACHINE)
        caddy.terminate()
        caddy.wait()
        by_address.start(stack, "caddy")
        authority = by_address.volume("caddy_data") / "caddy/pki/authorities/local/root.crt"
        wait("Caddy has its authority", authority.exists)
        client = Client(f"https://{MACHINE}", token=project.tokens[0], authority=authority, server="127.0.0.1")
        wait("Caddy serves the gateway", lambda: client.get("/v1/agents"))


def check_monitoring(checks, stack, project, client, broker):
    sandbox = project.sandbox("prometheus")
    with checks.check("compose: promtool accepts prometheus.yml and the rules"):
        output = run(*sandbox.command("promtool", "check", "config", "/etc/prometheus/prometheus.yml"))
        require("rules found" in output, f"promtool has found no rules: {output}")
    server = Client("http://prometheus:9090")

    def query(expression):
        status, _, body = server.request("POST", "/api/v1/query", urllib.parse.urlencode({"query": expression}).encode(),
                                         Content_Type="application/x-www-form-urlencoded")
        answer = json.loads(body)
        require(status == 200, f"{expression}: {answer.get('error')}")
        return answer["data"]["result"]

    with checks.check("compose: Prometheus scrapes the gateway with its token", is_needed=True):
        project.start(stack, "prometheus")

        def is_scraped():
            targets = server.get("/api/v1/targets")["data"]["activeTargets"]
            require(targets and targets[0]["health"] == "up", f"the target is {[t['lastError'] or t['health'] for t in targets]}")
            return True

        wait("the target is up", is_scraped)
    scraped = datetime.datetime.now(datetime.timezone.utc)
    dashboard.check(checks, project, client, query)
    with checks.check("compose: Prometheus evaluates all alert rules without an error"):
        expected = sorted(rule["alert"] for group in yaml.safe_load(ALERTS.read_text())["groups"] for rule in group["rules"])

        def are_evaluated():
            rules = [rule for group in server.get("/api/v1/rules")["data"]["groups"] for rule in group["rules"]]
            require_equal(sorted(rule["name"] for rule in rules), expected, "the list of rules")
            bad = [f"{rule['name']}: {rule['health']} {rule.get('lastError', '')}" for rule in rules if rule["health"] != "ok"]
            require(not bad, "; ".join(bad))
            # Errors of a rule appear only when its metrics have values.
            return all(datetime.datetime.fromisoformat(rule["lastEvaluation"]) > scraped for rule in rules)

        wait("all rules are evaluated", are_evaluated)
    with checks.check("compose: without the broker, the gateway is not ready, and an alert is raised"):
        broker.terminate()
        wait("the gateway is not ready", lambda: client.request("GET", "/readyz")[0] == 503)
        wait("CoatyGatewayOffline is pending or firing", lambda: query('ALERTS{alertname="CoatyGatewayOffline"}'))

