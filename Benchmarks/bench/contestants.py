"""The servers that are compared. Each function returns a `Server` that is not started."""

import shutil
import subprocess
import sys

from . import load
from .processes import BUILD, FOLDER, Server, program


def limits(values):
    """Returns limits of the gateway as flags."""
    return [part for name, value in values.items() for part in ("--limit", f"{name}={value}")]


# Bounds that a measurement with many connections or objects of one client would reach. Everything else has its default.
LARGE = limits({"maximum-connections": 50000, "maximum-connections-per-client": 50000, "maximum-memory": 4 << 30})
LARGE += limits({"maximum-memory-per-client": 1 << 30, "maximum-subscriptions-per-client": 100000})

# libmosquitto, Node and Python queue publications without a bound. The gateway would refuse requests while the broker is behind.
UNBOUNDED_OUTBOX = limits(
    {"maximum-outbox-bytes": 1 << 28, "maximum-outbox-publications": 1000000, "maximum-memory": 4 << 30}
)


def gateway(broker, *flags):
    return Server([program("coaty-gateway"), "--port", 0, "--broker", f"mqtt://127.0.0.1:{broker.port}", *flags])


def constant(_):
    return Server([BUILD / "constant"])


def publish(broker):
    return Server([BUILD / "publish", broker.port])


def fanout(broker):
    return Server([BUILD / "fanout", broker.port, load.CHANNEL_TOPIC])


def node(broker):
    # Debian's node finds the modules of its packages by itself, others need the path.
    environment = {"NODE_PATH": "/usr/share/nodejs:/usr/lib/nodejs"}
    return Server(["node", FOLDER / "peers" / "bridge.js", broker.port], environment=environment)


def python(broker):
    prepare_python()
    return Server([BUILD / "python" / "bin" / "python", FOLDER / "peers" / "bridge.py", broker.port])


def responder(broker):
    """Examples/hello-world, which answers Discover events for com.example.Job."""
    command = ["stdbuf", "-oL", program("hello-world")]
    return Server(command, ready="online", environment={"COATY_BROKER": f"mqtt://127.0.0.1:{broker.port}"})


def prepare_python():
    """Installs the libraries of the Python bridge in a virtual environment, once."""
    folder = BUILD / "python"
    requirements = FOLDER / "peers" / "requirements.txt"
    installed = folder / "requirements.txt"
    if installed.exists() and installed.read_text() == requirements.read_text():
        return
    shutil.rmtree(folder, ignore_errors=True)
    subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    subprocess.run([folder / "bin" / "pip", "install", "-q", "-r", requirements], check=True)
    shutil.copy(requirements, installed)
