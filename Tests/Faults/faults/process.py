"""A gateway that is killed or stopped at any moment."""

import contextlib
import random
import threading
import time

from stack import Program
from table import row
from wire import Client, Closed, frame, handshake, outcome, request, target

KILLS = 200
# The longest time from the first change to the kill, in seconds.
LIFE = 0.15
CONTEXTS = [f"b61740a6-95d7-4d1a-8be5-53f3aa1e0b7{number}" for number in range(3)]
CONFIGURATION = "routing:\n  contexts:\n" + "".join(
    f"    - context: {{ coreType: IoContext, objectType: com.example.Context, objectId: {id}, name: Context{number} }}\n      rules: []\n"
    for number, id in enumerate(CONTEXTS)
)
# Lines about damaged files.
TORN = ("is incomplete or was altered", "no stored state can be used", "can't be used")


class Writer(threading.Thread):
    """Changes a context and its rules, as fast as the gateway answers. The size of each change depends on its number."""

    def __init__(self, id, number):
        super().__init__(daemon=True)
        self.path = f"/v1/routing/contexts/{id}"
        #: The number of the last change that was sent, and of the last one that was acknowledged, for the context and the rules.
        self.sent = {"context": number["context"], "rules": number["rules"]}
        self.acknowledged = dict(self.sent)
        self.count = 0
        self.refused = []

    def connect(self, port):
        self.client = Client(port, timeout=10)

    def run(self):
        with contextlib.suppress(OSError, Closed), self.client:
            while True:
                for part in ("rules", "context"):
                    self.sent[part] += 1
                    number = self.sent[part]
                    if part == "rules":
                        self.client.send(request("PUT", self.path + "/rules", rules(number)))
                    else:
                        change = {"number": number, "filling": filling(number)}
                        self.client.send(request("PATCH", self.path, change, media_type="application/merge-patch+json"))
                    status, body = self.client.response()
                    if status != 200:
                        return self.refused.append(outcome(status, body))
                    self.acknowledged[part] = number
                    self.count += 1


def rules(number):
    condition = ["context.name", ["Equals", filling(number)[:50]]]
    return {"rules": [{"name": str(number), "condition": condition}] * (1 + number * 7 % 100)}


def filling(number):
    return "x" * (number * 997 % 20_000)


def stored(fault, id):
    """Returns the numbers of the context and the rules, or None for a part that is torn."""
    _, answer = fault.ask("GET", f"/v1/routing/contexts/{id}/rules")
    found = answer["rules"]
    number = int(found[0]["name"]) if found else 0
    numbers = {"rules": number if not found or found == rules(number)["rules"] else None}
    _, answer = fault.ask("GET", f"/v1/routing/contexts/{id}")
    context = answer["context"]
    number = context.get("number", 0)
    numbers["context"] = number if not number or context["filling"] == filling(number) else None
    return numbers


@row(f"kill -9 at {KILLS} random moments, while contexts and rules are changed or the gateway starts")
def kill9(fault):
    """The gateway starts each time, with every change that it has acknowledged, and without a torn one."""
    choice = random.Random(fault.seed)
    fault.start_broker()
    arguments = ["--state-directory", fault.folder / "state", "--log-level", "notice"]
    known = {id: {"sent": {"context": 0, "rules": 0}, "acknowledged": {"context": 0, "rules": 0}} for id in CONTEXTS}
    changes = kept = previous = 0
    slowest = 0
    for kill in range(KILLS + 1):
        start = time.monotonic()
        gateway = fault.start_gateway(*arguments, configuration=CONFIGURATION, name=f"gateway-{kill}")
        slowest = max(slowest, time.monotonic() - start)
        log = gateway.log.read_text()
        for text in TORN:
            fault.promise(text not in log, f"start {kill}: {gateway.log} reports `{text}`")
        previous += "the previous version of the stored state is used" in log
        for id in CONTEXTS:
            numbers = stored(fault, id)
            for part, number in numbers.items():
                begin, end = known[id]["acknowledged"][part], known[id]["sent"][part]
                is_kept = number is not None and begin <= number <= end
                fault.promise(is_kept, f"start {kill}: {part} has {number}; {begin} was acknowledged, {end} was sent")
                kept += is_kept and number > begin
            known[id]["numbers"] = {part: number or 0 for part, number in numbers.items()}
        if fault.failures or kill == KILLS:
            break
        writers = [Writer(id, known[id]["numbers"]) for id in CONTEXTS]
        for writer in writers:
            writer.connect(gateway.port)
        for writer in writers:
            writer.start()
        # The moment is random, so nothing can be awaited.
        time.sleep(choice.uniform(0, LIFE))
        gateway.kill()
        for id, writer in zip(CONTEXTS, writers):
            writer.join(10)
            changes += writer.count
            fault.promise(not writer.refused, f"start {kill}: a change got {writer.refused}")
            known[id] |= {"sent": writer.sent, "acknowledged": writer.acknowledged}
        if kill % 10 == 9:
            kill_during_start(fault, choice, arguments)
        gateway.log.unlink()
        fault.gateways.remove(gateway)
    fault.note("changes", f"{changes} acknowledged, none of them lost" if not fault.failures else f"{changes} acknowledged")
    fault.note("unacknowledged changes that were kept", str(kept))
    fault.note("starts with a previous file", str(previous))
    fault.note("slowest start", f"{slowest:.2f} s")


