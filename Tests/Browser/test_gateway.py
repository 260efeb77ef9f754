"""The counters and slow consumers in the view Gateway."""

import json
import socket

import websocket

from browser import ConsoleCase
from stack import PATIENCE


def slow_consumer(gateway, identifier, **what):
    """Returns a client that subscribes and then stops reading."""
    url = gateway.url.replace("http", "ws") + "/v1/ws"
    # With a small receive buffer, the queue in the gateway fills up soon.
    options = [(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)]
    client = websocket.create_connection(url, timeout=PATIENCE, subprotocols=["coaty.v1"], sockopt=options)
    client.send(json.dumps({"op": "subscribe", "id": identifier, **what}))
    answer = json.loads(client.recv())
    assert answer["op"] == "ok", answer
    return client


class GatewayTests(ConsoleCase):
    view = "gateway"

    def fact(self, card, term):
        script = """
        const term = all(`section[aria-label="${arguments[0]}"] dt`).find((term) => text(term) === arguments[1])
        return term && text(term.nextElementSibling)
        """
        return self.browser.wait(f"{term} of {card}", script, card, term)

    def test_broker_address_and_counters_are_shown(self):
        browser = self.browser
        browser.wait("the address", "return shown().textContent.includes(arguments[0])", self.broker.url)
        self.assertEqual(self.fact("Broker", "Session"), "Online")
        self.assertEqual(self.fact("Broker", "Started by"), "Someone else")
        # For example "5 · gateway 5": the total, then the number of each session.
        published = int(self.fact("Events", "Published").split()[0].replace(",", ""))
        for number in range(3):
            self.gateway.advertise(f"Counted {number}")
        script = """
        const term = all('section[aria-label="Events"] dt').find((term) => text(term) === "Published")
        return parseInt(text(term.nextElementSibling).replaceAll(",", "")) >= arguments[0]
        """
        browser.wait("three more are published", script, published + 3)

    def test_slow_consumer_is_listed(self):
        client = slow_consumer(self.gateway, "sleepy", event="channel", channelId="load")
        try:
            self.stack.load(self.broker, 2000, 5)
            row = """return all('[aria-label="Slow consumers"] tbody tr').find((row) => row.textContent.includes("sleepy"))"""
            self.assertIn("channel", self.browser.wait("the slow consumer", row).text)
        finally:
            client.close()
