"""Runs one row of the table: starts all programs, attacks, waits for the recovery, and stops the gateways."""

import contextlib
import json
import select
import sys
import threading
import time

from refusing import RefusingBroker
from stack import HERE, TIMEOUT, Broker, Gateway, Program

# The default of the setting `maximum-memory`: how much the resident memory may grow after the start, in bytes.
MAXIMUM_MEMORY = 512 << 20
# Seconds that SIGTERM may take, and seconds after which the gateway is killed.
MAXIMUM_STOP = 10
STOP_TIMEOUT = 15
# A gateway that needs more memory is killed, to protect the machine.
DANGEROUS_MEMORY = 10 << 30
# Seconds between the start of the programs and the attack.
SETTLING = 2
# Seconds that an attack may overrun before it is ended.
GRACE = 10
# Latencies below this, in seconds, are normal.
CALM_LATENCY = 0.2
# Minimum number of seconds to measure after the attack.
AFTERWARDS = 2
# Seconds that the well-behaved client has for its report.
REPORT_TIMEOUT = 40
SAMPLING_INTERVAL = 0.05


class WellBehavedClient(Program):
    """The well-behaved client of one gateway."""

    def __init__(self, folder, name, gateway, broker, rate):
        # It has a higher priority, so that it measures the other programs and not itself.
        super().__init__(folder / f"{name}.log", [sys.executable, HERE / "well_behaved.py", gateway, broker, rate], nice=-5, pipes=True)
        self.status = None
        self.result = None
        self._is_ready = threading.Event()
        self._has_reported = threading.Event()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self):
        with contextlib.suppress(ValueError, OSError):
            for line in self.process.stdout:
                message = json.loads(line)
                if "report" in message:
                    self.result = message["report"]
                    self._has_reported.set()
                else:
                    self.status = message
                self._is_ready.set()
        self._is_ready.set()
        self._has_reported.set()

    def wait_until_ready(self):
        """Waits until its readers are subscribed. Returns whether they are."""
        self._is_ready.wait(TIMEOUT)
        return self.status is not None

    @property
    def is_calm(self):
        return self.status is not None and self.status["worst"] < CALM_LATENCY and self.status["behind"] < 50

    def begin_report(self, since, is_now=False):
        with contextlib.suppress(OSError):
            self.process.stdin.write(f"report {since}{' now' if is_now else ''}\n")
            self.process.stdin.flush()

    def end_report(self):
        self._has_reported.wait(REPORT_TIMEOUT)
        return self.result


class Side:
    """A gateway with its broker and its well-behaved client: the attacked gateway or the control."""

    def __init__(self, stack, folder, name, binary, rate, row=None):
        self.name = name
        self.failures = []
        options = {}
        if row is not None and row.broker:
            refusing = RefusingBroker(row.broker, folder, lambda program: self._keep(stack, program))
            refusing.start()
            self.broker, self.broker_port, gateway_broker = refusing.main, refusing.port, refusing.gateway_port
            options["arguments"] = refusing.arguments
        else:
            self.broker = self._keep(stack, Broker(folder, f"{name}-broker"))
            self.broker_port = gateway_broker = self.broker.port
        self.trickle = None
        if row is not None and row.trickles:
            log = folder / "trickling-broker.log"
            proxy = self._keep(stack, Program(log, [sys.executable, HERE / "trickling_broker.py", self.broker.port]))
            ports = proxy.wait_for_line(r"ready (\d+) (\d+)")
            if not ports:
                sys.exit(f"hostile: the trickling broker did not start, see {log}")
            gateway_broker, self.trickle = int(ports[1]), int(ports[2])
        if row is not None and row.configuration:
            options["configuration"] = row.configuration
        if row is not None and row.descriptors:
            options["descriptors"] = row.descriptors
        self.gateway = self._keep(stack, Gateway(folder, f"{name}-gateway", binary, gateway_broker, **options))
        self.well_behaved = None
        self.peak = 0
        self.end_memory = 0
        self.stop_time = None
        # Whether all events must be delivered when the measurement ends.
        self.must_deliver = True
        self.processor_time = self.broker_processor_time = 0
        if self.gateway.port:
            client = WellBehavedClient(folder, f"{name}-well-behaved", self.gateway.port, self.broker_port, rate)
            self.well_behaved = self._keep(stack, client)
        self.start_memory = self.gateway.memory()

    def _keep(self, stack, program):
        stack.callback(program.kill)
        return program

    def begin(self):
        """Records the figures at the start of the measurement."""
        self.start_memory = self.gateway.memory()
        self.start_time = self.gateway.processor_time()
        self.broker_start_time = self.broker.processor_time()

    def end(self):
        """Records the figures at the end of the measurement."""
        if not self.gateway.is_running:
            return
        self.peak = max(self.peak, self.gateway.memory("VmHWM"))
        self.end_memory = self.gateway.memory()
        self.processor_time = self.gateway.processor_time() - self.start_time
        self.broker_processor_time = self.broker.processor_time() - self.broker_start_time

    def check(self, was_alive, stop):
        """Adds the failures of this side, after its gateway has stopped."""
        report = self.well_behaved.result if self.well_behaved else None
        growth = self.peak - self.start_memory
        if not was_alive:
            self.failures.append(f"the gateway process died with status {self.gateway.process.returncode}")
        if growth > MAXIMUM_MEMORY:
            self.failures.append(f"memory grew by {growth >> 20} MiB, more than {MAXIMUM_MEMORY >> 20} MiB")
        if was_alive and (stop is None or stop > MAXIMUM_STOP):
            took = f"{stop:.1f} s" if stop is not None else f"more than {STOP_TIMEOUT} s"
            self.failures.append(f"SIGTERM took {took}")
        if report is None:
            self.failures.append("the well-behaved client did not report")
            return
        for name, reader in report["readers"].items():
            if reader["lost"]:
                self.failures.append(f"{reader['lost']:.0f} events lost without a gap ({name})")
            if reader["late"] and self.must_deliver:
                self.failures.append(f"{reader['late']:.0f} events neither delivered nor in a gap when the measurement ended ({name})")

    def result(self):
        return {
            "memory": {"start": self.start_memory, "peak": self.peak, "end": self.end_memory},
            "cpu": {"gateway": self.processor_time, "broker": self.broker_processor_time},
            "stop": self.stop_time,
            "well_behaved": self.well_behaved.result if self.well_behaved else None,
        }


