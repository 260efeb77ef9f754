"""The view Agents & objects."""

import json
import subprocess

from selenium.webdriver.common.keys import Keys

from browser import NARROW, WIDE, ConsoleCase
from stack import eventually


class AliveTests(ConsoleCase):
    view = "alive"

    def test_agent_is_listed_until_it_leaves(self):
        agent = self.stack.agent(self.broker)
        row = self.browser.wait_for_row("Test agent", "Alive")
        self.assertIn(agent.id, row.text)
        self.assertIn("joined", row.text)
        agent.stop()
        script = """
        return all('[aria-label="Alive"] li').some((row) => row.textContent.includes("Test agent") && row.textContent.includes("left"))
        """
        self.browser.wait("the agent is gone", script)

    def test_agent_that_left_before_the_page_was_opened_is_listed(self):
        browser = self.browser
        agent = self.stack.agent(self.broker)
        browser.wait_for_row(agent.id, "Alive")
        agent.stop()
        eventually("the agent is offline", lambda: agent.id in json.dumps(self.gateway.curl("GET", "/v1/agents?online=false")))
        self.open("alive")
        row = browser.wait_for_row(agent.id, "Alive")
        listed = browser.js("return arguments[0].closest('li').hasAttribute('data-dimmed')", row)
        self.assertTrue(listed, "it is marked as gone")
        known = len(self.gateway.curl("GET", "/v1/agents")["agents"])
        browser.wait("all agents", "return text(all('.pane-footer')[0]).startsWith(`${arguments[0]} of ${arguments[0]} agents · `)", known)
        self.open(f"alive?object={agent.id}")
        browser.wait_for_text(agent.id, "aside[aria-label=Object]")

    def test_object_shows_its_last_change(self):
        browser = self.browser
        lamp = self.gateway.advertise("Lamp of the hall", "com.example.Lamp", isOn=False, brightness=20)
        browser.choose_objects()
        browser.wait_for_row("Lamp of the hall", "Alive").click()
        self.gateway.advertise("Lamp of the hall", "com.example.Lamp", objectId=lamp["objectId"], isOn=True, brightness=20)
        detail = "aside[aria-label=Object]"
        browser.wait_for_text("What changed last", detail)
        cells = browser.wait("the change", "return all(`${arguments[0]} tbody tr`).map((row) => all('td', row).map(text))", detail)
        self.assertEqual(cells, [["isOn", "false", "true"]])
        for expected in ("com.example.Lamp", lamp["objectId"], "coaty-gateway", '"isOn": true'):
            browser.wait_for_text(expected, detail)
        self.gateway.curl("POST", "/v1/deadvertise", {"objectIds": [lamp["objectId"]]})
        browser.wait_for_text("Removed", detail)
        browser.press_keys(Keys.ESCAPE)
        browser.wait("the detail is closed", "return all(arguments[0]).length === 0", detail)

    def test_phone_shows_values_of_objects(self):
        browser = self.browser
        browser.set_appearance(NARROW, "light")
        self.addCleanup(browser.set_appearance, WIDE, "light")
        gauge = self.gateway.advertise("Gauge on a phone", "com.example.Gauge", celsius=21)
        browser.choose_objects()
        row = browser.wait_for_row("Gauge on a phone", "Alive")
        seen = "return all('span', arguments[0]).map(text)"
        self.assertIn("celsius: 21", browser.js(seen, row))
        self.gateway.advertise("Gauge on a phone", "com.example.Gauge", celsius=22, objectId=gauge["objectId"])
        browser.wait("the change", "return all('span', arguments[0]).map(text).includes('celsius: 21 → 22')", row)
        self.assertFalse(browser.js("return document.documentElement.scrollWidth > innerWidth"))

    def test_copied_code_reads_and_observes_the_object(self):
        browser = self.browser
        lamp = self.gateway.advertise("Lamp to copy", "com.example.Lamp", isOn=False)
        browser.choose_objects()
        browser.wait_for_row("Lamp to copy", "Alive").click()
        # Replaced, because the clipboard is shared by all programs of the machine.
        browser.js("navigator.clipboard.writeText = async (text) => { window.copied = text }")
        browser.press("Copy as curl")
        command = browser.wait("the command", "return window.copied")
        answer = subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=True).stdout
        self.assertEqual(json.loads(answer)["object"], lamp)
        browser.press("Copy as client.js")
        code = browser.wait("the code", "return window.copied.startsWith('import') && window.copied")
        observer = self.stack.module(code)
        observer.wait_for_output("the object", "Lamp to copy")
        self.gateway.advertise("Lamp that has changed", "com.example.Lamp", objectId=lamp["objectId"], isOn=True)
        observer.wait_for_output("the change", "Lamp that has changed")

    def test_search_finds_objects_by_value(self):
        browser = self.browser
        thing = self.gateway.advertise("Gauge of the hall", unit="Celsius")
        self.gateway.advertise("Gauge of the yard", unit="Fahrenheit")
        browser.choose_objects()
        browser.fill("Find", "celsius")
        script = "return all('[aria-label=Alive] li').map(text).filter((row) => row.includes('Gauge of the')).length"
        browser.wait_for_row("Gauge of the hall", "Alive")
        eventually("only the one in Celsius", lambda: browser.js(script) == 1)
        self.gateway.advertise("Gauge of the hall", unit="Kelvin", objectId=thing["objectId"])
        eventually("none in Celsius", lambda: browser.js(script) == 0)

    def test_search_finds_objects_by_type(self):
        browser = self.browser
        self.gateway.advertise("One", "com.example.Wanted")
        self.gateway.advertise("Other", "com.example.Unwanted")
        browser.choose_objects()
        browser.wait_for_row("Other", "Alive")
        browser.fill("Find", "example.wanted")
        script = """return all('[aria-label="Alive"] li').map((row) => text(row.querySelector(".name"))).join() === "One" """
        browser.wait("only the matching object", script)
        browser.fill("Find", "nowhere to be found")
        browser.wait_for_text("No matches")


