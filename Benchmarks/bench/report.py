"""Writes results as JSON, Markdown and plots."""

import dataclasses
import datetime
import json
import os
import pathlib
import platform
import re
import shutil
import statistics
import subprocess

from . import bars, plots
from .processes import BUILD, FOLDER
from .results import Metric, Result

RESULTS = BUILD / "results"
# Where the results are in a document.
BEGIN, END = "<!-- results -->", "<!-- end of results -->"


def conditions(options):
    """Describes the machine, the revision and the run in a line."""
    text = pathlib.Path("/proc/cpuinfo").read_text()
    model = re.search(r"model name\s*:\s*(.+)", text)
    memory = int(re.search(r"MemTotal:\s+(\d+)", pathlib.Path("/proc/meminfo").read_text())[1]) / 2**20
    command = ["git", "-C", str(FOLDER), "describe", "--always", "--dirty"]
    revision = subprocess.run(command, capture_output=True, text=True).stdout.strip() or "unknown"
    if {"COATY_BENCH_GATEWAY", "COATY_BENCH_PROGRAMS"} & os.environ.keys():
        revision += " with programs of another build"
    parts = [f"{os.cpu_count()} processors ({model[1] if model else platform.machine()})", f"{memory:.0f} GiB of memory"]
    parts += [f"Linux {platform.release()}", f"load average {os.getloadavg()[0]:.1f} at the start"]
    parts += [f"{options.rounds} rounds of {options.seconds} s", f"revision {revision}", f"{datetime.date.today()}"]
    return ", ".join(parts)


def save(path, results):
    path.write_text(json.dumps({"results": [dataclasses.asdict(result) for result in results]}, indent=1, ensure_ascii=False))


def load(path):
    """Returns the saved results, none without a file."""
    if not path.exists():
        return []
    items = json.loads(path.read_text())["results"]
    return [Result(**(item | {"metrics": [Metric(**metric) for metric in item["metrics"]]})) for item in items]


def number(value, digits):
    return "–" if value is None else f"{value:,.{digits}f}"


def cell(result, contestant, metric):
    """Returns the median, and for the main metric also the range."""
    values = result.values(contestant, metric.key)
    text = number(result.median(contestant, metric.key), metric.digits)
    if metric.is_main and len(values) > 1:
        text += f" ({number(min(values), metric.digits)}–{number(max(values), metric.digits)})"
    return text


def table(result):
    """Returns the Markdown table of a result."""
    compares = result.main and len(result.rows) > 1 and result.subject in result.rows
    head = ["", *(metric.title for metric in result.metrics)]
    if compares:
        head.append(f"{result.subject} / this")
    lines = [f"| {' | '.join(head)} |", f"|---|{'---:|' * (len(head) - 1)}"]
    for contestant in result.rows:
        cells = [contestant, *(cell(result, contestant, metric) for metric in result.metrics)]
        if compares:
            ratio = result.ratio(result.subject, contestant, result.main.key)
            cells.append(number(ratio, 2) if contestant != result.subject else "")
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def section(result, images=None):
    """Returns the Markdown of a result, with its plot in the folder `images`."""
    parts = [f"### {result.title}", *([table(result)] if result.rows else []), *result.notes]
    parts += [f"Failed: {failure}" for failure in result.failures]
    if images and plots.has_plot(result):
        parts.append(f"![{result.title}]({images}/{result.key}.svg)")
    return "\n\n".join(parts) + "\n"


def markdown(results, images):
    """Returns the bars and the tables of all results. `images` is the folder of the plots, relative to the document."""
    if not results:
        return "No results.\n"
    # Most results are of one run; others have its conditions with them.
    common = statistics.mode(result.conditions for result in results)
    parts = [
        f"Measured on {common}. Medians of the rounds, in parentheses the range. `gateway / this` is the median of the ratios of the first "
        "column in each round.\n",
        f"{bars.table(results)}\n",
    ]
    if bars.shares(results):
        parts.append(f"![Bars]({images}/bars.svg)\n")
    for result in results:
        parts.append(section(result, images))
        if result.conditions != common:
            parts.append(f"Measured in another run: {result.conditions}.\n")
    return "\n".join(parts)


def write(results):
    """Writes results.json, results.md and the plots, and removes plots of results that no longer exist."""
    RESULTS.mkdir(parents=True, exist_ok=True)
    save(RESULTS / "results.json", results)
    (RESULTS / "results.md").write_text(markdown(results, "."))
    names = plots.plot_all(results, RESULTS)
    for path in [*RESULTS.glob("*.png"), *RESULTS.glob("*.svg")]:
        if path.stem not in names:
            path.unlink()


def document(path, results):
    """Replaces the results in a document, between its two markers, and the plots in the folder images/performance beside it."""
    before, _, rest = path.read_text().partition(BEGIN)
    _, found, after = rest.partition(END)
    if not found:
        raise SystemExit(f"{path} has no markers {BEGIN} and {END}")
    images = path.parent / "images" / "performance"
    shutil.rmtree(images, ignore_errors=True)
    images.mkdir(parents=True)
    plots.plot_all(results, images, ["svg"])
    path.write_text(f"{before}{BEGIN}\n{markdown(results, 'images/performance')}{END}{after}")
