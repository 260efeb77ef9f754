"""Two gateways behind haproxy, at one broker."""

import json
import re
import select
import statistics
import time
import uuid

from cluster import AT_BROKERS, BROKERS, FRONT, GATEWAYS, MQTT_FRONT, MQTT_PORT, PORT, READY
from observing import Load, Observer, message_bounds
from table import Broken, row
from wire import Client, Closed, frame, handshake, mqtt_connect

# Events per second of all agents, and how long they publish.
RATE = 400
SECONDS = 5
WILLS = 10
# Seconds until haproxy knows that gateways are not ready.
OFFLINE = 3
# Seconds that a client waits for a message.
LIMIT = 10


class Socket:
    """A WebSocket client that waits for what it expects."""

    def __init__(self, cluster, host, port=PORT):
        self.client = cluster.stack.enter_context(Client(port, host=host, timeout=LIMIT))
        self.client.send(handshake())
        self.client.head()

    def send(self, **message):
        self.client.send(frame(message))

    def wait(self, what, accepts):
        """Returns the first message that is accepted; leaves out the others."""
        end = time.monotonic() + LIMIT
        left_out = []
        try:
            while not accepts(message := json.loads(self.client.message())):
                left_out.append(message)
                if time.monotonic() > end:
                    raise TimeoutError
        except (OSError, Closed) as error:
            raise Broken(f"{what} did not arrive: {error!r}, after {left_out}") from error
        return message

    def arrived(self):
        """Returns the messages that have arrived."""
        data = self.client._received
        while select.select([self.client.socket], [], [], 0)[0] and (part := self.client.socket.recv(1 << 18)):
            data += part
        messages = []
        while (bounds := message_bounds(data, 0)) and bounds[1] <= len(data):
            opcode, payload = data[0] & 15, bytes(data[slice(*bounds)])
            del data[: bounds[1]]
            if opcode == 1:
                messages.append(json.loads(payload))
            elif opcode == 9:
                self.client.send(frame(payload, 10))
        return messages

    def exchange(self, **message):
        """Sends a message with an id. Returns the reply."""
        self.send(**message)
        return self.wait(f"the reply to {message}", lambda reply: reply.get("id") == message["id"])


def thing(number=0):
    return {"coreType": "CoatyObject", "objectType": "com.example.Scale", "objectId": str(uuid.uuid4()), "name": "Thing", "number": number}


@row("two gateways behind haproxy, at one broker")
def gateways(cluster):
    """Observers at each gateway and behind haproxy get the events of two agents once and in order, over WebSockets and event streams. What
    clients publish at one gateway arrives at the other. A gateway that has lost its broker defers publications, and so do both if the
    broker is gone; haproxy prefers the gateway that has one. Requests are answered by clients of the
    other gateway. Client identities and IO nodes at one gateway are visible at the other."""
    cluster.start_broker(0)
    link = start_link(cluster)
    cluster.start_gateway(0, brokers=[(MQTT_FRONT, MQTT_PORT)])
    cluster.start_gateway(1)
    cluster.start_front()
    observers = [Observer(host, transport) for host in (*GATEWAYS, FRONT) for transport in ("ws", "sse")]
    cluster.observe(observers)
    load = Load(RATE, AT_BROKERS[:1] * 2)
    cluster.hold(SECONDS)
    gaps = cluster.settle(load, observers)
    cluster.promise(not gaps, "there are gaps, although nothing can be missing")
    check_publications(cluster, link)
    check_requests(cluster)
    check_agents(cluster)


class Publications:
    """Publishes numbered objects at gateways, and receives them at both."""

    def __init__(self, cluster):
        self.cluster = cluster
        self.sockets = {host: Socket(cluster, host) for host in GATEWAYS}
        for socket in self.sockets.values():
            socket.exchange(op="subscribe", id="s", event="channel", channelId="publications")
        self.count = 0

    def publish(self, host, is_deferred):
        """Publishes at a gateway or at haproxy. Returns the number."""
        number = self.count
        answer = self.cluster.ask(host, "POST", "/v1/channel/publications", {"object": thing(number)})
        self.cluster.promise(answer == (202, {"deferred": is_deferred}), f"{host} answered {answer} to a publication")
        self.count += 1
        return number

    def expect(self, host, numbers):
        """Waits until a gateway has delivered these publications, in any order: publications of different gateways have none."""
        found = []
        while len(found) < len(numbers):
            message = self.sockets[host].wait(f"a publication after {found}", lambda message: message["op"] == "event")
            found.append(message["data"]["object"]["number"])
        self.cluster.promise(sorted(found) == numbers, f"{host} has delivered the publications {found} instead of {numbers}")