class ObjectValuesTests(ConsoleCase):
    """Plots of numeric properties."""

    view = "alive"

    def advertise(self, lamp=None, **properties):
        more = {"objectId": lamp["objectId"]} if lamp else {}
        return self.gateway.advertise("Lamp of the hall", "com.example.Lamp", **more, **properties)

    def test_changed_numbers_are_plotted(self):
        browser = self.browser
        lamp = self.advertise(brightness=20, at={"x": 1.5}, label="one", floor=3)
        browser.choose_objects()
        row = browser.wait_for_row("Lamp of the hall", "Alive")
        self.assertFalse(self.has_chart(row))
        self.advertise(lamp, brightness=40, at={"x": 1.5}, label="two", floor=3)
        eventually("the chart in the list", lambda: self.has_chart(row))
        row.click()
        eventually("the plot", lambda: (browser.plot("brightness") or "").endswith("from 20 to 40, now 40"))
        self.advertise(lamp, brightness=-5, at={"x": 2.25}, label="three", floor=3)
        eventually("the plot continues", lambda: (browser.plot("brightness") or "").endswith("from -5 to 40, now -5"))
        eventually("another property", lambda: (browser.plot("at.x") or "").endswith("from 1.5 to 2.25, now 2.25"))
        self.assertIsNone(browser.plot("floor"), "a property without changes has no plot")
        # Values are also taken while another view is shown and no object is open.
        browser.press("Close")
        browser.go("Send")
        self.advertise(lamp, brightness=60, at={"x": 2.25}, label="four", floor=3)
        browser.go("Agents & objects")
        browser.wait_for_row("Lamp of the hall", "Alive").click()
        eventually("the plot has continued", lambda: (browser.plot("brightness") or "").endswith("from -5 to 60, now 60"))

    def has_chart(self, row):
        return self.browser.js("return all('.picture svg .spark-line', arguments[0]).some((line) => line.getAttribute('d').includes('L'))", row)