def attack_command(row, **options):
    return [sys.executable, HERE / "attack.py", row.name, json.dumps(options)]


def run_row(row, folder, binary, *, rate, recovery, seconds, addresses, parameters):
    """Runs a row and its control. Returns all figures and the failures."""
    result = {"row": row.name, "parameters": row.parameters | parameters, "stops": row.stops}
    result |= {"failures": [], "outcomes": {}, "notes": []}
    with contextlib.ExitStack() as stack:
        control = Side(stack, folder, "control", binary, rate)
        attacked = Side(stack, folder, "attack", binary, rate, row)
        if not attacked.gateway.port:
            return refused_start(result, row, attacked)
        sides = [attacked, control]
        for side in sides:
            if not side.well_behaved.wait_until_ready():
                result["failures"].append(f"the well-behaved client of the {side.name} can't connect, see {side.well_behaved.log}")
                side.well_behaved.kill()
                side.well_behaved = None
        time.sleep(SETTLING)
        for side in sides:
            side.begin()
        since = time.monotonic()
        command = attack_command(
            row,
            gateway=attacked.gateway.port,
            broker=attacked.broker_port,
            trickle=attacked.trickle,
            refusing=row.broker,
            seconds=seconds,
            addresses=addresses,
            parameters=parameters,
        )
        attacker = Program(folder / "attacker.log", command, nice=5, pipes=True)
        stack.callback(attacker.kill)
        text = watch(attacker, attacked, seconds + GRACE)
        attack_end = time.monotonic()
        report = json.loads(text) if text else {"failures": [f"the attacker did not report, see {attacker.log}"]}
        attacker.kill()
        result["seconds"] = attack_end - since
        result["outcomes"] = report.get("outcomes", {})
        result["notes"] = report.get("notes", [])
        result["failures"] += report.get("failures", [])
        result["attacker_cpu"] = report.get("cpu", 0)
        # If the row stops the gateway during the work of the attack, events that are not yet delivered don't count.
        attacked.must_deliver = not row.stops
        result["recovery"] = None if row.stops else await_recovery(attacked, recovery)
        for side in sides:
            if side.well_behaved:
                side.well_behaved.begin_report(since, is_now=row.stops)
        for side in sides:
            if side.well_behaved:
                side.well_behaved.end_report()
            side.end()
        alive = [side.gateway.is_running for side in sides]
        for side, was_alive in zip(sides, alive):
            if was_alive:
                side.stop_time = side.gateway.stop(STOP_TIMEOUT)
            side.check(was_alive, side.stop_time)
            result[side.name] = side.result()
        result["failures"] += attacked.failures + [f"control: {failure}" for failure in control.failures]
        return result


def watch(attacker, side, seconds):
    """Waits for the attack to end, and samples the memory. Returns the output of the attacker."""
    deadline = time.monotonic() + seconds
    was_terminated = False
    while True:
        memory = side.gateway.memory()
        side.peak = max(side.peak, memory)
        if memory > DANGEROUS_MEMORY:
            side.gateway.kill()
        if select.select([attacker.process.stdout], [], [], SAMPLING_INTERVAL)[0]:
            return attacker.process.stdout.readline()
        if time.monotonic() > deadline:
            if was_terminated:
                return ""
            attacker.process.terminate()
            was_terminated = True
            deadline += 5


def await_recovery(side, seconds):
    """Returns the seconds until the well-behaved client's latencies are normal, or None if they are not after `seconds`."""
    start = time.monotonic()
    calm_since = None
    while (passed := time.monotonic() - start) < seconds:
        side.peak = max(side.peak, side.gateway.memory())
        if not side.gateway.is_running or side.well_behaved is None:
            return None
        # The status covers the last second.
        calm_since = (calm_since or time.monotonic()) if side.well_behaved.is_calm else None
        if calm_since and passed > AFTERWARDS:
            return max(0, calm_since - start - 1)
        time.sleep(SAMPLING_INTERVAL)
    return None


def refused_start(result, row, side):
    """Returns the result of a row whose gateway did not start. That is expected if the row limits its descriptors."""
    side.gateway.process.wait()
    last = side.gateway.log.read_text(errors="replace").strip().rpartition("\n")[2]
    result["notes"].append(f"the gateway refused to start, with exit status {side.gateway.process.returncode}: {last}")
    if row.descriptors is None or side.gateway.process.returncode <= 0:
        result["failures"].append("the gateway did not start")
    return result
