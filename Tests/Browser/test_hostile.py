"""What comes from the network is text: names, types, values and all else that is markup or code."""

import json
import uuid

import websocket

from browser import ConsoleCase
from stack import PATIENCE, eventually, say
from test_gateway import slow_consumer

# Each calls `watched.ran.push` where it is taken for what it looks like.
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
# Without the characters that have a meaning in topics.
LEVELS = [text.replace("/", "").replace("+", "").replace("#", "") for text in TEXTS]

CONTEXT = "0d6f3b1e-8a54-4c0c-9d43-5f2b7a1c9e10"
SOURCE = "1d6f3b1e-8a54-4c0c-9d43-5f2b7a1c9e11"
ACTOR = "2d6f3b1e-8a54-4c0c-9d43-5f2b7a1c9e12"


def thing(text, level, core="CoatyObject", **more):
    """An object with a text everywhere."""
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
        # JSON is YAML.
        rule = {"name": TEXTS[1], "valueType": TEXTS[0], "condition": ["source.name", ["Equals", TEXTS[2]]]}
        contexts = [{"context": context | {TEXTS[0]: TEXTS[1]}, "rules": [rule]}]
        configuration.write_text(json.dumps({"routing": {"contexts": contexts}}))
        cls.gateway = cls.stack.gateway(cls.broker, "--config", configuration)
        cls.agent = str(uuid.uuid4())

    def say(self, event, data, source=None):
        say(self.broker, f"coaty/3/-/{event}/{source or self.agent}", data)

    def join(self, number):
        """An agent whose name is hostile."""
        agent = str(uuid.uuid4())
        identity = {"coreType": "Identity", "objectType": "coaty.Identity", "objectId": agent, "name": TEXTS[number]}
        self.say("ADV:Identity", {"object": identity}, agent)
        return agent

    def assert_all_shown(self, texts, selector="main"):
        """Each text stands somewhere as it is, but for white space."""
        script = """
        const told = all(arguments[1]).map((element) => element.textContent + [...element.querySelectorAll("input, textarea")].map((field) => field.value).join(" ")).join(" ")
        return arguments[0].filter((text) => !told.includes(text))
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
        """No element has come of a text, and no prototype has changed."""
        script = """
        const foreign = document.querySelectorAll("img, iframe, object, embed, base, style, b, script:not([src$='console/app.js'], [src$='console/scheme.js'])")
        const handlers = [...document.querySelectorAll("*")].filter((element) => [...element.attributes].some(({ name }) => /^on/.test(name)))
        const links = [...document.querySelectorAll("a[href]")].filter((link) => /^javascript:/i.test(link.getAttribute("href")))
        return [[...foreign, ...handlers, ...links].map((element) => element.outerHTML), Object.keys(Object.prototype), ({}).name ?? null]
        """
        self.assertEqual(self.browser.js(script), [[], [], None])

    def tearDown(self):
        self.assert_no_markup()

    def test_what_is_watched_for_would_be_noticed(self):
        script = """
        const image = document.createElement("img")
        image.src = "data:,"
        try { image.setAttribute("onclick", "watched.ran.push('click')") } catch { }
        watched.ran.push("a test's own code")
        console.error("a test's own error")
        """
        self.browser.js(script)
        self.browser.wait("the violations", "return watched.violations.length === 2")
        problems = "\n".join(self.browser.problems())
        for expected in ("img-src: data", "require-trusted-types-for", "a test's own code", "a test's own error"):
            self.assertIn(expected, problems)

    def test_feed(self):
        for number, (text, level) in enumerate(zip(TEXTS, LEVELS)):
            agent = self.join(number)
            correlation = str(uuid.uuid4())
            self.say("ADV:CoatyObject", {"object": thing(text, level)}, agent)
            self.say(f"CHN:{level}", {"object": thing(text, level)}, agent)
            self.say("DAD", {"objectIds": [text]}, agent)
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
                say(self.broker, f"coaty/3/-/{event}/{agent}/{correlation}", data)
            say(self.broker, f"coaty/3/-/ASC:{level}/{agent}", {"ioSourceId": text, "ioActorId": text, "associatingRoute": text})
            say(self.broker, f"coaty/3/-/IOV/{uuid.uuid4()}", text)
            # Not an object where one is expected, nor any type that is.
            for odd in ({"object": {"name": {text: 1}, "objectType": [text], "objectId": 7}}, {"object": None}, {"object": text}, {}):
                say(self.broker, f"coaty/3/-/ADV:CoatyObject/{agent}", odd)
                say(self.broker, f"coaty/3/-/RSV/{agent}/{correlation}", odd)
                say(self.broker, f"coaty/3/-/RTN/{agent}/{correlation}", odd)
                say(self.broker, f"coaty/3/-/DAD/{agent}", {"objectIds": odd})
        # The last of all that was said, and above it all the rest.
        self.say("ADV:CoatyObject", {"object": thing("The end", "End")})
        self.browser.wait_for_row("The end")
        more = """const more = all("button", shown()).find((button) => text(button) === "Show more"); more?.click(); return !more"""
        self.browser.wait("all rows", more)
        self.assert_all_shown(TEXTS + LEVELS)
        # Each is opened, too.
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
        agents = [self.join(number) for number in range(len(TEXTS))]
        self.assert_all_shown(TEXTS, '[aria-label="Alive"]')
        things = [thing(text, level) for text, level in zip(TEXTS, LEVELS)]
        for one, agent in zip(things, agents):
            self.say("ADV:CoatyObject", {"object": one}, agent)
        self.browser.choose_objects()
        self.assert_all_shown(TEXTS + LEVELS, '[aria-label="Alive"]')
        for one, agent in zip(things, agents):
            text = one["name"]
            self.browser.wait_for_row(text, "Alive").click()
            self.assert_all_shown([text], "aside[aria-label=Object]")
            self.say("ADV:CoatyObject", {"object": one | {text: "changed", f"{text}!": text}}, agent)
            self.browser.wait_for_text("What changed last", "aside[aria-label=Object]")
            self.assert_all_shown([text, f"{text}!"], "aside[aria-label=Object] tbody")
            self.browser.press("Close")

    def test_send(self):
        self.open("send")
        browser = self.browser
        url = self.gateway.url.replace("http", "ws") + "/v1/ws"
        agent = websocket.create_connection(url, timeout=PATIENCE, subprotocols=["coaty.v1"])
        self.addCleanup(agent.close)

        def ask(**frame):
            agent.send(json.dumps({"id": str(uuid.uuid4()), **frame}))

        def hear(op):
            while True:
                frame = json.loads(agent.recv())
                if frame["op"] == op:
                    return frame

        ask(op="identify", name=TEXTS[0])
        hear("ok")
        operation = LEVELS[1]
        ask(op="subscribe", event="call", operation=operation)
        hear("ok")
        browser.choose("Pattern", "call")
        form = browser.find("form[aria-label=Event]")
        browser.fill("Operation", operation, form)
        browser.press("Send")
        call = hear("event")
        ask(op="respond", event="return", correlationId=call["correlationId"], data={"result": {text: text for text in TEXTS}})
        script = """return all('[aria-label="Answers"] > li').length === 1"""
        browser.wait("the answer", script)
        self.assert_all_shown([json.dumps(text)[1:-1] for text in TEXTS] + [TEXTS[0]], '[aria-label="Answers"]')
        # The other way round.
        card = browser.find(".send-calls")
        browser.fill("Operation", LEVELS[2], card)
        browser.press("Answer calls", card)
        browser.wait_for_text("Waiting for calls")
        ask(op="request", event="call", operation=LEVELS[2], data={"parameters": {text: text for text in TEXTS}}, timeout=60000)
        browser.wait("the call", """return all('[aria-label="Calls"] > li').length === 1""")
        self.assert_all_shown([json.dumps(text)[1:-1] for text in TEXTS] + [TEXTS[0]], '[aria-label="Calls"]')
        browser.fill("Result", json.dumps(TEXTS[0]), card)
        browser.press("Return", card)
        self.assertEqual(hear("response")["data"], {"result": TEXTS[0]})
        self.assert_all_shown([TEXTS[0]], '[aria-label="Answered"]')

    def test_routing(self):
        self.open("routing")
        point = {"objectType": "coaty.IoSource", "valueType": TEXTS[0]}
        sources = [point | {"coreType": "IoSource", "objectId": SOURCE, "name": TEXTS[2]}]
        actors = [point | {"coreType": "IoActor", "objectType": "coaty.IoActor", "objectId": ACTOR, "name": TEXTS[3]}]
        for number, points in ((4, {"ioSources": sources, "ioActors": []}), (6, {"ioSources": [], "ioActors": actors})):
            agent = self.join(number)
            node = {"coreType": "IoNode", "objectType": "coaty.IoNode", "objectId": str(uuid.uuid4()), "name": LEVELS[0], "parentObjectId": agent}
            self.say("ADV:IoNode", {"object": node | points}, agent)
        edge = f"{SOURCE}:{ACTOR}"
        self.browser.wait("the edge", "return all('svg[role=img] [data-edge]').some((edge) => edge.dataset.edge === arguments[0])", edge)
        say(self.broker, f"coaty/3/-/IOV/{SOURCE}", TEXTS[1])
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
