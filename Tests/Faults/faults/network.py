"""Lost packets, and names that change their address."""

import contextlib
import pathlib
import re
import socket
import subprocess
import time

from fault import NOTICE_LIMIT
from table import row

NAME = "broker.test"


def drop(fault, percent):
    """Drops some of the packets between the gateway and the broker, in both directions; 0 ends it."""
    some = "" if percent == 100 else f"numgen random mod 100 < {percent}"
    rules = "".join(f"tcp {end} {fault.gateway_port} {some} counter drop\n" for end in ("dport", "sport")) if percent else ""
    table = f"flush ruleset\ntable inet faults {{\nchain input {{\ntype filter hook input priority 0;\n{rules}}}\n}}\n"
    subprocess.run(["nft", "-f", "-"], input=table, text=True, check=True)


def note_dropped(fault):
    """Notes the number of packets that were dropped in each direction."""
    rules = subprocess.run(["nft", "list", "ruleset"], stdout=subprocess.PIPE, text=True, check=True).stdout
    counts = [int(count) for count in re.findall(r"counter packets (\d+)", rules)]
    fault.note("packets dropped", f"{counts[0]} to the broker, {counts[1]} from it")
    fault.promise(min(counts) > 0, "no packets were dropped")


@row("a fifth of the packets to and from the broker is dropped, for 15 s")
def packets_lossy(fault):
    """TCP repeats the packets. If the connection breaks nevertheless, the gateway connects again; nothing else is lost."""
    fault.start()
    fault.stack.callback(drop, fault, 0)
    since = time.monotonic()
    drop(fault, 20)
    fault.hold(15)
    note_dropped(fault)
    drop(fault, 0)
    fault.recover(time.monotonic())
    reconnects = fault.ask("GET", "/v1/status")[1]["broker"]["reconnects"]
    fault.note("reconnects", str(reconnects))
    if reconnects:
        fault.flights.append((since, time.monotonic()))
    fault.settle(has_gaps=reconnects > 0)


@row("all packets to and from the broker are dropped, for 25 s")
def packets_gone(fault):
    """/readyz reports it within twice the check interval of 3 s, and 2 s. Calls get 503 or 504 in time. The gateway connects again within
    18 s."""
    fault.start()
    fault.stack.callback(drop, fault, 0)
    since = time.monotonic()
    drop(fault, 100)
    fault.notice(since, NOTICE_LIMIT, ["no-answer", "timed-out"])
    fault.hold(since + 25 - time.monotonic())
    note_dropped(fault)
    drop(fault, 0)
    fault.recover(time.monotonic())
    fault.settle()


class Names:
    """Replaces /etc/hosts and /etc/resolv.conf for this run, which has mounts of its own."""

    def __init__(self, fault):
        self.files = {}
        for path in ("/etc/hosts", "/etc/resolv.conf"):
            file = fault.folder / pathlib.Path(path).name
            file.write_text("")
            target = pathlib.Path(path).resolve()
            subprocess.run(["mount", "--bind", file, target], check=True)
            fault.stack.callback(subprocess.run, ["umount", target], check=True)
            self.files[path] = file
        self.files["/etc/resolv.conf"].write_text("nameserver 127.0.0.4\n")
        self.point()

    def point(self, address=None):
        """Gives the broker's name an address, or none."""
        self.files["/etc/hosts"].write_text("127.0.0.1 localhost\n" + (f"{address} {NAME}\n" if address else ""))


@row("the broker's name changes its address, and has none for 5 s")
def dns(fault):
    """/readyz reports `host-not-found` meanwhile. The gateway resolves the name for each attempt, and finds the new broker within 18 s.
    A DNS server that does not answer delays neither other requests nor the stop."""
    names = Names(fault)
    names.point("127.0.0.2")
    fault.start_broker("broker", address="127.0.0.2")
    fault.start_gateway(broker=f"mqtt://{NAME}:{fault.gateway_port}")
    fault.start_traffic(address="127.0.0.2")
    since = time.monotonic()
    names.point()
    fault.brokers[-1].kill()
    fault.notice(since, 2)
    fault.notice(since, 10, ["host-not-found"])
    fault.hold(since + 5 - time.monotonic())
    fault.start_broker("broker-2", address="127.0.0.3")
    names.point("127.0.0.3")
    fault.traffic.address = "127.0.0.3"
    fault.recover(time.monotonic())
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as silent:
        silent.bind(("127.0.0.4", 53))
        since = time.monotonic()
        names.point()
        fault.brokers[-1].kill()
        fault.notice(since, 2)
        fault.wait("the gateway asks the DNS server", lambda: silent.recv(512, socket.MSG_DONTWAIT), 10)
        fault.hold(8)
        names.point("127.0.0.3")
        fault.start_broker("broker-2", address="127.0.0.3")
        fault.recover(time.monotonic(), 30)
        fault.settle()
        names.point()
        fault.brokers[-1].kill()
        drain(silent)
        fault.wait("the gateway asks the DNS server", lambda: silent.recv(512, socket.MSG_DONTWAIT), 15)
        fault.stop()


def drain(server):
    """Discards the received queries."""
    with contextlib.suppress(BlockingIOError):
        while server.recv(512, socket.MSG_DONTWAIT):
            pass
