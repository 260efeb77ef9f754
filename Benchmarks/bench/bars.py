"""The bars: what the measurements should reach. The report compares them with the results; nothing fails because of one."""

import dataclasses


@dataclasses.dataclass(frozen=True)
class Value:
    """A median of a result or, with `other`, the median of its ratio to that contestant within the rounds."""

    result: str
    contestant: str
    metric: str
    other: str = ""
    # Distinguishes the values of a bar.
    label: str = ""

    def of(self, results):
        """Returns the value, None if it was not measured. `results` are by key."""
        if not (result := results.get(self.result)):
            return None
        if self.other:
            return result.ratio(self.contestant, self.other, self.metric)
        return result.median(self.contestant, self.metric)


@dataclasses.dataclass(frozen=True)
class Bar:
    title: str
    limit: float
    unit: str
    values: list
    is_minimum: bool = False
    digits: int = 2

    def holds(self, value):
        return value >= self.limit if self.is_minimum else value <= self.limit

    def share(self, value):
        """Returns how far a value reaches: 1 is the bar, and more is better."""
        return value / self.limit if self.is_minimum else self.limit / value


GATEWAY, C, NODE, PYTHON = "gateway", "C: libmicrohttpd and libmosquitto", "Node bridge", "Python bridge"
LIBWEBSOCKETS, LISTENER, MQTT = "C: libwebsockets and libmosquitto", "mosquitto's WebSocket listener", "C: libmosquitto, no HTTP"
OBJECTS = {name: f"100,000 objects, {name}" for name in ("WebSocket", "SSE")}
STARTS = {"running broker": "gateway with a running broker", "embedded broker": "gateway with its embedded broker"}
EVALUATIONS = ["all, from nothing", "all, nothing changes", "context, all move"]


def fan_out(metric, other, contestant=GATEWAY, sizes=(1, 100, 1000)):
    return [Value(f"fanout-{size}", contestant, metric, other, f"{size:,}") for size in sizes]


def idle(metric, other=""):
    # A machine with a low limit of open files measures less than 20,000.
    return [Value("idle", f"{size:,} connections without a subscription", metric, other, f"{size:,}") for size in (1000, 5000, 20000)]


def snapshot(metric):
    return [Value("snapshot", row, metric, label=name) for name, row in OBJECTS.items()]


def start(metric):
    return [Value("start", row, metric, label=name) for name, row in STARTS.items()]


DELIVERIES = "fan-out, deliveries per processor second"
BARS = [
    Bar("advertise, 64 connections: rate / C program", 1, "×", [Value("advertise-64", GATEWAY, "rate", C)], True),
    Bar("advertise, 64 connections: rate / Node bridge", 4, "×", [Value("advertise-64", GATEWAY, "rate", NODE)], True),
    Bar("advertise, 64 connections: rate / Python bridge", 10, "×", [Value("advertise-64", GATEWAY, "rate", PYTHON)], True),
    Bar("discover, 64 connections: processor time of the gateway", 120, "µs", [Value("discover-64", GATEWAY, "cost")], digits=0),
    Bar("discover, 64 connections: processor time of the responder", 120, "µs", [Value("discover-64", GATEWAY, "responder")], digits=0),
    Bar("discover, 1 connection: median time / libmosquitto without HTTP", 1.5, "×", [Value("discover-1", GATEWAY, "p50", MQTT)]),
    Bar(f"{DELIVERIES} / libwebsockets", 1.3, "×", fan_out("deliveries", LIBWEBSOCKETS), True),
    Bar(f"{DELIVERIES} / mosquitto's listener", 1, "×", fan_out("deliveries", LISTENER, sizes=(100, 1000)), True),
    Bar("fan-out, median time / libwebsockets", 1, "×", fan_out("p50", LIBWEBSOCKETS)),
    Bar(f"{DELIVERIES}, SSE / WebSocket", 0.8, "×", fan_out("deliveries", GATEWAY, "gateway, SSE"), True),
    Bar(f"{DELIVERIES}, /v1/ws / WebSocket", 0.95, "×", fan_out("deliveries", GATEWAY, "gateway, /v1/ws"), True),
    Bar("idle WebSockets: memory of each", 8, "KiB", idle("memory")),
    Bar("idle WebSockets: median time to one subscriber / with 10", 1, "×", idle("p50", "10 connections without a subscription")),
    Bar("snapshot of 100,000 objects: time to the first", 20, "ms", snapshot("first"), digits=1),
    Bar("snapshot of 100,000 objects: rate", 100, "MB/s", snapshot("rate"), True, 0),
    Bar("snapshot of 100,000 objects: p99 of events to others", 5, "ms", snapshot("p99")),
    Bar("IO routing, 2,000 × 2,000: speed / naive router", 20, "×", [Value("routing-2000", row, "ratio", label=row) for row in EVALUATIONS], True, 0),
    Bar("start: time to ready", 60, "ms", start("time"), digits=0),
    Bar("start: memory", 25, "MiB", start("memory"), digits=0),
    Bar("make run in a new clone", 180, "s", [Value("run", "make run", "time")], digits=0),
]


def verdict(bar, results):
    """Returns what was measured, and whether the bar holds, as two texts."""
    values = {value.label: value.of(results) for value in bar.values}
    found = {label: value for label, value in values.items() if value is not None}
    if not found:
        return "–", "not measured"
    measured = "; ".join(f"{value:,.{bar.digits}f} {bar.unit}" + (f" ({label})" if label else "") for label, value in found.items())
    groups = {
        "holds": [label for label, value in found.items() if bar.holds(value)],
        "falls short": [label for label, value in found.items() if not bar.holds(value)],
        "not measured": [label for label in values if label not in found],
    }
    parts = [text if len(labels) == len(values) else f"{text}: {', '.join(labels)}" for text, labels in groups.items() if labels]
    return measured, "; ".join(parts)


def table(results):
    """Returns the Markdown table of all bars."""
    by_key = {result.key: result for result in results}
    lines = ["| | bar | measured | |", "|---|---|---|---|"]
    for bar in BARS:
        requirement = f"{'at least' if bar.is_minimum else 'at most'} {bar.limit:g} {bar.unit}"
        lines.append(f"| {' | '.join([bar.title, requirement, *verdict(bar, by_key)])} |")
    return "\n".join(lines)


def shares(results):
    """Returns a title and a share for each value that was measured."""
    by_key = {result.key: result for result in results}
    found = [(bar, value.label, value.of(by_key)) for bar in BARS for value in bar.values]
    return [(bar.title + (f" ({label})" if label else ""), bar.share(value)) for bar, label, value in found if value is not None]
