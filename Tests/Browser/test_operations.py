"""The view Gateway: rates, clients, connections, and administration."""

import json
import uuid

import websocket

from browser import ConsoleCase
from stack import PATIENCE, eventually
from test_access import DENIED, ConfiguredCase, token_entry
from test_gateway import slow_consumer

PHONE = (360, 740)
WIDE = (1280, 900)
# More connections than the gateway lists by default.
CONNECTIONS = 210

TOKENS = {name: f"coaty_{name}-0123456789abcdef" for name in ("operator", "viewer", "warden")}
ROLES = {
    "operator": [{"read": ["status"]}, {"administer": ["clients", "gateway"]}],
    "viewer": [{"read": ["status"]}],
    "warden": [{"administer": ["gateway"]}],
}


def connect(gateway):
    """Opens a WebSocket."""
    return websocket.create_connection(gateway.url.replace("http", "ws") + "/v1/ws", timeout=PATIENCE, subprotocols=["coaty.v1"])


def client(gateway, name, **what):
    """Opens a WebSocket with an identity and a subscription."""
    socket = connect(gateway)
    for frame in ({"op": "identify", "id": "i", "name": name}, {"op": "subscribe", "id": "s", **what}):
        socket.send(json.dumps(frame))
        answer = json.loads(socket.recv())
        assert answer["op"] == "ok", answer
    return socket


def close_code(socket):
    """Reads until the gateway closes the connection, and returns the close code."""
    while True:
        # `recv_data` would reply to the close frame, but the connection may already be closed.
        frame = socket.recv_frame()
        if frame.opcode == websocket.ABNF.OPCODE_CLOSE:
            return int.from_bytes(frame.data[:2], "big")


class Tables:
    """Reads the tiles and tables of the view."""

    def number(self, tile):
        """Returns the number of a tile; None if it is not known yet."""
        script = """return text(all(`section[aria-label="${arguments[0]}"] .rate-now > span`)[0])"""
        shown = self.browser.js(script, tile)
        return None if shown == "–" else float(shown.replace(",", ""))

    def row(self, table, *parts):
        """Returns the texts of the cells of the first row that contains these texts; None if there is no such row."""
        script = """
        const [table, parts] = arguments
        const row = all(`[aria-label="${table}"] tbody tr`).find((row) => parts.every((part) => row.textContent.includes(part)))
        return row ? all("td", row).map(text) : null
        """
        return self.browser.js(script, table, parts)


