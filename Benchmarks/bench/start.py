"""The time from the start of the process to its ready line, and its memory then."""

from . import contestants
from .processes import Broker, Server, program
from .results import Metric, Result, in_rounds

METRICS = [
    Metric("time", "ms to ready", 1, is_main=True, is_higher_better=False),
    Metric("memory", "MiB when ready", 1, is_higher_better=False),
    Metric("cost", "ms of processor time", 0, is_higher_better=False),
]


def observe(server):
    with server:
        return {"time": server.seconds_to_ready * 1000, "memory": server.memory() / 1024, "cost": server.processor_seconds() * 1000}


def with_broker():
    with Broker() as broker:
        return observe(contestants.gateway(broker))


def embedded():
    return observe(Server([program("coaty-gateway"), "--port", 0, "--embedded-broker-listen", "127.0.0.1:0"]))


def run(options):
    # The first start reads the program from the disk.
    with_broker()
    result = Result("start", "Start", METRICS, subject="")
    yield in_rounds(options, result, {"gateway with a running broker": with_broker, "gateway with its embedded broker": embedded})
