"""Checks the logrotate configuration, and rotates the audit log of a running gateway with it."""

import contextlib
import signal

from checks import ROOT, require, require_equal, run, wait
from clients import Client
from sandbox import Sandbox, start_gateway

CONFIGURATION = ROOT / "deploy/logrotate/coaty-gateway"


def check(checks, work, gateway):
    logs, programs, state = work / "log", work / "programs", work / "state"
    for folder in (logs, programs, state):
        folder.mkdir()
    # Instead of systemctl, which needs systemd: notes its arguments.
    (programs / "systemctl").write_text('#!/bin/sh\necho "$*" >>/var/log/coaty-gateway/called\n')
    (programs / "systemctl").chmod(0o755)
    sandbox = Sandbox(
        0, 0, files={"/etc/logrotate.d/coaty-gateway": CONFIGURATION, "/programs": programs},
        folders={"/var/log/coaty-gateway": logs, "/var/lib/logrotate": state}, environment={"PATH": "/programs:/usr/bin:/usr/sbin"},
        temporary=["/tmp"],
    )
    files = ["-s", "/var/lib/logrotate/status", "/etc/logrotate.d/coaty-gateway"]
    audit = logs / "audit.log"
    with contextlib.ExitStack() as stack:
        client = Client("http://127.0.0.1:8080", token="wrong-token-of-a-stranger")

        def fail():
            require_equal(client.request("GET", "/v1/agents")[0], 401, "the status of a request with a wrong token")

        with checks.check("logrotate: the gateway writes its audit log", is_needed=True):
            arguments = ["--port", "8080", "--embedded-broker-listen", "127.0.0.1:0", "--audit-log", audit]
            token = "coaty_operator-of-logrotate"
            process = start_gateway(stack, work / "gateway.log", gateway, *arguments, COATY_GATEWAY_TOKEN=token)
            wait("the gateway is ready", lambda: "ready on" in (work / "gateway.log").read_text())
            fail()
            wait("the audit log has a line", lambda: "authentication-failed" in audit.read_text())
        with checks.check("logrotate: logrotate -d accepts the configuration"):
            output = run(*sandbox.command("logrotate", "-d", *files))
            require("error" not in output.lower() and "audit.log" in output, output)
        with checks.check("logrotate: it rotates the audit log and reloads the service"):
            run(*sandbox.command("logrotate", "-f", *files))
            rotated = [path for path in logs.iterdir() if path.name.startswith("audit.log-")]
            require_equal((len(rotated), audit.exists()), (1, False), "the pair of rotated files and new file before the reload")
            calls = ["is-active --quiet coaty-gateway.service", "reload coaty-gateway.service"]
            require_equal((logs / "called").read_text().splitlines(), calls, "the list of calls of systemctl")
        with checks.check("logrotate: after the reload, the gateway writes to a new file"):
            process.send_signal(signal.SIGHUP)
            wait("the gateway has opened a new file", audit.exists, 15)

            # The log has at most one line in a second about an address.
            client.address = "127.0.0.73"
            fail()
            wait("the new file has a line", lambda: "127.0.0.73" in audit.read_text(), 15)