class OperationsTests(Tables, ConsoleCase):
    view = "gateway"

    def setUp(self):
        self.browser.set_appearance(WIDE, "light")
        super().setUp()

    @classmethod
    def begin(cls):
        cls.broker = cls.stack.broker()
        cls.gateway = cls.stack.gateway(cls.broker, "--limit", "maximum-subscriptions-per-client=12")

    def test_rates_latencies_and_queues_are_plotted(self):
        consumer = slow_consumer(self.gateway, "sleepy", event="channel", channelId="load")
        self.addCleanup(consumer.close)
        self.stack.load(self.broker, 2000, 5)
        for tile in ("Received from the broker", "Delivered to clients", "HTTP requests", "HTTP latency, 99 %",
                     "Wait of events, 99 %", "Queued for slow clients"):
            eventually(tile, lambda: (self.number(tile) or 0) > 0)
        script = """
        return all(".rate").filter((tile) => tile.querySelector(".spark-line").getAttribute("d").includes("L"))
          .map((tile) => tile.getAttribute("aria-label"))
        """
        eventually("all charts are drawn", lambda: len(self.browser.js(script)) == 9)
        label = """return all('section[aria-label="HTTP latency, 99 %"] svg')[0].getAttribute("aria-label")"""
        self.assertRegex(self.browser.js(label), r"^HTTP latency, 99 % in the last two minutes: at most [0-9.,]+ milliseconds$")

    def test_clients_and_reached_limits_are_listed(self):
        consumer = slow_consumer(self.gateway, "watcher", event="channel", channelId="c")
        self.addCleanup(consumer.close)
        eventually("the client", lambda: self.row("Top clients", "address 127.0.0.1"))
        for number in range(13):
            consumer.send(json.dumps({"op": "subscribe", "id": f"s{number}", "event": "channel", "channelId": f"c{number}"}))
        cells = eventually("the limit", lambda: self.row("Limits reached", "subscriptions", "by one client"))
        self.assertGreaterEqual(int(cells[2]), 1)

        def publishes():
            for _ in range(10):
                self.gateway.curl("POST", "/v1/channel/c", {"object": {"coreType": "CoatyObject", "objectType": "t", "objectId": "5b1c1b1e-4c4b-4d0e-9d5a-0d4f1b1c1b1e", "name": "n"}})
            cells = self.row("Top clients", "address 127.0.0.1")
            return cells[1] not in ("–", "0") and cells[2] not in ("–", "0")

        eventually("its work and its events", publishes)

    def test_connections_are_listed_and_disconnected(self):
        browser = self.browser
        display = client(self.gateway, "Wall display", event="channel", channelId="c")
        self.addCleanup(display.close)
        other = client(self.gateway, "Other display", event="channel", channelId="c")
        self.addCleanup(other.close)
        cells = eventually("the connection", lambda: self.row("Connections", "Wall display"))
        self.assertEqual(cells[:4] + cells[6:8], ["address 127.0.0.1", "Wall display", "127.0.0.1", "WebSocket", "0", "0"])
        self.assertRegex(cells[4], r"^\d+ s$")
        eventually("the connection of the page", lambda: self.row("Connections", "–", "WebSocket"))

        def is_rated():
            self.gateway.curl("POST", "/v1/channel/c", {"object": {"coreType": "CoatyObject", "objectType": "t", "objectId": str(uuid.uuid4()), "name": "n"}})
            return self.row("Connections", "Wall display")[5] not in ("–", "0")

        eventually("its rate", is_rated)
        name = browser.js("""return all('[aria-label="Connections"] tr button').map(nameOf).find((name) => name.startsWith("Disconnect Wall display at 127.0.0.1"))""")
        browser.press(name)
        browser.wait_for_text("Disconnect Wall display at 127.0.0.1 (WebSocket")
        browser.press("Cancel")
        browser.wait("the focus is back", "return document.activeElement.getAttribute('aria-label') === arguments[0]", name)
        browser.press(name)
        browser.press("Disconnect it")
        browser.wait_for_text("Disconnected Wall display", "#toasts")
        self.assertEqual(close_code(display), 4505)
        eventually("the connection is gone", lambda: self.row("Connections", "Wall display") is None)
        self.assertIsNotNone(self.row("Connections", "Other display"))

    def test_connections_are_found_by_text(self):
        browser = self.browser
        display = client(self.gateway, "Projector", event="channel", channelId="c")
        self.addCleanup(display.close)
        for _ in range(CONNECTIONS):
            self.addCleanup(connect(self.gateway).close)
        rows = """return all('[aria-label="Connections"] tbody tr').length"""
        eventually("all connections", lambda: browser.js(rows) > CONNECTIONS)
        browser.fill("Find connections", "projec")
        eventually("the found connection", lambda: browser.js(rows) == 1 and self.row("Connections", "Projector"))
        self.assertRegex(browser.js("""return text(all('[aria-label="Connections"] .card-header p')[0])"""), r"^1 of 2\d\d connections$")
        browser.wait("the text in the address", "return location.hash === '#gateway?connections=projec'")
        self.open("gateway?connections=projec")
        eventually("the same connection, with a link", lambda: browser.js(rows) == 1 and self.row("Connections", "Projector"))
        browser.fill("Find connections", "nowhere to be found")
        eventually("no connection", lambda: browser.js(rows) == 0)

    def test_slow_client_is_listed_as_a_connection(self):
        consumer = slow_consumer(self.gateway, "sleepy", event="channel", channelId="load")
        self.addCleanup(consumer.close)
        self.stack.load(self.broker, 2000, 5)
        queued = """return all('[aria-label="Connections"] tbody tr').map((row) => all("td", row).map(text)).filter((cells) => / · .*iB$/.test(cells[6]) && cells[7] !== "0")"""
        self.assertEqual(len(self.browser.wait("its queue and its drops", queued)), 1)

    def test_parts_are_paused_and_resumed(self):
        browser = self.browser
        parts = """return all("ul[aria-label=Parts] > li").map(text)"""
        eventually("the parts", lambda: "listeneractive" in browser.js(parts) and "gatewayactive" in browser.js(parts))
        browser.press("Pause")
        browser.wait_for_text("A paused gateway refuses new work")
        self.assertEqual(self.gateway.curl("GET", "/v1/status")["paused"], False)
        browser.press("Cancel")
        browser.press("Pause")
        browser.press("Pause the gateway")
        eventually("the parts are paused", lambda: "gatewaypaused" in browser.js(parts))
        browser.wait_for_text("The gateway is paused: it refuses new work")
        self.assertEqual(self.gateway.curl("GET", "/v1/status")["paused"], True)
        browser.press("Resume")
        eventually("the parts are active", lambda: "gatewayactive" in browser.js(parts))
        browser.wait("no notice", "return !all('.notice').some((notice) => notice.textContent.includes('is paused'))")
        self.assertEqual(self.gateway.curl("GET", "/v1/status")["paused"], False)

    def test_view_fits_a_phone(self):
        consumer = slow_consumer(self.gateway, "a-subscription-with-an-id-that-does-not-fit-into-a-line", event="channel", channelId="load")
        self.addCleanup(consumer.close)
        self.stack.load(self.broker, 2000, 5)
        eventually("the slow client", lambda: self.row("Slow consumers", "a-subscription"))
        eventually("the client", lambda: self.row("Top clients", "address"))
        eventually("the parts", lambda: self.browser.js("return all('ul[aria-label=Parts] > li').length > 5"))
        for width in (PHONE[0], 639):
            self.browser.set_appearance((width, PHONE[1]), "light")
            self.assertEqual(self.columns(), 1, width)
            self.assertEqual(self.overflowing(), [], width)
            self.browser.screenshot(self.folder / f"{width}.png")
        self.browser.set_appearance(WIDE, "light")
        self.assertEqual(self.columns(), 3)
        self.assertEqual(self.overflowing(), [])
        self.browser.screenshot(self.folder / f"{WIDE[0]}.png")

    def columns(self):
        return self.browser.js("return new Set(all('.rate').map((tile) => tile.getBoundingClientRect().left)).size")

    def overflowing(self):
        """Returns the elements that are wider than the window, or that scroll horizontally."""
        script = """
        return all("*", document.body).filter((element) => !element.closest("svg, .visually-hidden, .skip"))
          .filter((element) => element.getBoundingClientRect().right > innerWidth + 0.5
            || element.scrollWidth > element.clientWidth + 1 && ["auto", "scroll"].includes(getComputedStyle(element).overflowX))
          .map((element) => `${element.tagName} ${element.className} ${element.getAttribute("aria-label")} ${element.scrollWidth} > ${element.clientWidth}`)
        """
        return self.browser.js(script)


