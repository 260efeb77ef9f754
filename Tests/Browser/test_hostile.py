"""Texts from the network that look like markup or code are shown as text."""

import json
import uuid

import websocket

from browser import ConsoleCase
from stack import PATIENCE, eventually, publish_json
from test_gateway import slow_consumer

# Each text calls `watched.ran.push` if it is run as code.
TEXTS = [
    """<img src=x onerror="watched.ran.push('img')">""",
    """<script>watched.ran.push('script')</script>""",
    """"><svg onload="watched.ran.push('svg')">""",
    """'-watched.ran.push('quote')-'""",
    """javascript:watched.ran.push('url')""",
    """${watched.ran.push('template')}""",
    """</pre><iframe src="javascript:top.watched.ran.push(9)">""",
    """<style>*{display:none!important}</style>""",
    """&lt;b&gt; &amp; %3Cb%3E""",
    """__proto__""",
]
# Without the characters that are special in topics.
LEVELS = [text.replace("/", "").replace("+", "").replace("#", "") for text in TEXTS]

CONTEXT = "0d6f3b1e-8a54-4c0c-9d43-5f2b7a1c9e10"
SOURCE = "1d6f3b1e-8a54-4c0c-9d43-5f2b7a1c9e11"
ACTOR = "2d6f3b1e-8a54-4c0c-9d43-5f2b7a1c9e12"


def thing(text, level, core="CoatyObject", **more):
    """Returns an object that contains a text in all its parts."""
    return {
        "coreType": core,
        "objectType": f"com.example.{level}",
        "objectId": str(uuid.uuid4()),
        "name": text,
        text: {text: [text]},
        **more,
    }


