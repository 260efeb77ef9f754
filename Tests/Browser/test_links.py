"""The address contains the view, its selection and its filters."""

import subprocess
import uuid

from browser import ConsoleCase
from stack import TEMPERATURE_CONTEXT, eventually, publish_json

SOURCE = "c547e5cd-ef99-4ccd-b109-fc472fc2d421"
ACTOR = "a60a74f3-3d26-446f-a358-911867544944"


class LinkCase(ConsoleCase):
    def address(self):
        return self.browser.js("return location.href")

    def follow(self, url):
        """Opens a link in a new page."""
        self.browser.open("about:blank")
        self.browser.open(url)
        self.browser.wait_for_connection()

    def wait_for_address(self, *parts):
        self.browser.wait(f"{parts} in the address", "return arguments[0].every((part) => decodeURIComponent(location.hash).includes(part))", parts)


class FeedLinkTests(LinkCase):
    def chips(self):
        return self.browser.js("return all('.kinds input').filter((chip) => chip.checked).map((chip) => chip.value)")

    def choose_kind(self, kind):
        self.browser.js("""all("label").find((label) => text(label) === arguments[0]).click()""", kind)

    def test_link_shows_the_same_selection(self):
        browser = self.browser
        self.choose_kind("advertise")
        browser.fill("Find", "door")
        browser.find("summary", "Filters").click()
        browser.fill("Filter", '["isOpen", ["Equals", true]]')
        browser.fill("Raw topics", "sensors/#")
        browser.press("Apply")
        self.wait_for_address("kinds=advertise", "find=door", '["isOpen",+["Equals",+true]]', "raw=sensors/#")
        self.follow(self.address())
        self.assertEqual(self.chips(), ["advertise"])
        values = [browser.field(label).get_attribute("value") for label in ("Find", "Filter", "Raw topics")]
        self.assertEqual(values, ["door", '["isOpen", ["Equals", true]]', "sensors/#"])

        # The subscription may start later than the page.
        def passes():
            for is_open in (False, True):
                self.gateway.advertise(f"Front door {is_open}", isOpen=is_open)
                self.gateway.advertise(f"Window {is_open}", isOpen=is_open)
            return browser.js("return all('[aria-label=Events] li button').map((row) => text(row.children[3].children[1]))")

        self.assertEqual(set(eventually("events that match", passes)), {"Front door True"})

    def test_back_restores_earlier_selections(self):
        browser = self.browser
        self.gateway.advertise("Front door", "com.example.Door")
        browser.wait_for_row("Front door")
        self.choose_kind("advertise")
        browser.wait_for_row("Front door").click()
        browser.wait_for_text("com.example.Door", "aside[aria-label=Event]")
        self.wait_for_address("event=advertise")
        browser.driver.back()
        browser.wait("the detail is closed", "return all('aside[aria-label=Event]').length === 0")
        self.assertEqual(self.chips(), ["advertise"])
        browser.driver.back()
        browser.wait("all kinds", "return all('.kinds input').filter((chip) => chip.checked).map((chip) => chip.value).join() === 'on'")
        browser.driver.forward()
        browser.driver.forward()
        browser.wait_for_text("Front door", "aside[aria-label=Event] h2")
        # A link opens an event that this page has received.
        address = self.address()
        browser.press("Close")
        browser.js("location.href = arguments[0]", address)
        browser.wait_for_text("Front door", "aside[aria-label=Event] h2")
        self.follow(address)
        browser.wait_for_text("has not received the event", "#toasts")

    def test_views_keep_their_selection(self):
        browser = self.browser
        self.choose_kind("advertise")
        browser.go("Send")
        browser.go("Live feed")
        self.wait_for_address("#feed?kinds=advertise")
        self.assertEqual(self.chips(), ["advertise"])
        browser.driver.back()
        browser.wait("the previous view", "return shown().classList.contains('view-send')")
        browser.driver.back()
        browser.wait("the feed", "return shown().classList.contains('view-feed')")
        # The skip link does not change the view.
        browser.driver.find_element("css selector", "a.skip").send_keys("\n")
        self.wait_for_address("#feed?kinds=advertise")
        # A click on the current view in the navigation removes the selection.
        browser.driver.find_element("css selector", 'nav a[href="#feed"]').click()
        browser.wait("all kinds", "return location.hash === '#feed'")
        self.assertEqual(self.chips(), ["on"])

    def test_hostile_links_are_ignored(self):
        for fragment in ("#feed?kinds=x,toString&sender=%00&event=%3Cb%3E", "#feed?filter=%7B", "#alive?section=__proto__&object=%3Cimg%3E", "#nothing?a=b", "#feed?%E0%A4%A", "#send?pattern=constructor", "#send?pattern=call&operation=%3Cimg%3E&limit=x", "#access?verb=__proto__&pattern=toString", "#access?verb=read&pattern=constructor&name=%00", "#gateway?connections=%3Cb%3E"):
            with self.subTest(fragment):
                self.follow(f"{self.gateway.url}/{fragment}")
                self.browser.wait("a view", "return Boolean(shown()?.querySelector('h1'))")


