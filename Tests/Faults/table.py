"""A table of rows, each with an expectation, figures, and the promises that were broken. Each row runs new processes."""

import contextlib
import json
import os
import pathlib
import resource
import shutil
import signal
import subprocess
import sys
import time
import traceback

from stack import DESCRIPTORS, TICK
from wire import Client, Closed, request

ROWS = {}
HEAD = "| row | {title} | expectation | figures | result |\n|---|---|---|---|---|"


class Broken(Exception):
    """A promise is broken without which the rest of the row makes no sense."""


class Row:
    def __init__(self, function, title):
        self.name = function.__name__.replace("_", "-")
        self.title = title
        self.expectation = " ".join(function.__doc__.split())
        self.run = function


def row(title):
    """Adds a function to the table. Its docstring is the expectation, and the row has its name, with hyphens."""

    def add(function):
        made = Row(function, title)
        ROWS[made.name] = made
        return function

    return add


def rows(values, title):
    """Adds a row for each value, with the value in its title and its name. The function gets the scene and the value."""

    def add(function):
        for value in values:
            made = Row(function, title.format(value))
            made.name += "-" + value.lower().replace(" ", "-")
            made.run = lambda scene, value=value: function(scene, value)
            ROWS[made.name] = made
        return function

    return add


class Scene:
    """The programs of a row, its figures and its broken promises."""

    def __init__(self, stack, folder, binary):
        self.stack = stack
        self.folder = folder
        self.binary = binary
        self.figures = {}
        self.failures = []

    def keep(self, program):
        """Kills a program at the end of the row."""
        self.stack.callback(program.kill)
        return program

    def check_programs(self):
        """Raises `Broken` if a program has ended that should run."""

    def finish(self):
        """Ends a row that has run to its end."""

    def promise(self, is_kept, broken):
        """Records a broken promise."""
        if not is_kept:
            self.failures.append(broken)
        return is_kept

    def note(self, name, figure):
        """Adds a figure to those with this name."""
        self.figures[name] = f"{self.figures[name]}, {figure}" if name in self.figures else figure

    def wait(self, what, condition, limit):
        """Waits until a condition returns a true value. Returns the value. It is a broken promise if that takes longer than `limit`."""
        end = time.monotonic() + limit
        while True:
            with contextlib.suppress(OSError, Closed):
                if value := condition():
                    return value
            self.check_programs()
            if time.monotonic() > end:
                raise Broken(f"after {limit} s, it is still not true that {what}")
            time.sleep(TICK)

    def hold(self, seconds):
        """Lets time pass. No program may end that should run."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            self.check_programs()
            time.sleep(min(left, 0.1))

    @contextlib.contextmanager
    def suppressed(self):
        """Records a broken promise, and continues."""
        try:
            yield
        except Broken as error:
            self.failures.append(str(error))


def ask(port, method, path, body=None, timeout=15, host="127.0.0.1", **headers):
    """Sends a request over a new connection. Returns the status and the body, as JSON if it is."""
    with Client(port, timeout=timeout, host=host) as client:
        client.send(request(method, path, body, close=True, **headers))
        status, body = client.response()
    with contextlib.suppress(ValueError):
        return status, json.loads(body)
    return status, body


def run_row(row, make):
    """Runs a row. Returns its line in the table, and its failures."""
    start = time.monotonic()
    with contextlib.ExitStack() as stack:
        scene = make(stack)
        try:
            row.run(scene)
            scene.finish()
        except Broken as broken:
            scene.failures.append(str(broken))
        except Exception as error:
            traceback.print_exc()
            scene.failures.append(repr(error))
    scene.figures["took"] = f"{time.monotonic() - start:.0f} s"
    figures = "; ".join(f"{name}: {value}" for name, value in scene.figures.items())
    result = "FAILED" if scene.failures else "ok"
    return f"| {row.name} | {row.title} | {row.expectation} | {figures} | {result} |", scene.failures


def main(script, usage, title, make, prepare=lambda work: None):
    """Runs the rows that the command line names, by default all, in a network and with mounts of their own.

    `make` returns the scene of a row from its stack, its folder and the gateway program. `prepare` gets the work folder, inside of the
    network.
    """
    is_inside = sys.argv[1:2] == ["--inside"]
    arguments = sys.argv[2 if is_inside else 1 :]
    if arguments == ["--list"]:
        for row in ROWS.values():
            print(f"{row.name:16} {row.title}\n{'':16} {row.expectation}")
        return
    if len(arguments) < 2:
        sys.exit(usage)
    work, binary, *names = arguments
    if unknown := set(names) - set(ROWS):
        sys.exit(f"run: unknown rows: {' '.join(sorted(unknown))}; --list prints the known ones")
    work, binary = pathlib.Path(work).resolve(), pathlib.Path(binary).resolve()
    if not is_inside:
        user = [] if os.geteuid() == 0 else ["--map-root-user"]
        command = ["unshare", *user, "--net", "--mount", "--", sys.executable, script, "--inside", work, binary, *names]
        os.execvp("unshare", [*map(str, command)])
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < DESCRIPTORS:
        sys.exit(f"run: needs {DESCRIPTORS} file descriptors; `ulimit -Hn` is {hard}")
    resource.setrlimit(resource.RLIMIT_NOFILE, (DESCRIPTORS, hard))
    # SIGTERM unwinds the `with` blocks, so that all processes end.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("run: ended by SIGTERM"))
    sys.stdout.reconfigure(line_buffering=True)
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    prepare(work)
    head = HEAD.format(title=title)
    print(head)
    lines, failed = [head], 0
    for row in [ROWS[name] for name in names] or ROWS.values():
        folder = work / row.name
        folder.mkdir()
        line, failures = run_row(row, lambda stack, folder=folder: make(stack, folder, binary))
        print(line)
        for failure in failures:
            print(f"FAILED {row.name}: {failure}")
        lines.append(line)
        failed += bool(failures)
        (work / "report.md").write_text("\n".join(lines) + "\n")
    print(f"\n{len(lines) - 1} rows, {failed} failed; {work / 'report.md'} contains the table, and the folders beside it the logs.")
    sys.exit(failed > 0)
