"""The client module on pages whose network, gateway or proxy fails, in Chromium and Firefox."""

import contextlib
import hashlib
import json
import shutil
import socket
import threading
import time
import unittest

import stack
from browser import OUT, PROGRAMS, Browser
from firefox import Firefox
from stack import eventually

SECRET = "coaty_reader"
LARGE = 1724442618569203714
OBJECT = {"coreType": "CoatyObject", "objectType": "com.example.Thing", "objectId": "5a9c1f6e-3b52-4d0a-8f6e-2f6f0a3c7d12", "name": "A"}

BAD_GATEWAY = b"HTTP/1.1 502 Bad Gateway\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"

# Opens a stream, and records what it dispatches.
STREAM = """
const { CoatyEventSource } = await import(`${arguments[0]}/client.js`)
const stream = new CoatyEventSource(`${arguments[0]}/v1/sse/channel?channelId=news`, JSON.parse(arguments[1]))
window.streams ??= []
const seen = []
for (const type of ["open", "ok", "event", "gap"]) stream.addEventListener(type, ({ data }) => seen.push(type))
stream.addEventListener("error", ({ error }) => seen.push(`error ${stream.readyState} ${error?.type}`))
return streams.push({ stream, seen }) - 1
"""
SEEN = "return streams[arguments[0]].seen"
STATE = "return streams[arguments[0]].stream.readyState"
# Connects a client, and records its states.
CLIENT = """
const { CoatyClient } = await import(`${arguments[0]}/client.js`)
window.client = new CoatyClient(arguments[0], { exactIntegers: true })
window.states = []
client.addEventListener("statechange", ({ detail }) => states.push(`${detail.state} ${detail.reason ?? ""}`.trim()))
await client.online()
"""
# Connects a client of a page that the gateway refuses.
REFUSED = """
const { CoatyClient } = await import(`${arguments[0]}/client.js`)
const client = new CoatyClient(arguments[0])
const closed = new Promise((resolve) => client.addEventListener("statechange", ({ detail }) => {
  if (detail.state === "closed") resolve(detail.problem.type)
}))
const { type } = await client.online().catch((error) => error)
return [type, await closed]
"""
PUBLISH = "await client.publish({ event: 'channel', channelId: 'other', data: { object: JSON.parse(arguments[0]) } })"


class Proxy:
    """A TCP proxy that can stop forwarding without closing anything, and answer with 502 while the gateway is away."""

    def __init__(self, target):
        self._target = target
        self._pairs = []
        self.is_dead = False
        self._server = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._server.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        with contextlib.suppress(OSError):
            while True:
                near = self._server.accept()[0]
                threading.Thread(target=self._serve, args=(near,), daemon=True).start()

    def _serve(self, near):
        with contextlib.suppress(OSError):
            try:
                far = socket.create_connection(("127.0.0.1", self._target))
            except OSError:
                near.recv(65536)
                near.sendall(BAD_GATEWAY)
                near.close()
                return
            pair = {"near": near, "far": far, "is_dead": False}
            self._pairs.append(pair)
            threading.Thread(target=self._copy, args=(pair, far, near), daemon=True).start()
            self._copy(pair, near, far)

    def _copy(self, pair, source, target):
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                if not pair["is_dead"]:
                    target.sendall(data)
        if not pair["is_dead"]:
            for end in (source, target):
                with contextlib.suppress(OSError):
                    end.shutdown(socket.SHUT_RDWR)

    def go_dead(self):
        """Stops forwarding on the open connections, and leaves them open."""
        for pair in self._pairs:
            pair["is_dead"] = True

    def stop(self):
        self._server.close()
        for pair in self._pairs:
            for end in (pair["near"], pair["far"]):
                end.close()