def kill_during_start(fault, choice, arguments):
    command = [fault.binary, "--port", 0, "--broker", f"mqtt://127.0.0.1:{fault.gateway_port}", *arguments]
    program = Program(fault.folder / "killed-early.log", [*command, "--config", fault.folder / "gateway-0.yaml"])
    time.sleep(choice.uniform(0, LIFE))
    program.kill()


STREAMS = 1_000
PENDING = 200


@row(f"SIGTERM under {STREAMS:,} streams and {PENDING} pending calls")
def sigterm(fault):
    """The gateway ends within 10 s with the status 0. Each WebSocket is closed with 4000 and a delay, each event stream gets a notice, each
    call gets a response, and each accepted publication is published. No stream misses an event before its end."""
    fault.start_broker()
    # A gateway with limits for this number of clients of one address.
    fault.start_gateway("--limit", f"maximum-connections={4 * STREAMS}", "--limit", f"maximum-pending-requests={4 * PENDING}")
    fault.start_traffic(events=10)
    port = fault.gateway.port
    with contextlib.ExitStack() as stack:
        sockets, streams, calls = [], [], []
        for number in range(STREAMS):
            client = stack.enter_context(Client(port, f"127.0.0.{2 + number % 200}"))
            if number % 2:
                client.send(handshake() + frame({"op": "subscribe", "id": "s", "event": "channel", "channelId": "well-behaved"}))
                sockets.append(client)
            else:
                client.send(request("GET", target("/v1/sse/channel", channelId="well-behaved")))
                streams.append(client)
        for number in range(PENDING):
            client = stack.enter_context(Client(port, f"127.0.0.{2 + number % 200}"))
            client.send(request("POST", "/v1/call/com.example.faults.nobody?timeout=60s&min=1", {}))
            calls.append(client)
        status = lambda: fault.ask("GET", "/v1/status")[1]  # noqa: E731
        fault.wait("all streams are open", lambda: status()["streams"]["subscriptions"] >= STREAMS, 30)
        fault.wait("all calls are pending", lambda: status()["requests"]["pending"] >= PENDING, 10)
        fault.hold(1)
        begin = time.monotonic()
        fault.stop()
        fault.traffic.stop_publishing()
        closed, delayed, incomplete = 0, 0, 0
        for client in sockets:
            code, reason, numbers = read_socket(client)
            closed += code == 4000
            delayed += reason.startswith("retry-after=")
            incomplete += not is_complete(numbers)
        noticed = 0
        for client in streams:
            text = read_all(client)
            noticed += b'"state":"stopping"' in text and b"\nretry: " in text
            incomplete += not is_complete([int(part.split(b",")[0]) for part in text.split(b'"number": ')[1:]])
        answers = [read_answer(client) for client in calls]
    fault.note("WebSockets", f"{closed} of {len(sockets)} closed with 4000, {delayed} with a delay")
    fault.note("event streams", f"{noticed} of {len(streams)} with a notice")
    fault.note("calls", ", ".join(f"{answers.count(answer)} {answer}" for answer in sorted(set(answers))))
    fault.promise(closed == delayed == len(sockets), "some WebSockets were not closed as promised")
    fault.promise(noticed == len(streams), "some event streams got no notice")
    fault.promise(not incomplete, f"{incomplete} streams missed events before their end")
    unanswered = [answer for answer in answers if not answer.startswith(("503", "504", "200"))]
    fault.promise(not unanswered, f"{len(unanswered)} calls got no response, such as {unanswered[:1]}")
    fault.settle_publications(begin)


def read_all(client):
    data = b""
    with contextlib.suppress(OSError):
        while part := client.socket.recv(1 << 20):
            data += part
    return data


def read_socket(client):
    """Returns the close code, the reason and the numbers of the events of a WebSocket."""
    numbers = []
    client.head()
    data = bytes(client._received) + read_all(client)
    code, reason = 0, ""
    while len(data) >= 2:
        length, start = data[1] & 127, 2
        if length == 126:
            length, start = int.from_bytes(data[2:4], "big"), 4
        elif length == 127:
            length, start = int.from_bytes(data[2:10], "big"), 10
        payload = data[start : start + length]
        if data[0] & 15 == 8:
            code, reason = int.from_bytes(payload[:2], "big"), payload[2:].decode()
        elif b'"number": ' in payload:
            numbers.append(int(payload.split(b'"number": ')[1].split(b",")[0]))
        data = data[start + length :]
    return code, reason, numbers


def is_complete(numbers):
    return bool(numbers) and numbers == list(range(numbers[0], numbers[0] + len(numbers)))


def read_answer(client):
    try:
        return outcome(*client.response())
    except (OSError, Closed) as error:
        return str(error) or type(error).__name__
