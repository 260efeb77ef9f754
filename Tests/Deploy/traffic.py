"""Checks that all transports of the gateway pass through a proxy."""

import contextlib
import copy
import json

from checks import require, require_equal, wait

# The longest delay of an event, in seconds. A proxy that buffers holds an event back for longer.
EVENT_DELAY = 3
# The number of handshakes that alternate with other requests.
ROUNDS = 20
# An address that a client pretends to have.
FORGED = "6.6.6.6"


def check_proxy(checks, name, client, audit, *, stranger):
    """Checks a proxy with TLS. `audit` returns the text of the gateway's audit log, and `stranger` is an unused loopback address."""
    with checks.check(f"{name}: a request without TLS is redirected"):
        plain = copy.copy(client)
        plain.context, plain.port = None, 80
        status, fields, _ = plain.request("GET", "/v1/info")
        require(status in (301, 308), f"status {status}")
        require_equal(fields["Location"], f"https://{client.name}/v1/info", "Location")
    with checks.check(f"{name}: a REST request, and a body of 1 MB"):
        client.get("/v1/agents")
        client.publish("deploy", "large", size=1_000_000)
    with checks.check(f"{name}: a request from the console's own page"):
        status, _, body = client.request("GET", "/v1/agents", Origin=f"https://{client.name}", Sec_Fetch_Site="same-origin")
        require(status == 200, f"status {status}: {body[:300]!r}")
    with checks.check(f"{name}: an event stream, without buffering"), contextlib.closing(
        client.stream("/v1/sse/channel?channelId=deploy")
    ) as stream:
        for number in range(3):
            client.publish("deploy", f"event-{number}")
            stream.wait_for(f"event-{number}".encode(), EVENT_DELAY)
    with checks.check(f"{name}: a WebSocket, in both directions"), contextlib.closing(client.socket()) as socket:
        socket.send({"op": "subscribe", "id": "s", "event": "channel", "channelId": "deploy"})
        socket.wait_for("ok", id="s")
        client.publish("deploy", "to the WebSocket")
        event = socket.wait_for("event", id="s")
        require_equal(event["data"]["object"]["name"], "to the WebSocket", "the name of the received object")
    with checks.check(f"{name}: WebSockets between other requests"):
        # The gateway refuses a handshake on a connection that has carried another request.
        for _ in range(ROUNDS):
            client.get("/v1/agents")
            client.socket().close()
    with checks.check(f"{name}: the gateway gets the address of the client"):
        # The address is in the audit log after a failed authentication. The forged address must have no effect.
        other = copy.copy(client)
        other.token, other.address = "a-wrong-token-of-a-stranger", stranger
        status, _, _ = other.request("GET", "/v1/agents", X_Forwarded_For=FORGED)
        require_equal(status, 401, "the status of a request with a wrong token")

        def is_logged():
            addresses = {line["address"] for line in failures(audit())}
            require(stranger in addresses, f"the audit log has the addresses {sorted(addresses)}, but not {stranger}")
            return True

        wait("the audit log has the address of the client", is_logged, timeout=10)


def failures(text):
    return [json.loads(line) for line in text.splitlines() if line.startswith("{") and '"authentication-failed"' in line]
