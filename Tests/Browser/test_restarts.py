"""The console during and after restarts of the gateway or its broker."""

import browser
from browser import ConsoleCase


class RestartTests(ConsoleCase):
    # The browser logs failed connections to the gateway.
    allowed = browser.NETWORK

    def gaps(self):
        return self.browser.js("""return all("[aria-label=Events] [data-gap]").map(text)""")

    def wait_for_gap(self):
        self.browser.wait("a gap", """return all("[aria-label=Events] [data-gap]").some((row) => text(row).includes("Gap:"))""")

    def test_feed_shows_a_gap_after_a_restart_of_the_gateway(self):
        self.gateway.advertise("Before the gateway died")
        self.browser.wait_for_row("Before the gateway died")
        self.gateway.kill()
        self.browser.wait_for_connection("Connecting")
        self.gateway.start()
        self.browser.wait_for_connection("Online")
        self.wait_for_gap()
        self.gateway.advertise("After the gateway came back")
        self.browser.wait_for_row("After the gateway came back")
        # Earlier events stay, below the gap.
        self.browser.wait_for_row("Before the gateway died")
        order = self.browser.js(
            """
            const rows = all("[aria-label=Events] li").map(text)
            const place = (part) => rows.findIndex((row) => row.includes(part))
            return [place("After the gateway came back"), place("Gap:"), place("Before the gateway died")]
            """
        )
        self.assertEqual(order, sorted(order), "the gap is between the earlier and the later events")

    def test_feed_shows_a_gap_after_a_restart_of_the_broker(self):
        agent = self.stack.agent(self.broker)
        self.gateway.advertise("Before the broker died")
        self.browser.wait_for_row("Before the broker died")
        self.broker.kill()
        self.browser.wait_for_connection("Broker offline")
        deferred = self.gateway.curl("POST", "/v1/advertise", {"object": thing("While the broker was away")})
        self.assertEqual(deferred, {"deferred": True})
        self.broker.start()
        self.browser.wait_for_connection("Online")
        self.wait_for_gap()
        self.gateway.advertise("After the broker came back")
        self.browser.wait_for_row("After the broker came back")
        agent.stop()

    def test_alive_is_correct_after_both_restarts(self):
        self.open("alive")
        agent = self.stack.agent(self.broker)
        self.browser.wait_for_row(agent.id, "Alive")
        self.gateway.kill()
        self.browser.wait_for_connection("Connecting")
        agent.stop()
        other = self.stack.agent(self.broker)
        self.gateway.start()
        self.browser.wait_for_connection("Online")
        self.browser.wait_for_row(other.id, "Alive")
        script = """
        return !all('[aria-label="Alive"] li:not([data-dimmed])').some((row) => row.textContent.includes(arguments[0]))
        """
        self.browser.wait("the stopped agent is gone", script, agent.id)
        self.broker.kill()
        self.browser.wait_for_connection("Broker offline")
        self.broker.start()
        self.browser.wait_for_connection("Online")
        self.browser.wait_for_row(other.id, "Alive")


def thing(name):
    return {"coreType": "CoatyObject", "objectType": "com.example.Thing", "objectId": "5a9c1f6e-3b52-4d0a-8f6e-2f6f0a3c7d11", "name": name}
