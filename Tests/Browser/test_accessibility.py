"""Checks every view with axe-core, and uses the console with the keyboard only."""

import pathlib

import axe_playwright_python
from selenium.webdriver.common.keys import Keys

from browser import NARROW, NETWORK, WIDE, ConsoleCase
from stack import TEMPERATURE_NAMESPACE
from test_gateway import slow_consumer

AXE = (pathlib.Path(axe_playwright_python.__file__).parent / "axe.min.js").read_text()
VIEWS = ["feed", "alive", "send", "routing", "gateway", "access"]
APPEARANCES = [(size, scheme) for size in (WIDE, NARROW) for scheme in ("light", "dark")]
SERIOUS = ("serious", "critical")


class AccessibilityCase(ConsoleCase):
    def setUp(self):
        self.browser.set_appearance(WIDE, "light")
        super().setUp()

    def check(self, what):
        """Checks the current page in each size and color scheme."""
        found = {}
        for size, scheme in APPEARANCES:
            self.browser.set_appearance(size, scheme)
            result = self.findings()
            for finding in result:
                found.setdefault(finding, []).append(f"{size[0]} {scheme}")
        self.browser.set_appearance(WIDE, "light")
        self.assertEqual([f"{what}: {finding}: {', '.join(looks)}" for finding, looks in found.items()], [])

    def findings(self):
        if not self.browser.js("return Boolean(window.axe)"):
            self.browser.cdp("Runtime.evaluate", expression=AXE)
        script = """
        const done = arguments[arguments.length - 1]
        // The size and the scheme take effect with the next frame.
        requestAnimationFrame(() => axe.run(document, { resultTypes: ["violations"] }).then(
          ({ violations }) => done(violations.filter(({ impact }) => arguments[0].includes(impact)).flatMap(({ id, help, nodes }) =>
            nodes.map(({ target, failureSummary }) => `${id} (${help}) at ${target.join(" ")}: ${failureSummary.split("\\n").slice(1).join(" ").trim()}`))),
          (error) => done([String(error)])))
        """
        return self.browser.driver.execute_async_script(script, list(SERIOUS))


class EmptyTests(AccessibilityCase):
    def test_empty_views(self):
        for view in VIEWS:
            with self.subTest(view):
                self.open(view)
                self.check(f"empty {view}")


class AwayTests(AccessibilityCase):
    # The browser logs failed connections to the gateway.
    allowed = NETWORK

    def test_views_while_the_gateway_is_away(self):
        agent = self.stack.agent(self.broker)
        self.open("alive")
        self.browser.wait_for_row(agent.id, "Alive")
        for view in ("Live feed", "IO routing", "Gateway"):
            self.browser.go(view)
        self.browser.wait("a rate", """return all(".rate-now").some((rate) => /\\d/.test(rate.textContent))""")
        self.gateway.kill()
        self.browser.wait("the banner", "return all('#banner').length === 1")
        for view in ("Agents & objects", "Live feed", "IO routing", "Gateway"):
            with self.subTest(view):
                self.browser.go(view)
                self.check(f"{view} while the gateway is away")
        self.gateway.start()


