"""The gateway, brokers and other programs of a row, with their memory and processor time."""

import contextlib
import os
import pathlib
import re
import signal
import socket
import subprocess
import sys
import time

from wire import mqtt_connect, tls_context

HERE = pathlib.Path(__file__).resolve().parent
# Seconds within which programs must be ready.
TIMEOUT = 20
TICK = 0.02
# File descriptors of each gateway, and of the harness.
DESCRIPTORS = 20_000
CLOCK_TICKS = os.sysconf("SC_CLK_TCK")


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Program:
    """A child process that writes its output to a file. The kernel kills it if the harness ends first."""

    def __init__(self, log, command, *, descriptors=DESCRIPTORS, nice=0, pipes=False):
        self.log = log
        variables = {name: value for name, value in os.environ.items() if not name.startswith("COATY_")}
        prefix = ["setpriv", "--pdeathsig", "KILL", "--", "prlimit", f"--nofile={descriptors}:{descriptors}", "--"]
        if nice:
            # A negative value needs root. Without root, `nice` prints a warning and runs the program.
            prefix += ["nice", "-n", str(nice)]
        pipe = subprocess.PIPE if pipes else subprocess.DEVNULL
        with open(log, "ab") as errors:
            self.process = subprocess.Popen(
                [*prefix, *map(str, command)],
                env=variables | {"PYTHONDONTWRITEBYTECODE": "1"},
                stdin=pipe,
                stdout=pipe if pipes else errors,
                stderr=errors,
                text=True,
            )

    @property
    def id(self):
        return self.process.pid

    @property
    def is_running(self):
        return self.process.poll() is None

    def wait_for_line(self, pattern):
        """Returns the match of a pattern in the log, or None if the program ends first or is not ready in time."""
        deadline = time.monotonic() + TIMEOUT
        while time.monotonic() < deadline:
            if found := re.search(pattern, self.log.read_text(errors="replace")):
                return found
            if not self.is_running:
                return None
            time.sleep(TICK)
        return None

    def kill(self):
        if self.is_running:
            self.process.kill()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe:
                with contextlib.suppress(OSError):
                    pipe.close()

    def stop(self, seconds):
        """Sends SIGTERM. Returns the seconds until the program has ended, or None if it was killed after `seconds`."""
        start = time.monotonic()
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(seconds)
            return time.monotonic() - start
        except subprocess.TimeoutExpired:
            self.kill()
            return None

    # MARK: Memory and processor time

    def memory(self, key="VmRSS"):
        """Returns the resident memory in bytes, or with `VmHWM` its peak. Returns 0 after the program has ended."""
        try:
            text = pathlib.Path(f"/proc/{self.id}/status").read_text()
        except OSError:
            return 0
        found = re.search(rf"^{key}:\s+(\d+) kB$", text, re.MULTILINE)
        return int(found[1]) << 10 if found else 0

    def processor_time(self):
        """Returns the processor time so far in seconds, or 0 after the program has ended."""
        try:
            fields = pathlib.Path(f"/proc/{self.id}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            return 0
        return (int(fields[11]) + int(fields[12])) / CLOCK_TICKS


class Broker(Program):
    """A mosquitto with its default configuration, except that Nagle's algorithm is off, which would delay events by 40 ms.

    It listens on `ports` of `address`, or on a free port. With `lines`, its configuration has further lines.
    """

    def __init__(self, folder, name, *, ports=(), address="127.0.0.1", lines=()):
        ports = ports or (free_port(),)
        self.port = ports[0]
        configuration = folder / f"{name}.conf"
        listeners = [f"listener {port} {address}" for port in ports]
        lines = [*listeners, "allow_anonymous true", "persistence false", "log_dest stderr", "set_tcp_nodelay true", *lines]
        if os.geteuid() == 0:
            lines.append("user root")
        configuration.write_text("\n".join(lines) + "\n")
        # Debian installs it in a folder that only root has in its PATH.
        binary = "/usr/sbin/mosquitto" if os.path.exists("/usr/sbin/mosquitto") else "mosquitto"
        super().__init__(folder / f"{name}.log", [binary, "-c", configuration])
        deadline = time.monotonic() + TIMEOUT
        for port in ports:
            while True:
                try:
                    mqtt_connect(port, address=address).close()
                    break
                except OSError:
                    if not self.is_running or time.monotonic() > deadline:
                        sys.exit(f"mosquitto did not start, see {self.log}")
                    time.sleep(TICK)


def make_certificate(folder, name):
    """Creates a self-signed certificate. Returns the paths of the certificate and the key."""
    certificate, key = folder / f"{name}.pem", folder / f"{name}.key"
    command = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=localhost"
    subprocess.run([*command.split(), "-keyout", key, "-out", certificate], check=True, stderr=subprocess.DEVNULL)
    return certificate, key


class Gateway(Program):
    """The gateway under test. `port` is None if it did not start.

    `broker` is a port of this machine or a URL. `environment` is added to the environment of the gateway. By default, it listens on a free
    port of this machine. On another `host`, it accepts clients without a token.
    """

    def __init__(
        self, folder, name, binary, broker, *, host="127.0.0.1", port=0, arguments=(), configuration=None, descriptors=DESCRIPTORS, environment=None
    ):
        broker = f"mqtt://127.0.0.1:{broker}" if isinstance(broker, int) else broker
        variables = [f"{name}={value}" for name, value in (environment or {}).items()]
        command = [*(["env", *variables] if variables else []), binary, "--port", port, "--broker", broker, *arguments]
        if host != "127.0.0.1":
            command += ["--host", host, "--access", "open"]
        if configuration:
            path = folder / f"{name}.yaml"
            path.write_text(configuration)
            command += ["--config", path]
        if tls_context():
            certificate, key = make_certificate(folder, name)
            command += ["--tls-certificate-file", certificate, "--tls-key-file", key]
        super().__init__(folder / f"{name}.log", command, descriptors=descriptors)
        ready = self.wait_for_line(rf"ready on https?://{re.escape(host)}:(\d+)")
        self.port = int(ready[1]) if ready else None