def check_publications(cluster, link):
    """Publishes at each gateway and at haproxy: with the broker, while only the first gateway has none, and while nobody has one."""
    publications = Publications(cluster)
    numbers = [publications.publish(host, False) for host in (*GATEWAYS, FRONT)]
    for host in GATEWAYS:
        publications.expect(host, numbers)

    link.kill()
    cluster.wait("the first gateway has lost its broker", lambda: not cluster.is_ready(0), READY)
    cluster.hold(OFFLINE)
    numbers = [publications.publish(GATEWAYS[0], True), publications.publish(FRONT, False)]
    start_link(cluster)
    publications.expect(GATEWAYS[1], numbers)
    cluster.wait_until_complete()

    cluster.brokers[0].kill()
    for number in range(2):
        cluster.wait("the gateways have lost their broker", lambda number=number: not cluster.is_ready(number), READY)
    cluster.hold(OFFLINE)
    object = thing()
    status, answer = cluster.ask(FRONT, "POST", "/v1/channel/deferred", {"object": object})
    cluster.promise((status, answer) == (202, {"deferred": True}), f"haproxy answered {status} {answer} without a broker")
    log = cluster.start_broker(0, "log_type all").log
    cluster.wait("the deferred publication arrives", lambda: arrivals(log), READY)
    cluster.wait_until_complete()
    cluster.promise(arrivals(log) == 1, f"the deferred publication arrived {arrivals(log)} times")
    cluster.note("publications", f"{publications.count + 1}, two of them deferred, each arrived once")


def arrivals(log):
    """Returns how often a broker has received the deferred publication."""
    return len(re.findall(r"Received PUBLISH from \S+ \(d0, q0, r0, m0, 'coaty/3/-/CHN:deferred/", log.read_text(errors="replace")))


def start_link(cluster):
    """Starts haproxy between the first gateway and the broker."""
    link = cluster.start_haproxy("haproxy-mqtt", lambda text: text.replace(BROKERS[1], BROKERS[0]).replace(BROKERS[2], BROKERS[0]))
    cluster.wait("haproxy forwards MQTT", lambda: mqtt_connect(MQTT_PORT, address=MQTT_FRONT).close() or True, READY)
    return link


def check_requests(cluster):
    """A client of each gateway answers calls of clients at the other gateway."""
    for asked, answering in (GATEWAYS, GATEWAYS[::-1]):
        operation = f"com.example.scale.{uuid.uuid4().hex}"
        responder, asker = Socket(cluster, answering), Socket(cluster, asked)
        responder.exchange(op="subscribe", id="s", event="call", operation=operation)
        asker.send(op="request", id="r", event="call", operation=operation, data={"parameters": [1, 2]})
        call = responder.wait("the call", lambda message: message["op"] == "event")
        responder.send(op="respond", id="a", event="return", correlationId=call["correlationId"], data={"result": 3})
        answer = asker.wait("the answer", lambda message: message.get("id") == "r" and message["op"] == "response")
        cluster.promise(answer["data"].get("result") == 3, f"the call at {asked} got {answer}")
    cluster.note("calls", "answered by a client of the other gateway, both ways")


def check_agents(cluster):
    """A client identity and an IO node of one gateway are visible at the other."""
    for here, there in (GATEWAYS, GATEWAYS[::-1]):
        socket = Socket(cluster, here)
        identity = socket.exchange(op="identify", id="me", name="Kiosk")["identity"]["objectId"]
        agents = lambda: json.dumps(cluster.ask(there, "GET", "/v1/agents?online=true")[1])  # noqa: E731, B023
        cluster.wait("the other gateway has the identity", lambda: identity in agents(), 5)  # noqa: B023
        source = {"name": "Probe", "valueType": "com.example.Temperature", "updateStrategy": "None"}
        status, node = cluster.ask(here, "POST", "/v1/io/nodes", {"contextName": "Scale", "name": "Node", "ioSources": [source]})
        if not cluster.promise(status == 201, f"the IO node got {status} {node}"):
            continue
        path = f"/v1/objects/{node['node']['objectId']}"
        cluster.wait("the other gateway has the IO node", lambda: cluster.ask(there, "GET", path)[0] == 200, 5)  # noqa: B023
    cluster.note("identities and IO nodes", "visible at the other gateway, both ways")


@row(f"kill -9 of a gateway, {WILLS} times")
def wills(cluster):
    """The broker sends the gateway's will: clients of the other gateway get its Deadvertise within a second."""
    cluster.start()
    socket = Socket(cluster, GATEWAYS[0])
    socket.exchange(op="subscribe", id="s", event="deadvertise")
    times = []
    for _ in range(WILLS):
        identity = cluster.identity(1)
        killed = time.monotonic()
        cluster.gateways.pop(1).kill()
        is_farewell = lambda message: message["op"] == "event" and identity in message["data"]["objectIds"]  # noqa: E731, B023
        socket.wait("the Deadvertise of the killed gateway", is_farewell)
        times.append(1000 * (time.monotonic() - killed))
        cluster.start_gateway(1)
        cluster.wait_until_complete()
    cluster.note("time to the Deadvertise", f"median {statistics.median(times):.0f} ms, at most {max(times):.0f} ms")
    cluster.promise(max(times) < 1000, f"a Deadvertise took {max(times):.0f} ms")