class Cases:
    @classmethod
    def setUpClass(cls):
        folder = OUT / cls.__name__
        shutil.rmtree(folder, ignore_errors=True)
        cls.stack = stack.Stack(folder, PROGRAMS)
        cls.addClassCleanup(cls.stack.stop)
        cls.broker = cls.stack.broker()
        (folder / "page.html").write_text("<!doctype html><title>A page</title>")
        cls.pages, cls.foreign = cls.stack.pages(), cls.stack.pages()
        tokens = [{"name": "reader", "sha256": hashlib.sha256(SECRET.encode()).hexdigest(), "roles": ["user"]}]
        grants = [{"observe": ["channel"], "channels": ["*"]}, {"publish": ["channel"], "channels": ["*"]}]
        access = {"tokens": tokens, "anonymous": ["user"], "roles": {"user": grants}}
        (folder / "gateway.yaml").write_text(json.dumps({"access": access}))
        cls.gateway = cls.stack.gateway(cls.broker, "--config", folder / "gateway.yaml", "--allowed-origins", cls.pages.origin)
        cls.browser = cls.start(folder)
        cls.addClassCleanup(cls.browser.quit)

    def setUp(self):
        self.proxy = Proxy(self.gateway.port)
        self.addCleanup(self.proxy.stop)
        self.browser.open("about:blank")
        self.browser.open(f"{self.pages.origin}/page.html")

    def tearDown(self):
        self.browser.open("about:blank")

    def publish(self):
        answer = self.gateway.curl("POST", "/v1/channel/news", {"object": OBJECT | {"serial": LARGE}})
        self.assertIn("deferred", answer)

    def seen(self, stream, wanted, number=1):
        what = f"{wanted} of stream {stream}"
        return eventually(what, lambda: [line.startswith(wanted) for line in self.browser.js(SEEN, stream)].count(True) >= number)

    def test_streams_survive_the_502_of_a_proxy_while_the_gateway_restarts(self):
        streams = [self.browser.js(STREAM, self.proxy.url, json.dumps(options)) for options in ({}, {"token": SECRET})]
        for stream in streams:
            self.seen(stream, "ok")
        self.gateway.kill()
        for stream in streams:
            # The end of the connection, and the first 502 at least.
            self.seen(stream, "error", 2)
        self.gateway.start()
        for stream in streams:
            self.seen(stream, "ok", 2)
            self.seen(stream, "gap")
            self.assertEqual(self.browser.js(STATE, stream), 1)
        self.publish()
        for stream in streams:
            self.seen(stream, "event")

    def test_half_open_stream_is_noticed_and_resumes_without_a_gap(self):
        # More than a heartbeat of the gateway.
        stream = self.browser.js(STREAM, self.proxy.url, json.dumps({"silenceTimeout": 18_000}))
        self.seen(stream, "ok")
        self.proxy.go_dead()
        self.publish()
        self.seen(stream, "error 0 urn:coaty-client:problem:disconnected")
        self.seen(stream, "event")
        self.assertNotIn("gap", self.browser.js(SEEN, stream))

    def test_dead_connection_is_noticed_within_seconds_when_the_network_or_the_page_is_back(self):
        for sign in ("dispatchEvent(new Event('online'))", "document.dispatchEvent(new Event('visibilitychange'))"):
            with self.subTest(sign):
                self.browser.js(CLIENT, self.proxy.url)
                self.browser.js(sign)
                # A healthy connection stays: this reply comes after that to the ping.
                self.browser.js(PUBLISH, json.dumps(OBJECT))
                self.proxy.go_dead()
                self.browser.js("states.length = 0")
                begin = time.monotonic()
                self.browser.js(sign)
                self.browser.wait("the reconnect", "return states.includes('online')")
                self.assertLess(time.monotonic() - begin, 10)
                self.assertEqual(self.browser.js("return states"), ["connecting the gateway does not answer", "online"])
                self.browser.js("client.close()")

    def test_page_of_another_origin_learns_why_it_is_refused(self):
        refusal = "urn:coaty-gateway:problem:origin-not-allowed"
        self.browser.open(f"{self.foreign.origin}/page.html")
        self.assertEqual(self.browser.js(REFUSED, self.gateway.url), [refusal, refusal])
        # With the token, after a preflight.
        stream = self.browser.js(STREAM, self.gateway.url, json.dumps({"token": SECRET}))
        self.seen(stream, f"error 2 {refusal}")

    def test_large_integers_survive_being_written_back(self):
        self.browser.js(CLIENT, self.gateway.url)
        script = """
        const news = client.subscribe({ event: "channel", channelId: "news" })
        await news.ready
        window.received = []
        window.reading = (async () => {
          for await (const frame of news) {
            received.push(String(frame.data.object.serial))
            if (received.length === 1) await client.publish({ event: "channel", channelId: "news", data: frame.data })
            if (received.length === 2) break
          }
        })()
        """
        self.browser.js(script)
        self.publish()
        self.browser.wait("both events", "return received.length === 2")
        self.assertEqual(self.browser.js("return received"), [str(LARGE)] * 2)
        self.browser.js("client.close()")


class ChromiumClientTests(Cases, unittest.TestCase):
    start = Browser


class FirefoxClientTests(Cases, unittest.TestCase):
    start = Firefox
