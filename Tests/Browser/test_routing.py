"""The IO routing of Examples/io-routing."""

import json
import signal

from browser import NETWORK, ConsoleCase
from stack import TEMPERATURE_CONTEXT, eventually

SOURCES = {
    "Temperature Source 1": "c547e5cd-ef99-4ccd-b109-fc472fc2d421",
    "Temperature Source 2": "2e9949f7-a8ef-435b-88a9-527c0a9414c3",
    "Temperature Source 3": "200cc37b-df20-4425-a16f-5c0b42d04dbb",
}
ACTORS = {"normal": "a731fc40-c0f8-486f-b5b6-b653c3cabaea", "emergency": "a60a74f3-3d26-446f-a358-911867544944"}
NAMES = {"normal": "Temperature Actor 1", "emergency": "Temperature Actor 2"}
PATH = f"/v1/routing/contexts/{TEMPERATURE_CONTEXT}"
# Milliseconds between two values of a source. The default of the example, 5000, would slow down the tests.
UPDATE_RATE = 1000


class RoutingCase(ConsoleCase):
    """Tests with three sources and two actors. The operating state of the context determines the associated actor."""

    view = "routing"

    @classmethod
    def begin(cls):
        cls.broker = cls.stack.broker()
        cls.gateway = cls.stack.router(cls.broker)
        cls.actors = {state: cls.stack.example(cls.broker, "io-routing-actor", state, UPDATE_RATE) for state in ACTORS}
        cls.sources = cls.stack.example(cls.broker, "io-routing-sources", UPDATE_RATE)

    def setUp(self):
        self.set_state("normal")
        super().setUp()
        self.wait_for_edges("normal")

    def set_state(self, state):
        self.gateway.curl("PATCH", PATH, {"operatingState": state}, "application/merge-patch+json")

    def edges(self, mark=None):
        script = """
        return all("svg[role=img] [data-edge]").filter((edge) => arguments[0] === null ? edge.hasAttribute("data-real") : edge.dataset.mark === arguments[0])
          .map((edge) => edge.dataset.edge).sort()
        """
        return self.browser.js(script, mark)

    def expected(self, state):
        return sorted(f"{source}:{ACTORS[state]}" for source in SOURCES.values())

    def wait_for_edges(self, state):
        eventually(f"edges to the actor for {state}", lambda: self.edges() == self.expected(state))

    def write_state(self, state):
        """Changes the operating state in the textarea of the context."""
        field = self.browser.wait("the text of the context", """return all("textarea", shown()).find((area) => area.value.includes("operatingState"))""")
        context = json.loads(field.get_attribute("value"))
        field.clear()
        field.send_keys(json.dumps(context | {"operatingState": state}))

    def table(self):
        return self.browser.js("""return all("table[aria-label=Associations] tbody tr").map((row) => all("td", row).map(text))""")


class RoutingTests(RoutingCase):
    def test_saved_context_moves_the_edges_to_the_other_actor(self):
        self.write_state("emergency")
        self.browser.press("Save")
        self.wait_for_edges("emergency")
        self.browser.wait_for_text("Saved: 3 added, 3 removed.")
        self.assertEqual({row[1] for row in self.table()}, {NAMES["emergency"]})
        self.actors["emergency"].wait_for_output("the actor for emergencies is associated", r"^associated$")

    def test_patch_of_curl_moves_the_edges(self):
        self.set_state("emergency")
        self.wait_for_edges("emergency")
        self.set_state("normal")
        self.wait_for_edges("normal")

    def test_what_if_marks_the_changes_and_saves_nothing(self):
        self.write_state("emergency")
        self.browser.press("What if")
        self.browser.wait_for_text("3 would be added, 3 would be removed")
        eventually("the marks of added associations", lambda: self.edges("added") == self.expected("emergency"))
        self.assertEqual(self.edges("removed"), self.expected("normal"))
        self.assertEqual(self.edges(), self.expected("normal"))
        context = self.gateway.curl("GET", PATH)["context"]
        self.assertEqual(context["operatingState"], "normal")
        self.browser.press("Undo edits")
        self.browser.wait("no marks", "return all('svg [data-mark]').length === 0")

    def test_saved_context_keeps_large_integers(self):
        serials = lambda *numbers: {"serials": list(numbers)}  # noqa: E731
        self.gateway.curl("PATCH", PATH, serials(1724442618569203714, 1), "application/merge-patch+json")
        script = """
        const area = all("textarea", shown()).find((area) => area.value.includes("[1724442618569203714, 1]"))
        if (!area) return false
        area.value = area.value.replace("1724442618569203714, 1", "1724442618569203714, 2")
        area.dispatchEvent(new Event("input", { bubbles: true }))
        return true
        """
        self.browser.wait("the text of the context", script)
        self.browser.press("Save")
        self.browser.wait_for_text("Saved")
        context = self.gateway.curl("GET", PATH)["context"]
        self.gateway.curl("PATCH", PATH, {"serials": None}, "application/merge-patch+json")
        self.assertEqual(context["serials"], [1724442618569203714, 2])

    def test_why_explains_a_pair(self):
        browser = self.browser
        browser.choose("Source", "Temperature Source 1")
        browser.choose("Actor", NAMES["emergency"])
        browser.press("Why?")
        browser.wait_for_text("are not associated")
        pair = f"{SOURCES['Temperature Source 1']}:{ACTORS['emergency']}"
        browser.wait("the mark", "return all('svg [data-mark=explained]').some((edge) => edge.dataset.edge === arguments[0])", pair)
        browser.choose("Actor", NAMES["normal"])
        browser.press("Why?")
        browser.wait_for_text("are associated by the rule")

    def test_new_values_are_shown(self):
        values = lambda: [row[-1] for row in self.table() if row[0] == "Temperature Source 1"]
        first = eventually("a value", lambda: (shown := values()) and shown[0].startswith("1") and shown[0])
        eventually("another value", lambda: values()[0] != first)

    def test_form_changes_the_operating_state(self):
        browser = self.browser
        editor = browser.wait("the editor", "return all('section.card', shown()).find((card) => card.querySelector('textarea'))")
        first = browser.js("return text(all('label', arguments[0])[0])", editor)
        self.assertEqual(first, "operatingState")
        field = browser.field("operatingState", editor)
        self.assertEqual(field.get_attribute("value"), "normal")
        self.assertEqual(browser.js("return [...arguments[0].list.options].map(({ value }) => value)", field), ["emergency", "normal"])
        area = browser.field("Context", editor)
        field.clear()
        field.send_keys("emergency")
        self.assertEqual(json.loads(area.get_attribute("value"))["operatingState"], "emergency")
        browser.press("Save", editor)
        self.wait_for_edges("emergency")
        # A change of the JSON changes the form, too.
        self.write_state("normal")
        self.assertEqual(field.get_attribute("value"), "normal")
        area.send_keys("no JSON")
        self.assertFalse(field.is_enabled())

    def test_why_an_actor_gets_nothing_in_one_click(self):
        browser = self.browser
        browser.press(f"Why does “{NAMES['emergency']}” get nothing?")
        expected = 'actorNode.characteristics.isResponsibleForOperatingState is "emergency"; it should equal context.operatingState, which is "normal".'
        script = """
        const notice = all(".why .notice").find((notice) => notice.textContent.includes(arguments[0]))
        return notice && notice.getBoundingClientRect()
        """
        place = browser.wait("the reason", script, expected)
        self.assertGreaterEqual(place["top"], 0)
        self.assertLessEqual(place["bottom"], browser.js("return innerHeight"), "the reason is visible without scrolling")
        browser.wait_for_text("gets nothing from the 3 sources of its value type", ".why .notice")
        # In the other state, the other actor gets nothing.
        self.set_state("emergency")
        browser.button(f"Why does “{NAMES['normal']}” get nothing?")
        browser.choose("Source", "a source")
        browser.choose("Actor", NAMES["emergency"])

        def is_fed():
            # The answer is that of the moment: the first values of the new associations may not have arrived yet.
            browser.press("Why?")
            return "gets values from 3 sources" in browser.js("return all('.why .notice').map(text).join()")

        eventually("the actor gets values", is_fed)


