"""The output of the programs that measure one subject by themselves: filters, decoding and encoding, TLS."""

import sys

from .processes import FOLDER, output, program
from .results import ERRORS, Result

SECONDS = 900


def run(_):
    commands = {
        "filters": ("Filters", [program("filter-bench")]),
        "coding": ("Decoding and encoding", [program("coding-bench")]),
        "tls": ("TLS", [FOLDER / "tls" / "run", program("coaty-gateway")]),
    }
    for key, (title, command) in commands.items():
        print(title, file=sys.stderr, flush=True)
        result = Result(f"programs-{key}", title, [])
        try:
            result.notes.append(f"```\n{output(*command, seconds=SECONDS).rstrip()}\n```")
        except ERRORS as error:
            result.failures.append(str(error))
        yield result
