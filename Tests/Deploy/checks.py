"""Prints one line for each check, and counts the failures."""

import contextlib
import pathlib
import re
import subprocess
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent

# The longest wait for a condition, in seconds. It is generous, for busy machines.
TIMEOUT = 60
TICK = 0.1


class Failed(Exception):
    """A check has failed."""


class Ended(Exception):
    """A check has failed without which the following ones make no sense."""


class Checks:
    def __init__(self):
        self.count = 0
        self.failures = 0

    @contextlib.contextmanager
    def check(self, title, *, is_needed=False):
        """Runs a check. If its block raises an error, the check has failed, and the next one runs unless this one `is_needed`."""
        start = time.monotonic()
        self.count += 1
        try:
            yield
        except Exception as error:
            self.failures += 1
            print(f"FAILED  {title}: {describe(error)}", flush=True)
            if is_needed:
                raise Ended(f"{title}: failed") from error
        else:
            print(f"ok      {title} ({time.monotonic() - start:.1f} s)", flush=True)


def describe(error):
    if isinstance(error, (Failed, Ended)):
        return str(error)
    return f"{type(error).__name__}: {error}"


def require(condition, what):
    if not condition:
        raise Failed(what)


def require_equal(value, expected, what):
    require(value == expected, f"{what} is {value!r}, not {expected!r}")


def wait(what, condition, timeout=TIMEOUT):
    """Waits until a condition returns a true value, and returns the value. Errors count as false."""
    end = time.monotonic() + timeout
    last = ""
    while True:
        try:
            if value := condition():
                return value
        except (OSError, ValueError, KeyError, Failed) as error:
            last = f"; the last error was {describe(error)}"
        if time.monotonic() > end:
            raise Failed(f"timeout while waiting until {what}{last}")
        time.sleep(TICK)


def run(*command, **options):
    """Runs a program. Returns its output with its errors. Fails with the output unless the exit status is 0."""
    result = subprocess.run([*map(str, command)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **options)
    require(result.returncode == 0, f"{command[0]} exits with status {result.returncode}:\n{result.stdout}")
    return result.stdout


def version(gateway):
    """Returns the version of a gateway program."""
    return re.search(r"\d+\.\d+\.\d+", run(gateway, "--version"))[0]
