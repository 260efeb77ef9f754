"""What is shown is in the address: a link can be sent, and Back works."""

import uuid

from browser import ConsoleCase
from stack import TEMPERATURE_CONTEXT, say

SOURCE = "c547e5cd-ef99-4ccd-b109-fc472fc2d421"
ACTOR = "a60a74f3-3d26-446f-a358-911867544944"


class LinkCase(ConsoleCase):
    def address(self):
        return self.browser.js("return location.href")

    def follow(self, url):
        """Opens a link as somebody else would: in a page that has shown nothing."""
        self.browser.open("about:blank")
        self.browser.open(url)
        self.browser.wait_for_connection()

    def wait_for_address(self, *parts):
        self.browser.wait(f"{parts} in the address", "return arguments[0].every((part) => decodeURIComponent(location.hash).includes(part))", parts)


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
        say(self.broker, f"coaty/3/-/ADV:CoatyObject/{uuid.uuid4()}", {"object": {"coreType": "CoatyObject", "objectType": "t", "objectId": identifier, "name": "Late"}})
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
        browser.js("navigator.clipboard.writeText = async (text) => { window.copied = text }")
        area = browser.wait("the text of the context", """return all("textarea", shown()).find((area) => area.value.includes("operatingState"))""")
        browser.press("Copy as curl")
        browser.wait("what gets it", "return window.copied?.endsWith(`/v1/routing/contexts/${arguments[0]}'`)", TEMPERATURE_CONTEXT)
        text = area.get_attribute("value").replace('"normal"', '"emergency"')
        area.clear()
        area.send_keys(text)
        browser.press("Copy as curl")
        browser.wait("what changes it", """return window.copied.includes("-X PATCH") && window.copied.includes('{ "operatingState": "emergency" }')""")