class FullTests(AccessibilityCase):
    @classmethod
    def begin(cls):
        cls.broker = cls.stack.broker()
        cls.gateway = cls.stack.router(cls.broker)
        cls.agent = cls.stack.agent(cls.broker, TEMPERATURE_NAMESPACE)
        for state in ("normal", "emergency"):
            cls.stack.example(cls.broker, "io-routing-actor", state, 1000)
        cls.stack.example(cls.broker, "io-routing-sources", 1000)

    def test_help(self):
        self.browser.press_keys("?")
        self.browser.wait("the dialog", "return document.querySelector('dialog').open")
        self.check("help")

    def publish_events(self):
        lamp = self.gateway.advertise("Lamp of the hall", "com.example.Lamp", isOn=False)
        self.gateway.advertise("Lamp of the hall", "com.example.Lamp", objectId=lamp["objectId"], isOn=True)
        self.gateway.curl("POST", "/v1/call/com.example.add?limit=1", {"parameters": [1, 2]})
        gone = self.gateway.advertise("Removed lamp", "com.example.Lamp")
        self.gateway.curl("POST", "/v1/deadvertise", {"objectIds": [gone["objectId"]]})

    def test_feed(self):
        self.publish_events()
        self.browser.wait_for_row("com.example.add")
        self.check("feed")
        self.browser.find("summary", "Filters").click()
        self.check("filters")
        self.browser.press("Pause")
        self.publish_events()
        self.check("paused feed")
        self.browser.press("Resume")
        self.browser.wait_for_row("com.example.add").click()
        self.check("opened event")

    def test_alive(self):
        self.open("alive")
        self.publish_events()
        self.browser.wait_for_row("Test agent", "Alive")
        self.check("agents")
        self.browser.wait_for_row("Test agent", "Alive").click()
        self.check("opened agent")
        self.browser.press("Close")
        self.browser.choose_objects()
        self.browser.wait_for_row("Lamp of the hall", "Alive")
        self.check("objects")
        self.browser.wait_for_row("Lamp of the hall", "Alive").click()
        self.check("opened object")
        self.browser.press("Close")
        lamp = self.gateway.advertise("Lamp with values", "com.example.Lamp", brightness=20)
        self.gateway.advertise("Lamp with values", "com.example.Lamp", objectId=lamp["objectId"], brightness=30)
        self.browser.wait_for_row("Lamp with values", "Alive").click()
        self.browser.wait("the plot", "return all('figure.plot').length > 0")
        self.check("plotted values")

    def test_send(self):
        self.open("send")
        browser = self.browser
        card = browser.find(".send-calls")
        browser.fill("Operation", "com.example.ask", card)
        browser.press("Answer calls", card)
        browser.wait_for_text("Waiting for calls")
        browser.choose("Pattern", "call")
        form = browser.find("form[aria-label=Event]")
        browser.fill("Operation", "com.example.ask", form)
        browser.fill("Timeout (ms)", "60000", form)
        browser.press("Send")
        browser.wait("the call", """return all('[aria-label="Calls"] > li').length === 1""")
        self.check("a pending call")
        browser.fill("Result", "7", card)
        browser.press("Return", card)
        browser.wait("the answer", """return all('[aria-label="Answers"] > li').length === 1""")
        self.check("an answer")
        browser.press("com.example.ask")
        browser.fill("Timeout (ms)", "300", form)
        browser.press("Stop", card)
        browser.press("Send")
        browser.wait("an earlier request", """return all('[aria-label="Earlier requests"] > li').length === 1""")
        browser.js("all('[aria-label=\"Earlier requests\"] summary')[0].click()")
        self.check("known operations and earlier requests")
        browser.field("Body").send_keys("no JSON")
        browser.press("Send")
        self.check("an invalid body")

    def test_routing(self):
        self.open("routing")
        browser = self.browser
        edges = "return all('svg[role=img] [data-edge]').length === 3"
        browser.wait("the edges", edges)
        self.check("routing")
        browser.press("Why does “Temperature Actor 2” get nothing?")
        browser.wait_for_text("gets nothing from the 3 sources")
        browser.choose("Source", "Temperature Source 2")
        browser.wait("the plot", "return all('figure.plot').length > 0")
        self.check("a chosen source")
        browser.press("Why does “Temperature Actor 2” get nothing?")
        browser.wait_for_text("gets nothing from the 3 sources")
        self.check("why an actor gets nothing")
        browser.choose("Source", "Temperature Source 1")
        browser.choose("Actor", "Temperature Actor 2")
        browser.press("Why?")
        browser.wait_for_text("are not associated")
        browser.find("summary", "Rules").click()
        self.check("why")
        area = browser.wait("the text of the context", """return all("textarea", shown()).find((area) => area.value.includes("operatingState"))""")
        text = area.get_attribute("value").replace('"normal"', '"emergency"')
        area.clear()
        area.send_keys(text)
        browser.press("What if")
        browser.wait_for_text("3 would be added")
        self.check("what if")

    def test_gateway(self):
        self.open("gateway")
        consumer = slow_consumer(self.gateway, "sleepy", event="channel", channelId="load")
        self.addCleanup(consumer.close)
        self.stack.load(self.broker, 2000, 5, TEMPERATURE_NAMESPACE)
        self.browser.wait("the slow consumer", """return all('[aria-label="Slow consumers"]').some((list) => list.textContent.includes("sleepy"))""")
        self.check("gateway")
        browser = self.browser
        name = browser.wait("a connection", """return all('[aria-label="Connections"] tr button').map(nameOf)[0]""")
        browser.press(name)
        browser.wait_for_text("It can connect again")
        self.check("the question before a disconnect")


