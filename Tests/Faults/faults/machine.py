"""A full disk, no file descriptors, busy processors, and a clock that jumps."""

import contextlib
import http.server
import os
import pathlib
import subprocess
import sys
import threading
import time
import uuid

from fault import FLIGHT, RECONNECT_LIMIT
from stack import DESCRIPTORS, Program
from table import row
from wire import Client, request

CONTEXT = "b61740a6-95d7-4d1a-8be5-53f3aa1e0b79"
CONTEXTS = f"""
routing:
  contexts:
    - context: {{ coreType: IoContext, objectType: com.example.Context, objectId: {CONTEXT}, name: Faults }}
      rules: []
"""
RULES = f"/v1/routing/contexts/{CONTEXT}/rules"


def rules(number, size=1):
    """Returns rules that contain a number, several times."""
    return {"rules": [{"name": f"{number}", "condition": ["context.name", ["Equals", "x" * 50]]}] * size}


def fill(path):
    """Fills the disk of a file."""
    with open(path, "wb", buffering=0) as file, contextlib.suppress(OSError):
        while file.write(b"x" * 4096):
            pass


@row("the disk of the state directory, the log and the audit log is full, for 10 s")
def disk_full(fault):
    """A change of rules gets 500 `state-not-kept`. All else works, also a restart. With free space, changes are stored again.
    Nothing that was stored before is lost."""
    disk = fault.folder / "disk"
    disk.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m", "faults", disk], check=True)
    fault.stack.callback(subprocess.run, ["umount", "--lazy", disk], check=True)
    arguments = ["--state-directory", disk / "state", "--audit-log", disk / "audit.log"]
    fault.start_broker()
    fault.start_gateway(*arguments, configuration=CONTEXTS, folder=disk)
    fault.start_traffic()
    filler = disk / "filler"

    def put(number):
        return fault.ask("PUT", RULES, rules(number))[0]

    fault.promise(put(1) == 200, "the first rules were refused")
    fill(filler)
    status, body = fault.ask("PUT", RULES, rules(2, 500))
    fault.promise(status == 500 and body["type"].endswith(":state-not-kept"), f"with a full disk, rules get {status} {body}")
    end = time.monotonic() + 10
    number = 2
    while time.monotonic() < end:
        number += 1
        fault.promise(fault.ask("PUT", RULES, rules(number, 500))[0] == 500, f"with a full disk, rules {number} are accepted")
        # Each second has lines for both logs.
        fault.hold(0.5)
    filler.unlink()
    status = put(number := number + 1)
    fault.promise(status == 200, f"with free space again, rules get {status}")
    fault.note("changes refused", str(number - 2))
    fault.settle(has_gaps=False)
    fill(filler)
    fault.ask("PUT", RULES, rules(number + 1, 500))
    fault.traffic.end()
    fault.gateway.kill()
    # The log of this gateway is on another disk, because the harness reads it.
    fault.start_gateway(*arguments, configuration=CONTEXTS, name="again")
    names = {rule["name"] for rule in fault.ask("GET", RULES)[1]["rules"]}
    fault.promise(names == {str(number)}, f"after a restart with a full disk, the rules are {names}, not {number}")


# The descriptors that the gateway keeps for itself, and a margin for those that it has just freed.
SPARE = 32 + 4


def restrict(gateway, count):
    """Sets the limit of a gateway's file descriptors."""
    subprocess.run(["prlimit", f"--pid={gateway.id}", f"--nofile={count}:{DESCRIPTORS}"], check=True)


@row("all file descriptors of the gateway are used up for 10 s, and the broker is started again meanwhile")
def descriptors(fault):
    """The gateway keeps a few for itself: open streams and connections still work, and it connects to the broker again. New connections
    wait, or get 503. When descriptors are free, it serves new connections within 5 s."""
    fault.start()
    folder = pathlib.Path(f"/proc/{fault.gateway.id}/fd")
    limit = max(int(entry.name) for entry in folder.iterdir()) + 60
    restrict(fault.gateway, limit)
    with contextlib.ExitStack() as stack:
        for _ in range(limit):
            client = stack.enter_context(Client(fault.gateway.port))
            client.send(b"GET /healthz HTTP/1.1\r\n")
        used = lambda: len(list(folder.iterdir()))  # noqa: E731
        fault.wait("the gateway has used up its descriptors", lambda: used() >= limit - SPARE, 5)
        fault.note("descriptors", f"{used()} of {limit}")
        fault.hold(3)
        since = time.monotonic()
        fault.brokers[-1].kill()
        fault.hold(1)
        fault.start_broker()
        back = time.monotonic()
        readers = [fault.traffic.readers[name] for name in ("ws", "sse")]
        delivers = lambda: all(fault.traffic.times[reader.last] >= back for reader in readers)  # noqa: E731
        fault.wait("open streams get events of the new broker", delivers, RECONNECT_LIMIT)
        fault.flights.append((since - FLIGHT, time.monotonic() + FLIGHT))
        fault.hold(back + 6 - time.monotonic())
        fault.promise(used() >= limit - SPARE, f"only {used()} of {limit} descriptors are still used")
    restrict(fault.gateway, DESCRIPTORS)
    freed = time.monotonic()
    fault.wait("a new connection is served", lambda: fault.ask("GET", "/healthz", timeout=2)[0] == 200, 5)
    fault.recover(freed, RECONNECT_LIMIT)
    fault.settle(health=None, failing=("TimeoutError", "ConnectionResetError", "IncompleteReadError"), has_late_calls=True)


