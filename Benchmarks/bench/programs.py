"""The output of the programs that measure one subject by themselves: filters, IO routing, TLS."""

import subprocess
import sys

from .processes import FOLDER, Failed, program
from .results import Result

SECONDS = 900


def run(_):
    commands = {
        "filters": ("Filters", [program("filter-bench")]),
        "routing": ("IO routing", [program("routing-bench")]),
        "tls": ("TLS", [FOLDER / "tls" / "run", program("coaty-gateway")]),
    }
    for key, (title, command) in commands.items():
        print(title, file=sys.stderr, flush=True)
        done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS)
        if done.returncode:
            raise Failed(f"{command[0]}: {done.stderr.strip()}")
        yield Result(f"programs-{key}", title, [], notes=[f"```\n{done.stdout.rstrip()}\n```"])
