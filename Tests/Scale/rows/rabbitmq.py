"""Gateways at the nodes of a RabbitMQ cluster."""

import contextlib
import os
import pathlib
import signal
import subprocess
import sys
import time

from cluster import GATEWAYS, RECIPES
from observing import Load, Observer
from rows.kills import KILLS, OBSERVERS, kill_alternately, note_moves, note_rate
from stack import Program
from table import Broken, row

NODES = pathlib.Path(__file__).resolve().parent.parent.parent / "Brokers" / "rabbitmq-cluster"
RATE = 500
# Seconds until the nodes have stopped.
STOP_LIMIT = 30
# The time in which an unreachable node notices that it is in a minority, and its gateway and observers move: net_ticktime of the recipe and
# a quarter, and a margin for a busy machine, in seconds.
PARTITION_LIMIT = 8 * 1.25 + 10
# Seconds within which a gateway has left a killed node.
MOVE_LIMIT = 10


class Nodes:
    """Three nodes with the settings of the recipe, and a gateway at each of the first two, which tries the others in turn."""

    def __init__(self, cluster):
        self.cluster = cluster
        command = [sys.executable, NODES, "--logs", cluster.folder / "rabbitmq", "--configuration", RECIPES / "rabbitmq.conf"]
        # It ends the nodes when its standard input closes.
        program = Program(cluster.folder / "rabbitmq.log", command, pipes=True)
        cluster.stack.callback(self._stop, program)
        words = program.process.stdout.readline().split()
        if words[:1] != ["ready"]:
            raise Broken(f"the RabbitMQ nodes did not start, see {program.log}")
        self.ids = [int(id) for id in words[4:7]]
        self.addresses = [("127.0.0.1", int(port)) for port in words[1:4]]
        for number in range(2):
            self.start_gateway(number)
        cluster.start_front()

    def start_gateway(self, number):
        brokers = self.addresses[number:] + self.addresses[:number]
        # RabbitMQ delivers dots in topics as slashes.
        self.cluster.start_gateway(number, "--topic-dialect", "slashes", brokers=brokers)

    def _stop(self, program):
        program.process.stdin.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            program.process.wait(STOP_LIMIT)
        program.kill()

    def distribution_port(self, node):
        """Returns the port for the connections of other nodes."""
        variables = pathlib.Path(f"/proc/{self.ids[node]}/environ").read_bytes().split(b"\0")
        return int(next(each for each in variables if each.startswith(b"RABBITMQ_DIST_PORT=")).partition(b"=")[2])

    def isolate_first(self):
        """Drops all packets between the first node and the others. The nodes share an address, so that only their ports tell them apart."""
        first, *others = (self.distribution_port(node) for node in range(3))
        rules = f"""table ip partition {{
            chain out {{
                type filter hook output priority 0;
                tcp dport {first} drop
                tcp sport {first} drop
                ct state new tcp dport {{ {others[0]}, {others[1]} }} drop
            }}
        }}"""
        subprocess.run(["nft", "-f", "-"], input=rules, text=True, check=True)
        self.cluster.stack.callback(self.heal)

    def heal(self):
        subprocess.run(["nft", "delete", "table", "ip", "partition"], stderr=subprocess.DEVNULL)


def begin(cluster):
    """Starts the nodes, observers at both gateways and agents at the nodes that go on, and lets them run for a while."""
    nodes = Nodes(cluster)
    observers = [Observer(host, transport) for host in GATEWAYS for transport in ("ws", "sse")]
    cluster.observe(observers)
    load = Load(RATE, nodes.addresses[1:])
    cluster.hold(2)
    return nodes, observers, load


@row(f"three RabbitMQ nodes, a gateway at each of two; kill -9 of a gateway, {max(2, KILLS // 5)} times alternately")
def rabbitmq_kills(cluster):
    """As with one broker: the nodes deliver the events of different agents in different orders, so that a cursor of the other gateway is
    complete or a gap. No event is lost without a gap, and none is delivered twice without a gap between."""
    nodes = Nodes(cluster)
    observers = [Observer(host, transport, f"{transport} {number}") for number, (transport, host) in enumerate(OBSERVERS)]
    cluster.observe(observers)
    load = Load(RATE, nodes.addresses)
    moves = kill_alternately(cluster, load, observers, max(2, KILLS // 5), nodes.start_gateway)
    cluster.settle(load, observers)
    note_rate(cluster, load, RATE)
    note_moves(cluster, moves)


@row("three RabbitMQ nodes, a gateway at each of two; kill -9 of a node")
def rabbitmq_node(cluster):
    """The gateway of the killed node connects to another one within 10 s. Its observers get a gap, those of the other gateway none. Agents
    at the other nodes lose no event without a gap."""
    nodes, observers, load = begin(cluster)
    since = time.monotonic()
    os.kill(nodes.ids[0], signal.SIGKILL)
    wait_for_move(cluster, since, MOVE_LIMIT)
    cluster.hold(2)
    cluster.settle(load, observers)
    check_gaps(cluster, observers)


@row("three RabbitMQ nodes, a gateway at each of two; the node of one cannot reach the others")
def rabbitmq_partition(cluster):
    """The node stops by itself (`pause_minority`) within 10 s, the gateway connects to another one, and its observers get a gap for the
    events that it missed. The observers of the other gateway miss nothing."""
    nodes, observers, load = begin(cluster)
    since = time.monotonic()
    nodes.isolate_first()
    wait_for_move(cluster, since, PARTITION_LIMIT)
    cluster.hold(2)
    nodes.heal()
    cluster.settle(load, observers)
    check_gaps(cluster, observers)
    loops = [cluster.status(number)["cluster"]["loops"] for number in range(2)]
    cluster.promise(loops == [0, 0], f"the gateways report {loops} loops")


def wait_for_move(cluster, since, limit):
    """Waits until the first gateway has lost its connection, is ready again, and sees the other one."""
    cluster.wait("the gateway has lost its connection", lambda: cluster.status(0)["broker"]["reconnects"] or not cluster.is_ready(0), limit)
    cluster.note("connection closed", f"after {time.monotonic() - since:.1f} s")
    cluster.wait("the gateway is at another node", lambda: cluster.is_ready(0), limit)
    cluster.note("gateway ready", f"after {time.monotonic() - since:.1f} s")
    cluster.wait_until_complete()
    cluster.note("gateways see each other", f"after {time.monotonic() - since:.1f} s")


def check_gaps(cluster, observers):
    for each in observers:
        cluster.promise(bool(each.gaps) == (each.host == GATEWAYS[0]), f"observer {each.name} got {each.gaps} gaps")