BURN = "while True: pass"


@row("other processes use all processors, for 20 s")
def processors(fault):
    """The gateway stays ready, and reports no gaps. Health checks take at most 5 s, and so does the stop."""
    fault.start()
    for number in range(2 * os.cpu_count()):
        fault.keep(Program(fault.folder / "burn.log", [sys.executable, "-c", BURN]))
    since = time.monotonic()
    fault.hold(20)
    change = fault.traffic.change(since, False)
    fault.promise(change is None, f"the gateway is not ready: {change}")
    fault.settle(has_gaps=False, health=5)
    fault.stop()


class BrokenProvider:
    """An identity provider that refuses to send its keys. The gateway asks again after 1, 2, 4, 8, 16, … seconds."""

    def __init__(self):
        self.count = 0
        provider = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                provider.count += 1
                self.send_error(503)

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{self.server.server_port}/keys"
        #: Clients without a token may do everything.
        self.access = f"""
access:
  anonymous: [admin]
  jwt: {{ issuer: "https://id.example.com", audience: faults, keys: "{url}", roles: claims.roles }}
"""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()


@row("the clock is set back by an hour, and then forward by a day")
def clock(fault):
    """Nothing depends on it: no connection breaks, leases and idempotency keys stay valid, changes are stored, and the keys of the identity
    provider are still fetched."""
    library, file = fault.folder / "clock.so", fault.folder / "clock"
    source = pathlib.Path(__file__).parent.parent / "clock.c"
    subprocess.run(["clang", "-O1", "-Wall", "-shared", "-fPIC", "-o", library, source], check=True)

    def shift(seconds):
        # In place, because the gateway has mapped the file.
        with open(file, "r+b" if file.exists() else "wb") as content:
            content.write(seconds.to_bytes(8, sys.byteorder, signed=True))

    shift(0)
    provider = fault.stack.enter_context(BrokenProvider())
    environment = {"LD_PRELOAD": library, "FAULTS_CLOCK": file}
    fault.start("--state-directory", fault.folder / "state", configuration=CONTEXTS + provider.access, environment=environment)
    node = {"contextName": "Faults", "leaseDuration": 60_000, "ioSources": [{"name": "s", "valueType": "v"}]}
    status, node = fault.ask("POST", "/v1/io/nodes", node)
    fault.promise(status == 201, f"the IO node gets {status}")
    body = {"object": {"coreType": "CoatyObject", "objectType": "com.example.Once", "objectId": str(uuid.uuid4()), "name": "Once"}}
    key = {"Idempotency_Key": "once"}
    fault.ask("POST", "/v1/channel/once", body, **key)
    for number, seconds in enumerate((-3600, 86400)):
        since = time.monotonic()
        shift(seconds)
        hour = time.strftime("%Y-%m-%dT%H:", time.gmtime(time.time() + seconds))
        # A refused request is logged, with the time.
        fault.wait("the log has the new time", lambda hour=hour: hour in seen(fault), 5)
        fault.hold(5)
        asked = provider.count
        fault.wait("the gateway asks for keys again", lambda asked=asked: provider.count > asked, 20)
        change = fault.traffic.change(since, False)
        fault.promise(change is None, f"{seconds} s: the gateway is not ready: {change}")
        status, _ = fault.ask("GET", f"/v1/io/nodes/{node['node']['objectId']}")
        fault.promise(status == 200, f"{seconds} s: the IO node gets {status}: its lease has ended")
        with Client(fault.gateway.port) as client:
            client.send(request("POST", "/v1/channel/once", body, **key))
            _, fields = client.head()
        fault.promise(fields.get("idempotency-replayed") == "true", f"{seconds} s: the repeated request is not recognized")
        status = fault.ask("PUT", RULES, rules(number))[0]
        fault.promise(status == 200, f"{seconds} s: rules get {status}")
    shift(0)
    fault.hold(2)
    fault.settle(has_gaps=False)


def seen(fault):
    """Makes the gateway log a line. Returns the log."""
    fault.ask("POST", "/v1/admin/reload")
    return fault.gateway.log.read_text(errors="replace")
