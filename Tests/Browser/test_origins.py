"""What pages of other origins can do with the gateway in a real browser."""

import browser
from browser import REBOUND, ConsoleCase
from stack import eventually, has_retained

# Each returns what a page gets, or "refused".
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
MODULE = """
const { CoatyClient } = await import(`${arguments[0]}/client.js`)
return typeof CoatyClient
"""

REFUSED = browser.NETWORK + r"|blocked by CORS policy|status of (403|404|421)"
OCTETS = {"method": "POST", "body": "open", "headers": {"content-type": "application/octet-stream"}}
# What browsers send to any origin without asking; a page can't read the answer.
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
        self.assertEqual(self.answer(FETCH, "/v1/raw/door", OCTETS), 202, "behind a preflight")
        self.assertEqual(self.answer(FETCH, "/v1/nothing", {}), 404, "errors can be read, too")
        self.assertEqual(self.answer(EVENT_STREAM), "ok")
        self.assertEqual(self.answer(SOCKET), "open")
        self.assertEqual(self.answer(MODULE), "function")

    def test_pages_of_other_origins_do_not(self):
        for page in (f"{self.foreign.origin}/page.html", f"http://{REBOUND}:{self.pages.port}/page.html"):
            self.browser.open(page)
            self.assertEqual(self.answer(FETCH, "/v1/status", {}), "refused")
            self.assertEqual(self.answer(FETCH, "/v1/raw/door?retain=true", OCTETS), "refused")
            self.assertEqual(self.answer(FETCH, "/v1/raw/door?retain=true", SIMPLE), "opaque")
            self.assertEqual(self.answer(EVENT_STREAM), "refused")
            self.assertEqual(self.answer(SOCKET), "refused")
            self.assertEqual(self.answer(MODULE), "function", "the module is for everybody")
        self.assertFalse(has_retained(self.broker, "door"))
        self.gateway.start_curl("POST", "/v1/raw/door?retain=true", "open", "application/octet-stream").communicate()
        eventually("the message that would have been retained", lambda: has_retained(self.broker, "door"))

    def test_sandboxed_page_has_no_origin_that_is_allowed(self):
        self.browser.open("data:text/html,<title>A page</title>")
        self.assertEqual(self.answer(FETCH, "/v1/status", {}), "refused")
        self.assertEqual(self.answer(SOCKET), "refused")

    def test_rebound_name_is_refused_though_its_origin_is_the_gateways(self):
        self.gateway.kill()
        # The site serves its page on the gateway's port; then its name resolves to the gateway.
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
