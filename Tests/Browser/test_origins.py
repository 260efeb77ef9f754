"""Requests of pages of other origins to the gateway."""

import browser
from browser import REBOUND, ConsoleCase
from stack import eventually, has_retained

# Each script returns the result that a page gets, or "refused".
FETCH = """
return fetch(arguments[0] + arguments[1], arguments[2]).then((answer) => answer.type === "opaque" ? "opaque" : answer.status)
  .catch(() => "refused")
"""
EVENT_STREAM = """
const stream = new EventSource(`${arguments[0]}/v1/sse/deadvertise`)
return new Promise((resolve) => {
  stream.addEventListener("ok", () => resolve("ok"))
  stream.addEventListener("error", () => resolve("refused"))
}).finally(() => stream.close())
"""
SOCKET = """
const socket = new WebSocket(`${arguments[0].replace("http", "ws")}/v1/ws`)
return new Promise((resolve) => {
  socket.addEventListener("open", () => resolve("open"))
  socket.addEventListener("error", () => resolve("refused"))
}).finally(() => socket.close())
"""
PROBLEM = """
return fetch(arguments[0] + arguments[1], arguments[2]).then((answer) => answer.json()).then(({ type }) => type)
"""
MODULE = """
const { CoatyClient } = await import(`${arguments[0]}/client.js`)
return typeof CoatyClient
"""

REFUSED = browser.NETWORK + r"|blocked by CORS policy|status of (403|404|421)"
OCTETS = {"method": "POST", "body": "open", "headers": {"content-type": "application/octet-stream"}}
# Browsers send this request to any origin without a preflight. The page cannot read the response.
SIMPLE = {"method": "POST", "mode": "no-cors", "body": "open", "headers": {"content-type": "text/plain"}}


class OriginTests(ConsoleCase):
    allowed = REFUSED

    @classmethod
    def begin(cls):
        cls.broker = cls.stack.broker()
        (cls.folder / "page.html").write_text("<!doctype html><title>A page</title>")
        cls.pages, cls.foreign = cls.stack.pages(), cls.stack.pages()
        cls.gateway = cls.stack.gateway(cls.broker, "--allowed-origins", cls.pages.origin)

    def open(self, view=None):
        self.browser.open("about:blank")

    def answer(self, script, *arguments, gateway=None):
        return self.browser.js(script, self.gateway.url if gateway is None else gateway, *arguments)

    def test_pages_of_an_allowed_origin_use_the_gateway(self):
        self.browser.open(f"{self.pages.origin}/page.html")
        self.assertEqual(self.answer(FETCH, "/v1/status", {}), 200)
        self.assertEqual(self.answer(FETCH, "/v1/raw/door", OCTETS), 202, "after a preflight")
        self.assertEqual(self.answer(FETCH, "/v1/nothing", {}), 404, "the page can read errors, too")
        self.assertEqual(self.answer(EVENT_STREAM), "ok")
        self.assertEqual(self.answer(SOCKET), "open")
        self.assertEqual(self.answer(MODULE), "function")

    def test_pages_of_other_origins_are_refused(self):
        for page in (f"{self.foreign.origin}/page.html", f"http://{REBOUND}:{self.pages.port}/page.html"):
            self.browser.open(page)
            self.assertEqual(self.answer(FETCH, "/v1/status", {}), 403)
            self.assertEqual(self.answer(FETCH, "/v1/raw/door?retain=true", OCTETS), 403, "after a preflight")
            self.assertEqual(self.answer(FETCH, "/v1/status", {"credentials": "include"}), "refused")
            self.assertEqual(self.answer(FETCH, "/v1/raw/door?retain=true", SIMPLE), "opaque")
            self.assertEqual(self.answer(EVENT_STREAM), "refused")
            self.assertEqual(self.answer(SOCKET), "refused")
            self.assertEqual(self.answer(MODULE), "function", "any origin may import the module")
        self.assertFalse(has_retained(self.broker, "door"))
        self.gateway.start_curl("POST", "/v1/raw/door?retain=true", "open", "application/octet-stream").communicate()
        eventually("the message is retained if the request has no origin", lambda: has_retained(self.broker, "door"))

    def test_pages_of_other_origins_learn_why(self):
        refusal = "urn:coaty-gateway:problem:origin-not-allowed"
        self.browser.open(f"{self.foreign.origin}/page.html")
        for options in ({}, OCTETS, {"headers": {"authorization": "Bearer coaty_wrong"}}):
            self.assertEqual(self.answer(PROBLEM, "/v1/status", options), refusal, options)

    def test_sandboxed_page_is_refused(self):
        self.browser.open("data:text/html,<title>A page</title>")
        self.assertEqual(self.answer(FETCH, "/v1/status", {}), "refused")
        self.assertEqual(self.answer(SOCKET), "refused")

    def test_rebound_host_name_is_refused(self):
        self.gateway.kill()
        # The site serves its page on the port of the gateway. Then the gateway takes over the port.
        site = self.stack.pages(port=self.gateway.port)
        origin = f"http://{REBOUND}:{self.gateway.port}"
        self.browser.open(f"{origin}/page.html")
        site.stop()
        self.gateway.start()
        self.assertEqual(self.answer(FETCH, "/v1/status", {}, gateway=origin), 421)
        self.assertEqual(self.answer(FETCH, "/v1/raw/door", OCTETS, gateway=origin), 421)
        self.assertEqual(self.answer(EVENT_STREAM, gateway=origin), "refused")
        self.assertEqual(self.answer(SOCKET, gateway=origin), "refused")
        self.assertEqual(self.answer(FETCH, "/healthz", {}, gateway=origin), 200)