class AliveLinkTests(LinkCase):
    view = "alive"

    def test_link_opens_an_object(self):
        browser = self.browser
        lamp = self.gateway.advertise("Lamp of the hall", "com.example.Lamp")
        browser.choose_objects()
        browser.fill("Find", "lamp")
        browser.choose("Order", "Name")
        browser.wait_for_row("Lamp of the hall", "Alive").click()
        self.wait_for_address("#alive?section=objects", "find=lamp", "order=name", f"object={lamp['objectId']}")
        self.follow(self.address())
        browser.wait_for_text("Lamp of the hall", "aside[aria-label=Object] h2")
        self.assertEqual(browser.field("Find").get_attribute("value"), "lamp")
        browser.press("Close")
        browser.driver.back()
        browser.wait_for_text("Lamp of the hall", "aside[aria-label=Object] h2")

    def test_link_waits_for_its_object(self):
        identifier = str(uuid.uuid4())
        self.follow(f"{self.gateway.url}/#alive?section=objects&object={identifier}")
        publish_json(self.broker, f"coaty/3/-/ADV:CoatyObject/{uuid.uuid4()}", {"object": {"coreType": "CoatyObject", "objectType": "t", "objectId": identifier, "name": "Late"}})
        self.browser.wait_for_text("Late", "aside[aria-label=Object] h2")


