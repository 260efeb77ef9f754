"""Tests of each view in Firefox."""

import shutil
import unittest

import stack
from browser import OUT, PROGRAMS
from firefox import Firefox
from stack import TEMPERATURE_NAMESPACE

ESCAPE = "\ue00c"
ARROW_DOWN = "\ue015"


class FirefoxTests(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = OUT / cls.__name__
        shutil.rmtree(folder, ignore_errors=True)
        cls.stack = stack.Stack(folder, PROGRAMS)
        cls.addClassCleanup(cls.stack.stop)
        cls.broker = cls.stack.broker()
        cls.gateway = cls.stack.router(cls.broker)
        cls.agent = cls.stack.agent(cls.broker, TEMPERATURE_NAMESPACE)
        cls.stack.example(cls.broker, "io-routing-actor", "normal", 1000)
        cls.stack.example(cls.broker, "io-routing-sources", 1000)
        cls.firefox = Firefox(folder)
        cls.addClassCleanup(cls.firefox.quit)

    def setUp(self):
        self.open("feed")

    def tearDown(self):
        self.assertEqual(self.firefox.problems(), [])

    def open(self, view):
        # A URL that differs only in its fragment would not load the page again.
        self.firefox.open("about:blank")
        self.firefox.open(f"{self.gateway.url}/#{view}")
        self.firefox.wait("online", "return text(document.getElementById('connection')) === 'Online'")

    def wait_for_row(self, value, name):
        script = """
        const row = all(`[aria-label="${arguments[1]}"] li button`).find((row) => row.textContent.includes(arguments[0]))
        row?.focus()
        return row !== undefined
        """
        self.firefox.wait(f"a row with {value}", script, value, name)

    def wait_for_text(self, value):
        self.firefox.wait(f"the text {value}", "return shown().textContent.includes(arguments[0])", value)

    def test_feed(self):
        self.gateway.advertise("First door", "com.example.Door")
        self.gateway.advertise("Second door", "com.example.Door")
        self.wait_for_row("Second door", "Events")
        self.firefox.press("Pause")
        self.wait_for_row("Second door", "Events")
        self.firefox.press_keys(ARROW_DOWN)
        self.firefox.wait("the next row", "return text(document.activeElement).includes('First door')")
        self.firefox.js("document.activeElement.click()")
        self.firefox.wait("the detail", "return all('aside[aria-label=Event]').some((detail) => text(detail).includes('First door'))")
        self.firefox.press_keys(ESCAPE)
        self.firefox.wait("the focus is back", "return text(document.activeElement).includes('First door')")

    def test_objects_and_values(self):
        lamp = self.gateway.advertise("Lamp", "com.example.Lamp", brightness=20)
        self.firefox.press_keys("2")
        self.firefox.wait("the view", "return text(shown().querySelector('h1')) === 'Agents & objects'")
        self.wait_for_row("Test agent", "Alive")
        script = """const button = all("button", shown()).find((button) => /^Objects \\d/.test(text(button))); button?.click(); return Boolean(button)"""
        self.firefox.wait("the button Objects", script)
        self.wait_for_row("Lamp", "Alive")
        self.firefox.js("document.activeElement.click()")
        self.gateway.advertise("Lamp", "com.example.Lamp", objectId=lamp["objectId"], brightness=30)
        self.firefox.wait("the plot", "return all('figure.plot').length > 0")

    def test_event_is_sent(self):
        self.open("send")
        self.firefox.js(
            """
            const select = all("select", shown())[0]
            select.value = "discover"
            select.dispatchEvent(new Event("input", { bubbles: true }))
            select.dispatchEvent(new Event("change", { bubbles: true }))
            """
        )
        self.firefox.press("Send")
        self.firefox.wait("answers", "return all('[aria-label=\"Answers\"] > li').length > 0")

    def test_routing(self):
        self.open("routing")
        self.firefox.wait("the edges", "return all('svg[role=img] [data-edge]').length > 0")

    def test_gateway_and_access(self):
        self.open("gateway")
        self.firefox.wait("the connections", """return all('[aria-label="Connections"] tr button').length > 0""")
        self.open("access")
        self.wait_for_text("Open access")

    def test_scheme(self):
        background = "return getComputedStyle(document.body).backgroundColor"
        self.firefox.press_keys("?")
        shades = []
        for name in ("dark", "light"):
            self.firefox.js("document.querySelector(`dialog [data-scheme=${arguments[0]}]`).click()", name)
            shades.append(self.firefox.js(background))
        self.assertEqual(shades, ["rgb(14, 19, 24)", "rgb(245, 246, 248)"])
        self.firefox.js("document.querySelector('dialog [data-scheme=system]').click()")
        self.firefox.press_keys(ESCAPE)
        self.firefox.wait("the dialog is closed", "return !document.querySelector('dialog').open")