class KeyboardTests(ConsoleCase):
    def focused(self):
        """Returns the name of the focused element; for a field, the text of its label."""
        return self.browser.js(
            """
            const focused = document.activeElement
            return focused === document.body ? "" : focused.labels?.length > 0 ? text(focused.labels[0]) : nameOf(focused)
            """
        )

    def tab_to(self, name):
        """Presses Tab until an element whose name contains this text has the focus, and checks that the focus is visible."""
        for _ in range(60):
            self.browser.press_keys(Keys.TAB)
            if name in self.focused():
                break
        else:
            self.fail(f"Tab does not reach {name}")
        ring = self.browser.js(
            """
            const focused = document.activeElement
            const chip = focused.closest(".chip")
            const { outlineStyle, outlineWidth } = getComputedStyle(chip ?? focused)
            return focused.matches(":focus-visible") && outlineStyle !== "none" && parseFloat(outlineWidth) >= 2
            """
        )
        self.assertTrue(ring, f"the focus on {name} is visible")

    def test_console_is_used_by_keyboard(self):
        browser = self.browser
        self.gateway.advertise("Front door", "com.example.Door")
        browser.wait_for_row("Front door")
        # The skip link moves the focus to the view.
        browser.press_keys(Keys.TAB)
        self.assertEqual(self.focused(), "Skip to content")
        browser.press_keys(Keys.ENTER)
        browser.wait("the focus is on the view", "return document.activeElement.id === 'main'")
        # Opening a row moves the focus into the detail; Escape returns it to the row.
        self.tab_to("Front door")
        browser.press_keys(Keys.ENTER)
        browser.wait("the focus is in the detail", "return Boolean(document.activeElement.closest('aside[aria-label=Event]'))")
        browser.press_keys(Keys.ESCAPE)
        browser.wait("the focus is back", "return document.activeElement.closest('li') !== null && text(document.activeElement).includes('Front door')")
        browser.press_keys(Keys.ENTER)
        self.tab_to("Close")
        browser.press_keys(Keys.SPACE)
        browser.wait("the focus is back", "return document.activeElement.closest('li') !== null")
        # The navigation opens another view and moves the focus to it.
        self.open()
        self.tab_to("Agents & objects")
        browser.press_keys(Keys.ENTER)
        browser.wait("the view", "return shown().querySelector('h1').textContent === 'Agents & objects' && document.activeElement.id === 'main'")
        self.assertEqual(browser.js("return text(document.querySelector('nav [aria-current=page]'))"), "Agents & objects")
        self.tab_to("Objects")
        browser.press_keys(Keys.SPACE)
        browser.wait_for_row("Front door", "Alive")
        self.tab_to("Front door")
        browser.press_keys(Keys.ENTER)
        browser.wait("the focus is in the detail", "return Boolean(document.activeElement.closest('aside[aria-label=Object]'))")
        browser.press_keys(Keys.ESCAPE)
        browser.wait("the focus is back", "return document.activeElement.closest('li') !== null && text(document.activeElement).includes('Front door')")

    def test_event_is_sent(self):
        browser = self.browser
        self.open("send")
        self.tab_to("Pattern")
        browser.press_keys("dis")
        browser.wait("the pattern", "return all('select')[0].value === 'discover'")
        self.tab_to("Send")
        browser.press_keys(Keys.ENTER)
        browser.wait_for_text("1 answer")