class RoutingLinkTests(LinkCase):
    view = "routing"

    @classmethod
    def begin(cls):
        cls.broker = cls.stack.broker()
        cls.gateway = cls.stack.router(cls.broker)
        for state in ("normal", "emergency"):
            cls.stack.example(cls.broker, "io-routing-actor", state, 1000)
        cls.stack.example(cls.broker, "io-routing-sources", 1000)

    def test_link_chooses_a_pair(self):
        browser = self.browser
        browser.choose("Source", "Temperature Source 1")
        browser.choose("Actor", "Temperature Actor 2")
        self.wait_for_address(f"context={TEMPERATURE_CONTEXT}", f"source={SOURCE}", f"actor={ACTOR}")
        self.follow(self.address())
        script = "return [...all('.why select')].map((select) => select.value).join() === arguments[0]"
        browser.wait("the pair", script, f"{SOURCE},{ACTOR}")
        browser.press("Why?")
        browser.wait_for_text("are not associated")

    def test_change_is_copied(self):
        browser = self.browser
        path = f"/v1/routing/contexts/{TEMPERATURE_CONTEXT}"

        def set_normal():
            self.gateway.curl("PATCH", path, {"operatingState": "normal"}, "application/merge-patch+json")

        self.addCleanup(set_normal)
        browser.js("navigator.clipboard.writeText = async (text) => { window.copied = text }")
        area = browser.wait("the text of the context", """return all("textarea", shown()).find((area) => area.value.includes("operatingState"))""")
        browser.press("Copy as curl")
        browser.wait("the command that reads the context", "return window.copied?.endsWith(`/v1/routing/contexts/${arguments[0]}'`)", TEMPERATURE_CONTEXT)
        text = area.get_attribute("value").replace('"normal"', '"emergency"')
        area.clear()
        area.send_keys(text)
        changes = """return window.copied.includes("-X PATCH") && window.copied.includes('{ "operatingState": "emergency" }') && window.copied"""
        browser.press("Copy as curl")
        browser.wait("the command that changes it", changes)
        browser.js("window.copied = ''")
        browser.press("Save")
        browser.wait_for_text("Saved: 3 added, 3 removed.")
        # The text equals the gateway's context again, but the notice still has the change.
        browser.press("Copy change as curl")
        command = browser.wait("the command that made the change", changes)
        browser.press("Copy change as client.js")
        code = browser.wait("the code that made the change", "return window.copied.includes('client.request') && window.copied")
        self.assertIn('"event": "update"', code)
        self.assertIn('"operatingState": "emergency"', code)
        set_normal()
        subprocess.run(["sh", "-c", command], capture_output=True, check=True)
        self.assertEqual(self.gateway.curl("GET", path)["context"]["operatingState"], "emergency")


class SendLinkTests(LinkCase):
    view = "send"

    def shown(self):
        """Returns the chosen pattern, and the values of its fields Channel, Operation and Topic."""
        script = """
        const form = all("form[aria-label=Event]")[0]
        const labels = all("label", form).filter((label) => ["Channel", "Operation", "Topic"].includes(text(label)))
        return [all("select", form)[0].value, ...labels.map((label) => label.control.value)]
        """
        return self.browser.js(script)

    def test_link_chooses_a_pattern_and_a_name(self):
        browser = self.browser
        for pattern, label, parameter, name in (
            ("channel", "Channel", "channelId", "news"),
            ("raw", "Topic", "topic", "greenhouse/door"),
            ("call", "Operation", "operation", "com.example.add"),
        ):
            with self.subTest(pattern):
                browser.choose("Pattern", pattern)
                browser.fill(label, name, browser.find("form[aria-label=Event]"))
                self.wait_for_address(f"#send?pattern={pattern}", f"{parameter}={name}")
        browser.driver.back()
        eventually("the former pattern", lambda: self.shown() == ["raw", "greenhouse/door"])
        browser.driver.forward()
        eventually("the call", lambda: self.shown() == ["call", "com.example.add"])
        self.follow(self.address())
        self.assertEqual(self.shown(), ["call", "com.example.add"])

    def test_link_calls_an_operation(self):
        browser = self.browser
        agent = self.stack.agent(self.broker)
        self.addCleanup(agent.stop)
        self.follow(f"{self.gateway.url}/#send?pattern=call&operation=com.example.add")
        browser.press("Send")
        browser.wait_for_text("1 answer · limit")


class AccessLinkTests(LinkCase):
    view = "access"

    def shown(self):
        return self.browser.js("""return ["check-verb", "check-pattern", "check-name"].map((id) => document.getElementById(id).value)""")

    def test_link_fills_in_a_check(self):
        browser = self.browser
        browser.choose("Pattern", "channel")
        browser.fill("Channel", "news")
        self.wait_for_address("#access?verb=publish&pattern=channel&name=news")
        address = self.address()
        browser.choose("Verb", "read")
        self.wait_for_address("#access?verb=read&pattern=objects")
        browser.driver.back()
        eventually("the former check", lambda: self.shown() == ["publish", "channel", "news"])
        self.follow(address)
        self.assertEqual(self.shown(), ["publish", "channel", "news"])
        browser.press("Check")
        browser.wait_for_text("Allowed", ".notice")
