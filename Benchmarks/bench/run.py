"""The time of `make run` in a new clone of the repository, until the gateway is ready."""

import pathlib
import tempfile

from .processes import FOLDER, Server, output
from .results import Metric, Result

SECONDS = 1800
METRICS = [Metric("time", "s to ready", is_main=True, is_higher_better=False)]
ARGUMENTS = "--port 0 --embedded-broker-listen 127.0.0.1:0"


def measure():
    with tempfile.TemporaryDirectory() as folder:
        clone, cache = pathlib.Path(folder, "coaty"), pathlib.Path(folder, "cache")
        output("git", "clone", "--quiet", FOLDER.parent, clone, seconds=SECONDS)
        # SwiftPM's cache of downloads is in this folder.
        environment = {"XDG_CACHE_HOME": str(cache)}
        with Server(["make", "run", f"ARGS={ARGUMENTS}"], environment=environment, folder=clone, ready_seconds=SECONDS) as server:
            return {"time": server.seconds_to_ready}


def run(_):
    result = Result("run", "make run in a new clone", METRICS, subject="")
    result.add("make run", measure())
    result.notes.append("One measurement. The Debian packages and the toolchain are installed; SwiftPM downloads the dependencies.")
    yield result
