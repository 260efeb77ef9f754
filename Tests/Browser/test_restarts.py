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

    def colors(self):
        """Returns the colors of the visible texts of the current view."""
        script = """
        const texts = [...shown().querySelectorAll("*")].filter((element) => isSeen(element) && !/^(BUTTON|INPUT|SELECT|OPTION|CODE)$/.test(element.tagName)
          && [...element.childNodes].some((node) => node.nodeType === Node.TEXT_NODE && node.data.trim() !== ""))
        return [...new Set(texts.map((element) => getComputedStyle(element).color))]
        """
        return self.browser.js(script)

    def test_views_show_nothing_as_present_while_the_gateway_is_away(self):
        browser = self.browser
        banner = """return all("#banner").map(text)[0] ?? ''"""
        self.gateway.advertise("Known before", temperature=20)
        browser.wait_for_row("Known before")
        self.assertEqual(browser.js(banner), "")
        self.assertIn("per second", browser.find(".pane-footer").text)
        browser.go("Agents & objects")
        browser.choose_objects()
        browser.wait_for_row("Known before", "Alive")
        browser.go("Gateway")
        browser.wait("a rate", """return all(".rate-now").some((rate) => /\d/.test(text(rate)))""")
        self.assertGreater(len(self.colors()), 2)
        self.gateway.kill()
        text = browser.wait("the banner", banner)
        self.assertRegex(text, r"^The connection to the gateway was lost at \d\d:\d\d:\d\d\. The page keeps trying")
        browser.wait("no rate is shown as present", """return all(".rate-now").every((rate) => !/\d/.test(text(rate)))""")
        self.assertEqual(len(self.colors()), 1, self.colors())
        for view in ("Live feed", "Agents & objects", "IO routing"):
            browser.go(view)
            browser.wait("no color", "return document.querySelector('main').dataset.stale === 'gateway'")
            self.assertEqual(len(self.colors()), 1, f"{view}: {self.colors()}")
        browser.go("Live feed")
        browser.wait("no rate", "return !text(all('.pane-footer')[0]).includes('per second')")
        self.gateway.start()
        browser.wait_for_connection()
        browser.wait("no banner", "return all('#banner').length === 0")
        self.assertGreater(len(self.colors()), 1)
        self.broker.kill()
        text = browser.wait("the banner", banner)
        self.assertRegex(text, r"^The gateway is not connected to its broker\. Agents, objects and values are those of ")
        self.broker.start()
        browser.wait("no banner", "return all('#banner').length === 0")

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
