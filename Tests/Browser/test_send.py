"""The view Send: the form of each pattern, and calls that the user answers."""

import json
import subprocess
import urllib.parse
import uuid

from selenium.webdriver.common.keys import Keys

from browser import ConsoleCase
from stack import eventually

PATTERNS = ["advertise", "deadvertise", "channel", "discover", "query", "update", "call", "raw"]


class SendTests(ConsoleCase):
    view = "send"

    def choose(self, pattern):
        self.browser.choose("Pattern", pattern)

    def answers(self):
        return self.browser.js("""return all('[aria-label="Answers"] > li').map(text)""")

    def command(self):
        return self.browser.js("""return all('pre[aria-label="Equal curl command"]')[0].textContent""")

    def run_command(self):
        """Runs the shown command in a shell, and returns the response."""
        answer = subprocess.run(["sh", "-c", self.command()], capture_output=True, text=True, timeout=60, check=True)
        return json.loads(answer.stdout)

    def test_discovers_an_agent(self):
        agent = self.stack.agent(self.broker)
        self.choose("discover")
        self.browser.fill("Timeout (ms)", "1000")
        self.browser.press("Send")
        script = """return all('[aria-label="Answers"] > li').some((answer) => answer.textContent.includes(arguments[0]))"""
        self.browser.wait("the agent's answer", script, "Test agent")
        self.browser.wait_for_text("timeout after 1,000 ms")
        found = [answer["data"]["object"]["objectId"] for answer in self.run_command()["responses"]]
        self.assertIn(agent.id, found, "curl gets the same response")
        agent.stop()

    def test_discovers_objects_of_a_type(self):
        agent = self.stack.agent(self.broker)
        self.choose("discover")
        self.browser.choose("Look for", "Object types")
        self.browser.fill("Object types", "com.example.Thing")
        self.browser.fill("Limit", "1")
        self.browser.press("Send")
        self.browser.wait_for_text("1 answer · limit")
        self.assertIn("resolved", self.answers()[0])
        agent.stop()

    def test_calls_an_operation_of_an_agent(self):
        agent = self.stack.agent(self.broker)
        self.choose("call")
        self.browser.fill("Operation", "com.example.add", self.browser.find("form[aria-label=Event]"))
        body = self.browser.field("Body")
        body.clear()
        body.send_keys('{"parameters": [3, 4]}')
        self.browser.press("Send")
        self.browser.wait_for_text("1 answer · limit")
        self.assertIn("7", self.answers()[0])
        self.assertEqual(self.run_command()["responses"][0]["data"], {"result": 7})
        agent.stop()

    def offered(self):
        return self.browser.js("""return all('[aria-label="Known operations"] button').map(text)""")

    def test_operations_are_offered_by_name(self):
        browser = self.browser
        agent = self.stack.agent(self.broker)
        self.choose("call")
        self.assertNotIn("com.example.add", self.offered())
        # Described by an agent.
        self.gateway.advertise("Calculator", "com.example.Calculator", operations=["com.example.multiply", {"name": "com.example.divide", "description": "Divides"}])
        browser.wait("the described operations", """
        return ["com.example.multiply", "com.example.divide"].every((name) => all('[aria-label="Known operations"] button').some((button) => text(button) === name))
        """)
        # Called by another client.
        self.gateway.curl("POST", "/v1/call/com.example.add?limit=1", {"parameters": [1, 2]})
        browser.press("com.example.add")
        form = browser.find("form[aria-label=Event]")
        field = browser.field("Operation", form)
        self.assertEqual(field.get_attribute("value"), "com.example.add")
        options = browser.js("return [...arguments[0].list.options].map(({ value, label }) => [value, label])", field)
        self.assertIn(["com.example.divide", "Divides"], options)
        self.assertIn(["com.example.add", "observed"], options)
        browser.press("Send")
        browser.wait_for_text("1 answer · limit")
        browser.wait("it is answered", """
        return [...document.getElementById("operation-names").options].some(({ value, label }) => value === "com.example.add" && label === "answered by Test agent")
        """)
        agent.stop()

    def test_last_ten_answers_are_kept(self):
        browser = self.browser
        agent = self.stack.agent(self.broker)
        self.choose("call")
        browser.fill("Operation", "com.example.add", browser.find("form[aria-label=Event]"))
        body = browser.field("Body")
        earlier = """return all('[aria-label="Earlier requests"] > li > details > summary').map(text)"""
        for number in range(12):
            body.clear()
            body.send_keys(json.dumps({"parameters": [100, number]}))
            browser.press("Send")
            browser.wait(f"answer {number}", """return all('[aria-label="Answers"] > li').some((answer) => answer.textContent.includes(arguments[0]))""", str(100 + number))
            browser.wait_for_text("1 answer · limit", ".card-header")
        kept = browser.js(earlier)
        self.assertEqual(len(kept), 10)
        for number, summary in zip(range(10, 0, -1), kept):
            self.assertIn(f"com.example.add(100, {number})", summary)
            self.assertIn("1 answer · limit", summary)
        browser.js("""all('[aria-label="Earlier requests"] > li > details > summary')[9].click()""")
        browser.wait_for_text('"result": 101', '[aria-label="Earlier requests"]')
        # A request without answers is kept, too.
        browser.fill("Operation", "com.example.nobody", browser.find("form[aria-label=Event]"))
        browser.fill("Timeout (ms)", "300")
        browser.press("Send")
        browser.wait_for_text("0 answers · timeout after 300 ms")
        self.choose("advertise")
        browser.press("Send")
        browser.wait_for_text("Published at")
        self.assertIn("com.example.nobody", browser.js(earlier)[0])
        agent.stop()

    def test_advertised_object_is_alive(self):
        name = f"Window {uuid.uuid4()}"
        self.choose("advertise")
        self.browser.fill("Name", name)
        self.browser.press("Send")
        self.browser.wait_for_text("Published at")
        self.open("alive")
        self.browser.choose_objects()
        self.browser.wait_for_row(name, "Alive")

    def test_large_integers_keep_their_digits(self):
        thing = {"coreType": "CoatyObject", "objectType": "com.example.Thing", "objectId": str(uuid.uuid4()), "name": "Exact"}
        thing["serial"] = 1724442618569203714
        self.choose("advertise")
        self.browser.js("""arguments[0].value = arguments[1]
          arguments[0].dispatchEvent(new Event("input", { bubbles: true }))""", self.browser.field("Body"), json.dumps({"object": thing}))
        self.browser.press("Send")
        self.browser.wait_for_text("Published at")
        eventually("the object", lambda: self.gateway.curl("GET", f"/v1/objects/{thing['objectId']}").get("object") == thing)
        self.open("alive")
        self.browser.choose_objects()
        self.browser.wait_for_row("Exact", "Alive").click()
        self.browser.wait_for_text("1724442618569203714")

    def test_every_pattern_has_a_form_and_a_command_that_the_gateway_accepts(self):
        values = {"Channel": "news", "Operation": "com.example.nobody", "Topic": "greenhouse/door", "Object ids": str(uuid.uuid4())}
        for pattern in PATTERNS:
            with self.subTest(pattern):
                self.choose(pattern)
                form = self.browser.find("form[aria-label=Event]")
                for label, value in values.items():
                    if self.browser.js("return all('label', arguments[0]).some((label) => text(label) === arguments[1])", form, label):
                        self.browser.fill(label, value, form)
                self.browser.js("""for (const field of all("input[type=number]", arguments[0])) if (field.id.endsWith("timeout")) {
                  field.value = 300
                  field.dispatchEvent(new Event("input", { bubbles: true }))
                }""", form)
                answer = self.run_command()
                self.assertTrue("deferred" in answer or "responses" in answer, answer)
                self.browser.press("Send")
                self.browser.wait_for_text("Published at" if pattern in ("advertise", "deadvertise", "channel", "raw") else "timeout after 300 ms")

    def test_control_enter_sends_the_event(self):
        self.choose("advertise")
        self.browser.field("Body").send_keys(Keys.CONTROL, Keys.ENTER)
        self.browser.wait_for_text("Published at")

    def test_invalid_json_in_the_body_is_explained(self):
        self.choose("advertise")
        body = self.browser.field("Body")
        body.clear()
        body.send_keys('{"object": ')
        self.browser.wait_for_text("ine 1")
        self.browser.press("Send")
        self.assertEqual(body.get_attribute("aria-invalid"), "true")

    def test_refusal_by_the_gateway_is_shown(self):
        self.choose("advertise")
        body = self.browser.field("Body")
        body.clear()
        body.send_keys('{"object": {"name": "No type"}}')
        self.browser.press("Send")
        self.browser.wait("the reason", """return all('.notice[data-kind=bad]').some((notice) => text(notice) !== "")""")

    def test_call_is_answered_by_hand_and_the_caller_gets_the_result(self):
        browser = self.browser
        operation = f"com.example.ask-{uuid.uuid4()}"
        card = browser.find(".send-calls")
        browser.fill("Operation", operation, card)
        browser.press("Answer calls", card)
        browser.wait_for_text("Waiting for calls")
        caller = self.gateway.start_curl("POST", f"/v1/call/{operation}?timeout=30000", {"parameters": {"question": "Which door?"}})
        browser.wait("the call", """return all('[aria-label="Calls"] > li').some((call) => call.textContent.includes("Which door?"))""")
        browser.fill("Result", '{"answer": "The north door"}', card)
        browser.press("Return", card)
        answer = json.loads(caller.communicate(timeout=60)[0])
        self.assertEqual(answer["responses"][0]["data"], {"result": {"answer": "The north door"}})
        browser.wait("no pending call", """return all('[aria-label="Calls"] > li').length === 0""")
        caller = self.gateway.start_curl("POST", f"/v1/call/{operation}?timeout=30000", {"parameters": []})
        browser.wait("the next call", """return all('[aria-label="Calls"] > li').length === 1""")
        browser.js("""all("input[type=checkbox]", arguments[0])[0].click()""", card)
        browser.fill("Message", "The door is locked", card)
        browser.press("Return", card)
        answer = json.loads(caller.communicate(timeout=60)[0])
        self.assertEqual(answer["responses"][0]["data"]["error"]["message"], "The door is locked")
        browser.press("Stop", card)
        self.browser.wait_for_text("Answer calls yourself")


