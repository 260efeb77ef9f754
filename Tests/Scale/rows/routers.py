"""Two gateways that route the same IO context."""

import statistics
import threading
import time

from cluster import READY
from rows.gateways import Socket
from stack import Gateway
from table import ask, row
from wire import encoded

CONTEXT = "Scale"
VALUE_TYPE = "com.example.Number"
ROUTING = f"""
routing:
  contexts:
    - context: {{ coreType: IoContext, objectType: com.example.Context, objectId: b61740a6-95d7-4d1a-8be5-53f3aa1e0b7a, name: {CONTEXT} }}
      rules:
        - {{ name: All, valueType: {VALUE_TYPE}, condition: [source.valueType, [Exists]] }}
"""
SOURCES, ACTORS = 3, 2
PAIRS = SOURCES * ACTORS
# Seconds until a router has begun or taken over, and in which nothing more may follow.
LIMIT = 15
QUIET = 6
KILLS = 4
# Seconds between two values of a source.
INTERVAL = 0.02


class Points:
    """A gateway outside of the cluster whose clients are IO sources and actors. It counts associations and values."""

    def __init__(self, cluster):
        self.cluster = cluster
        gateway = Gateway(cluster.folder, "points", cluster.binary, "mqtt://192.0.2.21:1883")
        cluster.keep(gateway)
        self.port = gateway.port
        self.events = Socket(cluster, "127.0.0.1", self.port)
        self.events.exchange(op="subscribe", id="associate", event="associate", contextName=CONTEXT)
        node = {"contextName": CONTEXT, "name": "Node", "leaseDuration": 600_000}
        node["ioSources"] = [{"name": "Source", "valueType": VALUE_TYPE, "updateStrategy": "None"}] * SOURCES
        node["ioActors"] = [{"name": "Actor", "valueType": VALUE_TYPE}] * ACTORS
        status, answer = ask(self.port, "POST", "/v1/io/nodes", node)
        cluster.promise(status == 201, f"the IO node got {status} {answer}")
        self.source, self.actor = (answer["node"][key][0]["objectId"] for key in ("ioSources", "ioActors"))
        self.values = Socket(cluster, "127.0.0.1", self.port)
        self.values.exchange(op="subscribe", id="values", event="iovalue", ioActorId=self.actor)
        #: Associations as (router, source, actor), in the order of their events, and dissolved ones.
        self.associations = []
        self.dissolved = []
        self.received = []

    def take(self):
        """Reads the events and values that have arrived. Returns the number of associations."""
        self.received += [message["data"]["value"] for message in self.values.arrived() if message["op"] == "event"]
        for message in self.events.arrived():
            if message["op"] == "event":
                data = message["data"]
                pair = message["sourceId"], data["ioSourceId"], data["ioActorId"]
                (self.associations if data.get("associatingRoute") else self.dissolved).append(pair)
        return len(self.associations)

    def wait_for_pairs(self, count):
        """Waits until there are this many associations. Returns the identities of their routers, and forgets the associations."""
        self.cluster.wait("all pairs are associated", lambda: self.take() >= count, LIMIT)
        self.hold()
        found, self.associations = self.associations, []
        self.cluster.promise(len(found) == len(set(found)) == count, f"{len(found)} associations of {len(set(found))} pairs, not {count}")
        return {router for router, _, _ in found}

    def hold(self):
        """Reads what arrives while nothing should change."""
        for _ in range(QUIET):
            self.cluster.hold(1)
            self.take()

    def expect_silence(self):
        self.hold()
        self.cluster.promise(not self.associations, f"there are {len(self.associations)} new associations: {self.associations[:2]}")
        self.associations = []


class Values(threading.Thread):
    """Publishes the values 0, 1, … of a source."""

    def __init__(self, points):
        super().__init__(daemon=True)
        self.points = points
        self.count = 0
        self.has_ended = False

    def run(self):
        while not self.has_ended:
            ask(self.points.port, "POST", f"/v1/io/sources/{self.points.source}/values", encoded(self.count))
            self.count += 1
            time.sleep(INTERVAL)


@row(f"two gateways that route the same IO context; the speaking one is killed {KILLS} times, and stopped once")
def routers(cluster):
    """Each pair of source and actor is associated once. If the speaking gateway is killed or stopped, the other one publishes all
    associations again within 15 s; none is dissolved, and no value is lost. A gateway that starts again stays silent."""
    cluster.start_broker(0)
    for number in range(2):
        cluster.start_gateway(number, configuration=ROUTING)
    cluster.wait_until_complete()
    points = Points(cluster)
    speakers = points.wait_for_pairs(PAIRS)
    values = Values(points)
    values.start()
    times = []
    for kill in range(KILLS + 1):
        number = next((number for number in range(2) if cluster.identity(number) in speakers), 0)
        cluster.promise(speakers == {cluster.identity(number)}, f"the routers {speakers} have published associations")
        since = time.monotonic()
        if kill < KILLS:
            cluster.gateways.pop(number).kill()
        else:
            cluster.note("SIGTERM took", f"{cluster.gateways.pop(number).stop(READY):.1f} s")
        cluster.wait("the other gateway speaks", lambda: points.take() >= PAIRS, LIMIT)
        times.append(time.monotonic() - since)
        speakers = points.wait_for_pairs(PAIRS)
        cluster.promise(speakers == {cluster.identity(1 - number)}, f"the routers {speakers} have published associations")
        cluster.start_gateway(number, configuration=ROUTING)
        cluster.wait_until_complete()
        points.expect_silence()
    values.has_ended = True
    values.join(5)
    points.hold()
    found = points.received
    lost = values.count - len(set(found))
    cluster.note("time to all associations", f"median {statistics.median(times):.2f} s, at most {max(times):.2f} s")
    cluster.note("values", f"{values.count} published, {lost} lost, {len(found) - len(set(found))} twice")
    cluster.promise(not points.dissolved, f"{len(points.dissolved)} associations were dissolved")
    cluster.promise(lost == 0 and len(found) == len(set(found)), "values were lost, or arrived twice")