class OperationsGrantTests(Tables, ConfiguredCase):
    # The browser logs the status of a refused reload.
    allowed = rf"{DENIED}|status of 422"

    @classmethod
    def configure(cls, **settings):
        cls.write([token_entry(name, token, name) for name, token in TOKENS.items()], ROLES, **settings)

    def sentences(self):
        return self.browser.js("return all('p', shown()).map(text).filter((text) => text.includes('needs the grant'))")

    def test_operator_sees_everything(self):
        self.sign_in(TOKENS["operator"], "Gateway")
        cells = eventually("the operator", lambda: self.row("Top clients", "token operator"))
        self.assertIn("token operator", cells[0])
        self.browser.wait("the parts", "return all('ul[aria-label=Parts] > li').length > 5")
        self.assertEqual(self.sentences(), [])

    def test_viewer_sees_no_clients_and_no_parts(self):
        self.sign_in(TOKENS["viewer"], "Gateway")
        eventually("the rate", lambda: self.number("HTTP requests") is not None)
        self.assertEqual(self.sentences(), [
            "To see what clients cost needs the grant administer: [clients].",
            "To see which clients are slow needs the grant administer: [clients].",
            "To see the connections of clients, and to disconnect them, needs the grant administer: [clients].",
            "To see the parts of the gateway, and to pause or reload it, needs the grant administer: [gateway].",
        ])
        self.assertEqual(self.browser.js("return all('button', shown()).map(text)"), [])

    def test_warden_sees_only_the_parts(self):
        self.sign_in(TOKENS["warden"], "Gateway")
        self.browser.wait("the parts", "return all('ul[aria-label=Parts] > li').length > 5")
        self.assertEqual(self.sentences(), [
            "To see rates, queues and clients needs the grant read: [status].",
            "To see the connections of clients, and to disconnect them, needs the grant administer: [clients].",
        ])
        self.assertEqual(self.browser.js("return all('button', shown()).map(text)"), ["Reload", "Pause"])

    def test_reload(self):
        self.sign_in(TOKENS["operator"], "Gateway")
        browser = self.browser
        self.addCleanup(self.configure)
        browser.press("Reload")
        browser.wait_for_text("Reloaded: no setting has changed.", "#toasts")
        self.configure(**{"log-level": "warning"})
        browser.press("Reload")
        browser.wait_for_text("Reloaded: log-level changed.", "#toasts")
        self.configure(namespace="other")
        browser.press("Reload")
        browser.wait_for_text("reload not supported for namespace", ".notice")