class DescribedOperationTests(ConsoleCase):
    """Operations that agents describe: the demo agent's light, and one of a test."""

    view = "send"
    operation = "com.example.demo.switchLight"

    @classmethod
    def begin(cls):
        cls.broker = cls.stack.broker()
        cls.gateway = cls.stack.gateway(cls.broker, "--demo", "true")

    def body(self):
        return self.browser.field("Body").get_attribute("value")

    def parameters(self):
        return json.loads(self.body())["parameters"]

    def wait_for_parameters(self, parameters):
        eventually(f"the parameters {parameters}", lambda: self.parameters() == parameters)

    def test_example_of_an_operation_is_filled_in(self):
        browser = self.browser
        browser.choose("Pattern", "call")
        browser.wait("the operation", "return all('[data-operation]').some((button) => text(button) === arguments[0])", self.operation)
        filter = urllib.parse.quote('["operations", ["Exists"]]')
        listed = self.gateway.curl("GET", f"/v1/objects?filter={filter}")["objects"]
        [described] = [each for thing in listed for each in thing["operations"] if each["name"] == self.operation]
        browser.press(described["name"])
        self.wait_for_parameters(described["example"])
        browser.press("Send")
        browser.wait_for_text("1 answer · limit")
        answer = browser.js("return all('[aria-label=Answers] .tag').map((tag) => tag.dataset.kind ?? 'none')")
        self.assertEqual(answer, ["none"])
        # Another operation has no example. What the user has written stays.
        operation = browser.field("Operation", browser.find("form[aria-label=Event]"))
        operation.clear()
        self.wait_for_parameters([1, 2])
        body = browser.field("Body")
        body.clear()
        body.send_keys('{"parameters": {"on": 7}}')
        browser.press(described["name"])
        self.assertEqual(self.parameters(), {"on": 7})
        browser.press("Send")
        browser.wait_for_text("-32602")
        tag = "return all(arguments[0]).find((tag) => text(tag) === 'return')?.dataset.kind"
        browser.wait("a red tag", f"{tag} === 'bad'", "[aria-label=Answers] .tag")
        browser.press("Start over")
        self.assertEqual(self.parameters(), [1, 2])
        browser.go("Live feed")

        def is_shown():
            self.gateway.curl("POST", f"/v1/call/{self.operation}", {"parameters": {"on": 7}})
            return browser.js("return all('[aria-label=Events] li').some((row) => text(row).includes('-32602'))")

        eventually("the call in the feed", is_shown)
        # The demo agent's events would move the rows.
        browser.press("Pause")
        browser.wait("a red tag", f"{tag} === 'bad'", "[aria-label=Events] .tag")
        browser.wait_for_row("-32602").click()
        browser.wait("a red tag", f"{tag} === 'bad'", "aside[aria-label=Event] .tag")

    def test_example_is_filled_in_when_the_operation_of_a_link_is_described(self):
        name = f"com.example.late{uuid.uuid4().hex[:8]}"
        self.open(f"send?pattern=call&operation={name}")
        self.assertEqual(self.parameters(), [1, 2])
        self.gateway.advertise("Adder", operations=[{"name": name, "example": {"exact": 9007199254740993}}])
        eventually("the example", lambda: '"exact": 9007199254740993' in self.body())