class HostileTests(ConsoleCase):
    @classmethod
    def begin(cls):
        cls.broker = cls.stack.broker()
        configuration = cls.folder / "gateway.yaml"
        context = {"coreType": "IoContext", "objectType": f"com.example.{LEVELS[0]}", "objectId": CONTEXT, "name": LEVELS[0]}
        # YAML contains JSON.
        rule = {"name": TEXTS[1], "valueType": TEXTS[0], "condition": ["source.name", ["Equals", TEXTS[2]]]}
        contexts = [{"context": context | {TEXTS[0]: TEXTS[1]}, "rules": [rule]}]
        configuration.write_text(json.dumps({"routing": {"contexts": contexts}}))
        cls.gateway = cls.stack.gateway(cls.broker, "--config", configuration)
        cls.agent = str(uuid.uuid4())

    def publish(self, event, data, source=None):
        publish_json(self.broker, f"coaty/3/-/{event}/{source or self.agent}", data)

    def advertise_agent(self, number):
        """Advertises the identity of an agent with a hostile name."""
        agent = str(uuid.uuid4())
        identity = {"coreType": "Identity", "objectType": "coaty.Identity", "objectId": agent, "name": TEXTS[number]}
        self.publish("ADV:Identity", {"object": identity}, agent)
        return agent

    def assert_all_shown(self, texts, selector="main"):
        """Waits until each text is shown unchanged, except for white space."""
        script = """
        const shownText = all(arguments[1]).map((element) => element.textContent + [...element.querySelectorAll("input, textarea")].map((field) => field.value).join(" ")).join(" ")
        return arguments[0].filter((text) => !shownText.includes(text))
        """
        missing = texts

        def nothing_is_missing():
            nonlocal missing
            missing = self.browser.js(script, texts, selector)
            return not missing

        try:
            eventually("all texts are shown", nothing_is_missing)
        except AssertionError:
            self.assertEqual(missing, [], f"not shown in {selector}")

    def assert_no_markup(self):
        """Checks that no text has become an element, and that no prototype has changed."""
        script = """
        const foreign = document.querySelectorAll("img, iframe, object, embed, base, style, b, script:not([src$='console/app.js'], [src$='console/scheme.js'])")
        const handlers = [...document.querySelectorAll("*")].filter((element) => [...element.attributes].some(({ name }) => /^on/.test(name)))
        const links = [...document.querySelectorAll("a[href]")].filter((link) => /^javascript:/i.test(link.getAttribute("href")))
        return [[...foreign, ...handlers, ...links].map((element) => element.outerHTML), Object.keys(Object.prototype), ({}).name ?? null]
        """
        self.assertEqual(self.browser.js(script), [[], [], None])

    def tearDown(self):
        self.assert_no_markup()

    def test_violations_are_detected(self):
        script = """
        const image = document.createElement("img")
        image.src = "data:,"
        try { image.setAttribute("onclick", "watched.ran.push('click')") } catch { }
        watched.ran.push("code of the test")
        console.error("error of the test")
        """
        self.browser.js(script)
        self.browser.wait("the violations", "return watched.violations.length === 2")
        problems = "\n".join(self.browser.problems())
        for expected in ("img-src: data", "require-trusted-types-for", "code of the test", "error of the test"):
            self.assertIn(expected, problems)

    def test_feed(self):
        for number, (text, level) in enumerate(zip(TEXTS, LEVELS)):
            agent = self.advertise_agent(number)
            correlation = str(uuid.uuid4())
            self.publish("ADV:CoatyObject", {"object": thing(text, level)}, agent)
            self.publish(f"CHN:{level}", {"object": thing(text, level)}, agent)
            self.publish("DAD", {"objectIds": [text]}, agent)
            for event, data in (
                (f"CLL:{level}", {"parameters": {text: text}}),
                ("RTN", {"result": text, "executionInfo": {text: text}}),
                ("RTN", {"error": {"code": 1, "message": text}}),
                ("DSC", {"objectTypes": [text], "externalId": text}),
                ("RSV", {"object": thing(text, level)}),
                ("QRY", {"objectTypes": [text]}),
                ("RTV", {"objects": [thing(text, level)]}),
                ("UPD:CoatyObject", {"object": thing(text, level)}),
                ("CPL", {"object": thing(text, level)}),
            ):
                publish_json(self.broker, f"coaty/3/-/{event}/{agent}/{correlation}", data)
            publish_json(self.broker, f"coaty/3/-/ASC:{level}/{agent}", {"ioSourceId": text, "ioActorId": text, "associatingRoute": text})
            publish_json(self.broker, f"coaty/3/-/IOV/{uuid.uuid4()}", text)
            # Values of unexpected types instead of an object.
            for odd in ({"object": {"name": {text: 1}, "objectType": [text], "objectId": 7}}, {"object": None}, {"object": text}, {}):
                publish_json(self.broker, f"coaty/3/-/ADV:CoatyObject/{agent}", odd)
                publish_json(self.broker, f"coaty/3/-/RSV/{agent}/{correlation}", odd)
                publish_json(self.broker, f"coaty/3/-/RTN/{agent}/{correlation}", odd)
                publish_json(self.broker, f"coaty/3/-/DAD/{agent}", {"objectIds": odd})
        # The last event that is published.
        self.publish("ADV:CoatyObject", {"object": thing("The end", "End")})
        self.browser.wait_for_row("The end")
        more = """const more = all("button", shown()).find((button) => text(button) === "Show more"); more?.click(); return !more"""
        self.browser.wait("all rows", more)
        self.assert_all_shown(TEXTS + LEVELS)
        # The details show the texts, too.
        rows = self.browser.js("""return all("[aria-label=Events] li button").length""")
        self.assertGreater(rows, 10 * len(TEXTS))
        for place in range(0, rows, 3):
            self.browser.js("""all("[aria-label=Events] li button")[arguments[0]].click()""", place)
            self.browser.wait("the detail", "return all('aside[aria-label=Event] pre').length > 0")
        for text in TEXTS:
            row = self.browser.js("""return all("[aria-label=Events] li button").find((row) => row.textContent.includes(arguments[0]))""", text)
            row.click()
            self.assert_all_shown([text], "aside[aria-label=Event]")

    def test_alive(self):
        self.open("alive")
        agents = [self.advertise_agent(number) for number in range(len(TEXTS))]
        self.assert_all_shown(TEXTS, '[aria-label="Alive"]')
        things = [thing(text, level) for text, level in zip(TEXTS, LEVELS)]
        for one, agent in zip(things, agents):
            self.publish("ADV:CoatyObject", {"object": one}, agent)
        self.browser.choose_objects()
        self.assert_all_shown(TEXTS + LEVELS, '[aria-label="Alive"]')
        for one, agent in zip(things, agents):
            text = one["name"]
            self.browser.wait_for_row(text, "Alive").click()
            self.assert_all_shown([text], "aside[aria-label=Object]")
            self.publish("ADV:CoatyObject", {"object": one | {text: "changed", f"{text}!": text}}, agent)
            self.browser.wait_for_text("What changed last", "aside[aria-label=Object]")
            self.assert_all_shown([text, f"{text}!"], "aside[aria-label=Object] tbody")
            self.browser.press("Close")

    def test_send(self):
        self.open("send")
        browser = self.browser
        url = self.gateway.url.replace("http", "ws") + "/v1/ws"
        agent = websocket.create_connection(url, timeout=PATIENCE, subprotocols=["coaty.v1"])
        self.addCleanup(agent.close)

        def send(**frame):
            agent.send(json.dumps({"id": str(uuid.uuid4()), **frame}))

        def receive(op):
            while True:
                frame = json.loads(agent.recv())
                if frame["op"] == op:
                    return frame

        send(op="identify", name=TEXTS[0])
        receive("ok")
        operation = LEVELS[1]
        send(op="subscribe", event="call", operation=operation)
        receive("ok")
        browser.choose("Pattern", "call")
        form = browser.find("form[aria-label=Event]")
        browser.fill("Operation", operation, form)
        browser.press("Send")
        call = receive("event")
        send(op="respond", event="return", correlationId=call["correlationId"], data={"result": {text: text for text in TEXTS}})
        script = """return all('[aria-label="Answers"] > li').length === 1"""
        browser.wait("the answer", script)
        self.assert_all_shown([json.dumps(text)[1:-1] for text in TEXTS] + [TEXTS[0]], '[aria-label="Answers"]')
        # The console answers calls, too.
        card = browser.find(".send-calls")
        browser.fill("Operation", LEVELS[2], card)
        browser.press("Answer calls", card)
        browser.wait_for_text("Waiting for calls")
        send(op="request", event="call", operation=LEVELS[2], data={"parameters": {text: text for text in TEXTS}}, timeout=60000)
        browser.wait("the call", """return all('[aria-label="Calls"] > li').length === 1""")
        self.assert_all_shown([json.dumps(text)[1:-1] for text in TEXTS] + [TEXTS[0]], '[aria-label="Calls"]')
        browser.fill("Result", json.dumps(TEXTS[0]), card)
        browser.press("Return", card)
        self.assertEqual(receive("response")["data"], {"result": TEXTS[0]})
        self.assert_all_shown([TEXTS[0]], '[aria-label="Answered"]')

    def test_routing(self):
        self.open("routing")
        point = {"objectType": "coaty.IoSource", "valueType": TEXTS[0]}
        sources = [point | {"coreType": "IoSource", "objectId": SOURCE, "name": TEXTS[2]}]
        actors = [point | {"coreType": "IoActor", "objectType": "coaty.IoActor", "objectId": ACTOR, "name": TEXTS[3]}]
        for number, points in ((4, {"ioSources": sources, "ioActors": []}), (6, {"ioSources": [], "ioActors": actors})):
            agent = self.advertise_agent(number)
            node = {"coreType": "IoNode", "objectType": "coaty.IoNode", "objectId": str(uuid.uuid4()), "name": LEVELS[0], "parentObjectId": agent}
            self.publish("ADV:IoNode", {"object": node | points}, agent)
        edge = f"{SOURCE}:{ACTOR}"
        self.browser.wait("the edge", "return all('svg[role=img] [data-edge]').some((edge) => edge.dataset.edge === arguments[0])", edge)
        publish_json(self.broker, f"coaty/3/-/IOV/{SOURCE}", TEXTS[1])
        self.assert_all_shown([LEVELS[0]], "main")
        self.assert_all_shown([TEXTS[2], TEXTS[3]], "table[aria-label=Associations]")
        self.browser.wait("the value", """return all("table[aria-label=Associations] td").some((cell) => cell.textContent.includes("<script>"))""")
        self.browser.choose("Source", TEXTS[2])
        self.browser.choose("Actor", TEXTS[3])
        self.browser.press("Why?")
        self.assert_all_shown([TEXTS[1]], ".why")
        self.browser.find("summary", "Rules").click()
        self.assert_all_shown([TEXTS[0], TEXTS[1]], ".rules")

    def test_gateway(self):
        self.open("gateway")
        consumers = [slow_consumer(self.gateway, text, event="channel", channelId="load") for text in TEXTS]
        try:
            self.stack.load(self.broker, 2000, 5)
            self.assert_all_shown(TEXTS, '[aria-label="Slow consumers"]')
        finally:
            for consumer in consumers:
                consumer.close()
