"""Child processes, their processor time and memory, and the broker of a measurement."""

import os
import pathlib
import re
import resource
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time

READY_SECONDS = 20

FOLDER = pathlib.Path(__file__).resolve().parent.parent
BUILD = FOLDER.parent / ".build" / "bench"
RELEASE = FOLDER.parent / ".build" / "release"

# The machine's own configuration of a gateway must not change what is measured.
ENVIRONMENT = {name: value for name, value in os.environ.items() if not name.startswith("COATY_")}


class Failed(Exception):
    """A measurement whose result must not be used."""


def program(name):
    """Returns the path of a Swift program. COATY_BENCH_PROGRAMS and COATY_BENCH_GATEWAY replace the release build."""
    if name == "coaty-gateway" and (gateway := os.environ.get("COATY_BENCH_GATEWAY")):
        return pathlib.Path(gateway).resolve()
    return pathlib.Path(os.environ.get("COATY_BENCH_PROGRAMS", RELEASE)).resolve() / name


def output(*command, seconds):
    """Runs a program to its end. Returns its output."""
    result = subprocess.run([str(part) for part in command], capture_output=True, text=True, timeout=seconds, env=ENVIRONMENT)
    if result.returncode:
        raise Failed(f"{command[0]}: status {result.returncode}: {result.stderr.strip()}")
    return result.stdout


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def raise_file_limit():
    """Raises the limit of open files as far as possible."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


class Server:
    """A child process for the duration of a `with` block. It is ready when the block begins.

    `ready` is a regular expression of the line on which the process reports that it is ready. Its group is the port.
    """

    def __init__(self, command, ready=r"ready on http://127\.0\.0\.1:(\d+)", environment=None, folder=None, ready_seconds=READY_SECONDS):
        self.command = [str(part) for part in command]
        self.ready, self.ready_seconds = ready, ready_seconds
        self.environment = ENVIRONMENT | (environment or {})
        self.folder = folder

    def __enter__(self):
        self.started = time.monotonic()
        self.process = subprocess.Popen(
            self.command,
            env=self.environment,
            cwd=self.folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE if self.ready else subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        try:
            self.wait_until_ready()
        except BaseException:
            self.__exit__()
            raise
        return self

    def wait_until_ready(self):
        if not self.ready:
            return
        late = threading.Timer(self.ready_seconds, self.stop)
        late.start()
        try:
            for line in self.process.stdout:
                if found := re.search(self.ready, line):
                    self.seconds_to_ready = time.monotonic() - self.started
                    self.port = int(found[1]) if found.groups() else None
                    # Later output must not fill the pipe.
                    threading.Thread(target=self.process.stdout.read, daemon=True).start()
                    return
        finally:
            late.cancel()
        raise Failed(f"{self.command[0]} ended or was not ready within {self.ready_seconds} s")

    def __exit__(self, *_):
        self.stop()

    def stop(self):
        self.process.terminate()
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def processor_seconds(self):
        """Returns the processor time of the process and of its children, in seconds."""
        return sum(map(processor_seconds, tree(self.process.pid)))

    def memory(self, peak=False):
        """Returns the resident memory of the process in KiB."""
        text = pathlib.Path(f"/proc/{self.process.pid}/status").read_text()
        return int(re.search(rf"{'VmHWM' if peak else 'VmRSS'}:\s+(\d+)", text)[1])


def tree(pid):
    """Returns the ids of a process and of its descendants."""
    found = [pid]
    for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
        for child in (task / "children").read_text().split():
            found += tree(int(child))
    return found


def processor_seconds(pid):
    """Returns the processor time of a process. The clock of the process has nanoseconds, /proc/<pid>/stat only hundredths of a second."""
    # What clock_getcpuclockid(3) returns for a process.
    return time.clock_gettime(~pid << 3 | 2)


def idle_seconds():
    """Returns how long processors had no work since the start of the machine, on average. /proc/stat measures idle time, and samples the rest."""
    fields = pathlib.Path("/proc/stat").read_text().split("\n")[0].split()
    return (int(fields[4]) + int(fields[5])) / os.sysconf("SC_CLK_TCK") / os.cpu_count()


class Broker(Server):
    """A mosquitto on a free port, with a WebSocket listener on another one if `websockets`.

    The settings are those of deploy/compose/mosquitto/mosquitto.conf as far as they matter for speed. The queue has no bound, because
    mosquitto drops QoS 0 messages for a subscriber that is slow for a moment.
    """

    def __init__(self, websockets=False):
        self.port, self.websocket_port = free_port(), None
        text = "per_listener_settings false\nallow_anonymous true\nset_tcp_nodelay true\nmax_queued_messages 0\nsys_interval 1\n"
        if os.geteuid() == 0:
            text += "user root\n"
        text += f"listener {self.port} 127.0.0.1\n"
        if websockets:
            self.websocket_port = free_port()
            text += f"listener {self.websocket_port} 127.0.0.1\nprotocol websockets\nsocket_domain ipv4\n"
        self.configuration = tempfile.NamedTemporaryFile("w", suffix=".conf")
        self.configuration.write(text)
        self.configuration.flush()
        binary = shutil.which("mosquitto", path="/usr/sbin:/usr/local/sbin:/usr/bin:/usr/local/bin") or sys.exit("mosquitto is missing")
        super().__init__([binary, "-c", self.configuration.name], ready=None)

    def wait_until_ready(self):
        deadline = time.monotonic() + READY_SECONDS
        for port in filter(None, [self.port, self.websocket_port]):
            while True:
                try:
                    socket.create_connection(("127.0.0.1", port)).close()
                    break
                except OSError:
                    if self.process.poll() is not None or time.monotonic() > deadline:
                        raise Failed("mosquitto did not start") from None
                    time.sleep(0.02)

    def __exit__(self, *_):
        super().__exit__()
        self.configuration.close()
