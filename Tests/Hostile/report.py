"""The table of results."""

from running import STOP_TIMEOUT

COLUMNS = {
    "row": 25,
    "run": 7,
    "delivery": 9,
    "handshake": 9,
    "ping": 9,
    "advertise": 9,
    "healthz": 9,
    "refused": 7,
    "lost": 5,
    "late": 5,
    "gaps": 6,
    "memory": 7,
    "cpu": 6,
    "recovery": 8,
    "stop": 6,
    "result": 6,
}
HEAD = (
    """Latencies are the 99th percentile in ms. `refused` counts failed probes, `lost` events that are missing without a gap, `late` events that
were not delivered at the end, `gaps` events that gaps report. `memory` is the growth up to the peak, in MiB; `cpu` is the processor time
of the gateway, in seconds. `recovery` is the time until latencies are normal again, `stop` the time that SIGTERM takes, in seconds.

"""
    + "| " + " | ".join(name.ljust(width) for name, width in COLUMNS.items()) + " |\n"
    + "|" + "|".join("-" * (width + 2) for width in COLUMNS.values()) + "|"
)  # fmt: skip
PROBES = ("handshake", "ping", "advertise", "healthz")


def milliseconds(latency, key="p99"):
    return "-" if latency is None else f"{latency[key] * 1000:.0f}" if latency[key] >= 0.01 else f"{latency[key] * 1000:.1f}"


def worst_delivery(well_behaved, key="p99"):
    """Returns the latencies of the slower reader."""
    latencies = [reader["latency"] for reader in well_behaved["readers"].values() if reader["latency"]]
    return max(latencies, key=lambda latency: latency[key], default=None)


def cells(result, side):
    figures = result.get(side)
    values = dict.fromkeys(COLUMNS, "-") | {"row": result["row"] if side == "attack" else "", "run": side}
    if side == "attack":
        values["result"] = "FAILED" if result["failures"] else "ok"
    else:
        values["result"] = ""
    if figures is None:
        return values
    memory = figures["memory"]
    values["memory"] = f"{max(0, memory['peak'] - memory['start']) >> 20}"
    values["cpu"] = f"{figures['cpu']['gateway']:.1f}"
    values["stop"] = f"> {STOP_TIMEOUT}" if figures["stop"] is None else f"{figures['stop']:.1f}"
    if side == "attack":
        nothing = "-" if result["stops"] else "never"
        values["recovery"] = nothing if result["recovery"] is None else f"{result['recovery']:.1f}"
    else:
        values["recovery"] = ""
    if well_behaved := figures["well_behaved"]:
        values["delivery"] = milliseconds(worst_delivery(well_behaved))
        for kind in PROBES:
            values[kind] = milliseconds(well_behaved["probes"][kind]["latency"])
        values["refused"] = str(sum(sum(probe["failures"].values()) for probe in well_behaved["probes"].values()))
        values["lost"] = f"{sum(reader['lost'] for reader in well_behaved['readers'].values()):.0f}"
        values["late"] = f"{sum(reader['late'] for reader in well_behaved['readers'].values()):.0f}"
        values["gaps"] = f"{sum(reader['dropped'] for reader in well_behaved['readers'].values()):.0f}"
    return values


def lines(result):
    """Returns the two lines of a row: the attack and the control."""
    rows = [cells(result, "attack"), cells(result, "control")]
    return "\n".join(f"| {' | '.join(aligned(name, row[name]) for name in COLUMNS)} |" for row in rows)


def aligned(name, text):
    return text.ljust(COLUMNS[name]) if name in ("row", "run", "result") else text.rjust(COLUMNS[name])


def counted(counter):
    return ", ".join(f"{count} × {text}" for text, count in sorted(counter.items(), key=lambda item: -item[1])) or "nothing"


def outcomes(results):
    """Returns the counted outcomes and the notes of each row."""
    return "\n".join(
        f"{result['row']}: the attacker got {counted(result['outcomes'])}" + "".join(f"; {note}" for note in result["notes"])
        for result in results
    )


def document(results):
    """Returns the report with all figures, in Markdown."""
    parts = ["# Attacks\n", HEAD, *(lines(result) for result in results), ""]
    for result in results:
        parameters = ", ".join(f"{name} {value}" for name, value in result["parameters"].items())
        parts.append(f"## {result['row']}\n\nParameters: {parameters or 'none'}.\n\nThe attacker got {counted(result['outcomes'])}.\n")
        parts += [f"- {note}" for note in result["notes"]] + [f"- FAILED: {failure}" for failure in result["failures"]]
        parts.append("\n| | run | p50 | p99 | max | count | failures |\n|---|---|---|---|---|---|---|")
        for side in ("attack", "control"):
            if (figures := result.get(side)) and (well_behaved := figures["well_behaved"]):
                parts += [distribution(name, side, latency, failures) for name, latency, failures in distributions(well_behaved)]
        for side in ("attack", "control"):
            if figures := result.get(side):
                memory = {name: f"{value >> 20} MiB" for name, value in figures["memory"].items()}
                parts.append(
                    f"\n{side}: memory {memory['start']} at start, {memory['peak']} peak, {memory['end']} at the end; processor time "
                    f"{figures['cpu']['gateway']:.1f} s of the gateway, {figures['cpu']['broker']:.1f} s of the broker"
                    + (f", {result['attacker_cpu']:.1f} s of the attacker." if side == "attack" else ".")
                )
        parts.append("")
    return "\n".join(parts) + "\n"


def distributions(well_behaved):
    for name, reader in well_behaved["readers"].items():
        yield f"delivery, {name}", reader["latency"], reader["endings"]
    yield "delivery, broker only", well_behaved["broker"]["latency"], {}
    for name, probe in well_behaved["probes"].items():
        yield name, probe["latency"], probe["failures"]
    yield "lag of the harness", well_behaved["lag"], {}


def distribution(name, side, latency, failures):
    figures = [milliseconds(latency, key) for key in ("p50", "p99", "max")]
    return f"| {name} | {side} | {' | '.join(figures)} | {latency['count'] if latency else 0} | {counted(failures) if failures else ''} |"
