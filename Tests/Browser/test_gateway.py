"""The counters and slow consumers in the view Gateway."""

import json
import re
import socket

import websocket

from browser import ConsoleCase
from stack import PATIENCE

# Events per second.
RATE = 100


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

    def test_peak_is_not_above_the_rate_when_the_view_is_opened_late(self):
        browser = self.browser
        self.open("feed")
        load = self.stack.load(self.broker, RATE, 60)
        try:
            browser.wait_for_row("Temperature of the hall")
            # The view opens with the status of almost a second ago, just before the next one arrives.
            browser.js(
                """
                const { fetch } = window
                window.fetch = async (...request) => {
                  const answer = await fetch(...request)
                  if (String(request[0].url ?? request[0]).endsWith("v1/status")) {
                    window.fetch = fetch
                    setTimeout(() => document.querySelector('nav a[href="#gateway"]').click(), 900)
                  }
                  return answer
                }
                """
            )
            script = """
            const card = all(".rate").find((card) => nameOf(card) === "Received from the broker")
            const points = card?.querySelector("path.spark-line").getAttribute("d").split("L").length
            return points > 3 ? text(card.querySelector(":scope > p:last-of-type")) : null
            """
            peak = browser.wait("three rates", script)
            value = float(re.fullmatch(r"Peak ([\d.,]+) /s", peak)[1].replace(",", ""))
            # Other events are the heartbeats of the session. A busy machine sends the events late, and then more of them.
            self.assertLess(value, 3 * RATE)
        finally:
            load.end()

    def test_slow_consumer_is_listed(self):
        client = slow_consumer(self.gateway, "sleepy", event="channel", channelId="load")
        try:
            self.stack.load(self.broker, 2000, 5)
            row = """return all('[aria-label="Slow consumers"] tbody tr').find((row) => row.textContent.includes("sleepy"))"""
            self.assertIn("channel", self.browser.wait("the slow consumer", row).text)
        finally:
            client.close()