class SourceValuesTests(RoutingCase):
    """Plots of the values of IO sources, and their rates."""

    def test_values_of_a_chosen_source_are_plotted(self):
        browser = self.browser
        self.assertEqual(browser.js("return all('[aria-label=\"Chosen source\"]').length"), 0)
        browser.choose("Source", "Temperature Source 1")
        card = browser.find('[aria-label="Chosen source"]')
        eventually("the plot", lambda: "in the last 1 min: from" in (browser.plot("Value", card) or ""))
        first = browser.plot("Value", card)
        eventually("the plot continues", lambda: browser.plot("Value", card) != first)
        fact = """
        const term = all("dt", arguments[0]).find((term) => text(term) === arguments[1])
        return text(term.nextElementSibling)
        """
        self.assertEqual(browser.js(fact, card, "Agreed rate"), "every 1 s")
        eventually("the measured rate", lambda: browser.js(fact, card, "Measured rate").startswith("every "))
        browser.choose("Source", "a source")
        browser.wait("the source is closed", "return all('[aria-label=\"Chosen source\"]').length === 0")

    def test_measured_rates_are_shown_next_to_agreed_rates(self):
        row = lambda: next(row for row in self.table() if row[0] == "Temperature Source 2")
        self.assertEqual(row()[2], "every 1 s")
        eventually("the measured rate", lambda: row()[3].startswith("every "))
        charts = """return all("table[aria-label=Associations] .spark-small .spark-line").filter((line) => line.getAttribute("d").includes("L")).length"""
        eventually("the charts", lambda: self.browser.js(charts) == 3)

    def test_silent_sources_are_marked_and_explain_an_actor_without_values(self):
        browser = self.browser
        eventually("values", lambda: all(row[3].startswith("every ") for row in self.table()))
        # The sources stay associated, but send nothing.
        self.sources.process.send_signal(signal.SIGSTOP)
        try:
            eventually("the sources are silent", lambda: [row[3].startswith("silent for") for row in self.table()] == [True] * 3)
            browser.choose("Actor", "Temperature Actor 1")
            browser.press("Why?")
            browser.wait_for_text("is associated with 3 sources, but receives no values.", ".why .notice")
            browser.wait_for_text("agreed every 1 s, measured: silent for", ".why .reasons")
        finally:
            self.sources.process.send_signal(signal.SIGCONT)
        eventually("values again", lambda: all(row[3].startswith("every ") for row in self.table()))

    def test_measured_rates_are_not_known_while_the_gateway_is_away(self):
        # The browser logs failed connections to the gateway.
        self.allowed = NETWORK
        eventually("values", lambda: all(row[3].startswith("every ") for row in self.table()))
        self.gateway.kill()
        eventually("no rates", lambda: [row[3] for row in self.table()] == ["not known now"] * 3)
        self.gateway.start()
        self.browser.wait_for_connection()
        eventually("rates again", lambda: [row[3].startswith("every ") for row in self.table()] == [True] * 3)


class NoRoutingTests(ConsoleCase):
    view = "routing"

    def test_empty_view_shows_the_next_step(self):
        self.browser.wait_for_text("demo-routing")
