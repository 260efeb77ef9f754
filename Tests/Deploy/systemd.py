"""Checks the systemd unit with systemd-analyze, and runs its command with its settings."""

import contextlib
import re
import signal
import subprocess

from checks import ROOT, require, require_equal, run, wait
from sandbox import Sandbox, start_gateway

UNIT = ROOT / "deploy/coaty-gateway.service"
# The highest exposure in tenths, as systemd-analyze counts it from 0 to 100.
EXPOSURE = 20


def check(checks, work, gateway):
    text = UNIT.read_text()
    with checks.check("systemd: systemd-analyze verify reports nothing"):
        # It exits with 0 after most errors.
        path = "/etc/systemd/system/coaty-gateway.service"
        sandbox = Sandbox(files={path: UNIT}, temporary=["/run", "/tmp"], gateway=gateway)
        output = run(*sandbox.command("systemd-analyze", "verify", "--man=no", path))
        require(not output, output)
    with checks.check(f"systemd: the exposure is at most {EXPOSURE / 10}"):
        output = run("systemd-analyze", "security", "--offline=true", f"--threshold={EXPOSURE}", "--no-pager", UNIT)
        exposure = re.search(r"Overall exposure level for coaty-gateway.service: ([0-9.]+)", output)
        require(exposure, f"there is no exposure in {output!r}")
    print(f"        exposure {exposure[1]}")
    with contextlib.ExitStack() as stack:
        check_command(checks, stack, work, gateway, text)


def check_command(checks, stack, work, gateway, text):
    """Starts the command of the unit with its state directory, reloads it and stops it, as systemd does."""
    command = re.search(r"^ExecStart=coaty-gateway(.*)$", text, re.MULTILINE)[1].split()
    reload = re.search(r"^ExecReload=/bin/sh -c 'kill -(\w+) \$MAINPID'$", text, re.MULTILINE)[1]
    limit = int(re.search(r"^TimeoutStopSec=(\d+)s$", text, re.MULTILINE)[1])
    state = work / "coaty-gateway"
    state.mkdir(mode=0o700)
    environment = dict(re.findall(r"^Environment=(\w+)=(.*)$", text, re.MULTILINE))
    environment = {name: value.replace("%S", str(work)) for name, value in environment.items()}
    configuration = work / "gateway.yaml"
    configuration.write_text("request-log: slow\n")
    environment |= {"COATY_GATEWAY_CONFIG": str(configuration), "COATY_GATEWAY_EMBEDDED_BROKER_LISTEN": "127.0.0.1:0"}
    log = work / "gateway.log"
    with checks.check("systemd: the command starts with the settings of the unit", is_needed=True):
        require_equal(environment["COATY_GATEWAY_STATE_DIRECTORY"], str(state), "the state directory")
        process = start_gateway(stack, log, gateway, *command, **environment)
        wait("the gateway is ready", lambda: "ready on" in log.read_text())
    with checks.check("systemd: ExecReload reloads the configuration"):
        configuration.write_text("request-log: all\n")
        process.send_signal(getattr(signal, f"SIG{reload}"))
        wait("the log reports it", lambda: re.search(r"configuration reloaded.*request-log", log.read_text()), 15)
    with checks.check("systemd: SIGTERM stops the gateway with status 0, within TimeoutStopSec"):
        process.terminate()
        try:
            require_equal(process.wait(limit), 0, "the exit status")
        except subprocess.TimeoutExpired:
            require(False, f"the gateway runs after {limit} s")
