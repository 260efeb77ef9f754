"""Writes results as JSON, Markdown and plots."""

import dataclasses
import datetime
import json
import os
import pathlib
import platform
import re
import shutil
import subprocess

from .processes import BUILD
from .results import Metric, Result

RESULTS = BUILD / "results"
# Where the results are in a document.
BEGIN, END = "<!-- results -->", "<!-- end of results -->"


def conditions(options):
    """Describes the machine, the revision and the run in a line."""
    text = pathlib.Path("/proc/cpuinfo").read_text()
    model = re.search(r"model name\s*:\s*(.+)", text)
    memory = int(re.search(r"MemTotal:\s+(\d+)", pathlib.Path("/proc/meminfo").read_text())[1]) / 2**20
    folder = pathlib.Path(__file__).resolve().parent
    revision = subprocess.run(["git", "-C", folder, "rev-parse", "--short", "HEAD"], capture_output=True, text=True).stdout.strip()
    parts = [f"{os.cpu_count()} processors ({model[1] if model else platform.machine()})", f"{memory:.0f} GiB of memory"]
    parts += [f"Linux {platform.release()}", f"load average {os.getloadavg()[0]:.1f} at the start"]
    parts += [f"{options.rounds} rounds of {options.seconds} s", f"revision {revision or 'unknown'}", f"{datetime.date.today()}"]
    return ", ".join(parts)


def save(path, description, results):
    data = {"machine": description, "results": [dataclasses.asdict(result) for result in results]}
    path.write_text(json.dumps(data, indent=1, ensure_ascii=False))


def load(path):
    data = json.loads(path.read_text())
    results = [Result(**(item | {"metrics": [Metric(**metric) for metric in item["metrics"]]})) for item in data["results"]]
    return data["machine"], results


def number(value, digits):
    return "–" if value is None else f"{value:,.{digits}f}"


def cell(result, contestant, metric):
    """Returns the median, and for the main metric also the range."""
    values = result.rows[contestant].get(metric.key)
    text = number(result.median(contestant, metric.key), metric.digits)
    if values and metric.is_main and len(values) > 1:
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
            cells.append(number(result.ratio(contestant), 2) if contestant != result.subject else "")
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def section(result, images=None):
    """Returns the Markdown of a result, with its plot in the folder `images`."""
    parts = [f"### {result.title}", *([table(result)] if result.rows else []), *result.notes]
    if images and result.main:
        parts.append(f"![{result.title}]({images}/{result.key}.svg)")
    return "\n\n".join(parts) + "\n"


def markdown(description, results, images=None):
    """Returns the tables of all results. `images` is the folder of the plots, relative to the document."""
    head = f"Measured on {description}. Medians of the rounds, in parentheses the range; ratios are medians of the ratios in each round.\n"
    return "\n".join([head, *(section(result, images) for result in results)])


def document(path, description, results):
    """Replaces the results in a document, between its two markers, and the plots in the folder images/performance beside it."""
    before, _, rest = path.read_text().partition(BEGIN)
    _, found, after = rest.partition(END)
    if not found:
        raise SystemExit(f"{path} has no markers {BEGIN} and {END}")
    images = path.parent / "images" / "performance"
    shutil.rmtree(images, ignore_errors=True)
    images.mkdir(parents=True)
    for result in results:
        if result.main:
            shutil.copy(RESULTS / f"{result.key}.svg", images)
    path.write_text(f"{before}{BEGIN}\n{markdown(description, results, 'images/performance')}{END}{after}")
