"""Keys, the color scheme, and long texts."""

import uuid

from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.keys import Keys

from browser import WIDE, ConsoleCase
from stack import publish_json

BACKGROUND = "return getComputedStyle(document.body).backgroundColor"
DARK, LIGHT = "rgb(14, 19, 24)", "rgb(245, 246, 248)"
TITLE = "return text(shown().querySelector('h1'))"


class KeysTests(ConsoleCase):
    def setUp(self):
        super().setUp()
        self.browser.js("localStorage.clear()")
        self.open()

    def dialog(self, is_open):
        self.browser.wait(f"the dialog: {is_open}", "return document.querySelector('dialog').open === arguments[0]", is_open)

    def test_help_lists_the_keys_of_the_view(self):
        browser = self.browser
        browser.press_keys("?")
        self.dialog(True)
        keys = browser.js("return [...document.querySelectorAll('.keys dt')].map((key) => [text(key), text(key.nextSibling)])")
        for entry in (["1", "Live feed"], ["6", "Access"], ["p", "Pause"], ["/", "Find"], ["Esc", "Close what is open"],
                      ["Ctrl+Enter⌘+Enter", "Send the event while you edit its body"]):
            self.assertIn(entry, keys)
        # While the dialog is open, the keys of the page have no effect.
        browser.press_keys("2")
        browser.press_keys(Keys.ESCAPE)
        self.dialog(False)
        self.assertEqual(browser.js(TITLE), "Live feed")

    def test_keys_change_views_and_focus_the_search(self):
        browser = self.browser
        for key, title in zip("234561", ["Agents & objects", "Send", "IO routing", "Gateway", "Access", "Live feed"]):
            browser.press_keys(key)
            browser.wait(title, "return text(shown().querySelector('h1')) === arguments[0]", title)
        browser.press_keys("p")
        browser.button("Resume")
        browser.press_keys("/")
        # In a field, keys type characters.
        browser.press_keys("2p?")
        self.assertEqual(browser.js("return document.activeElement.value"), "2p?")
        self.assertEqual(browser.js(TITLE), "Live feed")

    def test_keys_can_be_turned_off(self):
        browser = self.browser
        browser.press_keys("?")
        browser.js("document.querySelector('dialog input').click()")
        browser.press_keys(Keys.ESCAPE)
        self.dialog(False)
        self.open()
        browser.press_keys("2?")
        self.assertNotIn("alive", browser.js("return location.hash"))
        self.dialog(False)
        # The button still opens the dialog.
        browser.js("document.getElementById('help').click()")
        self.dialog(True)

    def test_arrow_keys_move_in_lists(self):
        browser = self.browser
        for name in ("First", "Second", "Third"):
            self.gateway.advertise(f"{name} door", "com.example.Door")
        browser.wait_for_row("Third door")
        browser.js("const find = all('input[type=search]')[0]; find.value = 'com.example.Door'; find.dispatchEvent(new Event('input', { bubbles: true }))")
        browser.press("Pause")
        browser.js("arguments[0].focus()", browser.wait_for_row("Third door"))
        focused = "return text(document.activeElement)"
        for key, name in ((Keys.DOWN, "Second"), (Keys.DOWN, "First"), (Keys.UP, "Second"), (Keys.HOME, "Third")):
            browser.press_keys(key)
            self.assertIn(f"{name} door", browser.js(focused))

    def test_chosen_scheme_is_kept(self):
        browser = self.browser
        for system, chosen, background in (("light", "Dark", DARK), ("dark", "Light", LIGHT), ("dark", "System", DARK)):
            browser.set_appearance(WIDE, system)
            browser.press_keys("?")
            browser.js("all('dialog button').find((button) => text(button) === arguments[0]).click()", chosen)
            self.assertEqual(browser.js(BACKGROUND), background)
            self.open()
            self.assertEqual(browser.js(BACKGROUND), background)
        browser.set_appearance(WIDE, "light")
        self.assertEqual(browser.js(BACKGROUND), LIGHT)

    def test_cut_names_can_be_read(self):
        browser = self.browser
        name = "A door with a name that is much too long for the row of a list " * 3
        self.gateway.advertise(name.strip(), "com.example.Door")
        row = browser.wait_for_row("A door with a name")
        browser.press("Pause")
        script = "return [...arguments[0].children].find((cell) => text(cell).includes('A door'))"
        title = "return document.querySelector('[data-full-text]')?.title ?? ''"
        ActionChains(browser.driver).move_to_element(browser.js(script, row)).perform()
        self.assertIn(name[:150], browser.js(title))
        row.click()
        browser.wait_for_text(name.strip(), "aside[aria-label=Event]")

    def test_long_names_of_senders_can_be_read(self):
        browser = self.browser
        agent = str(uuid.uuid4())
        name = " ".join(["An agent with a name that is longer than the list shows."] * 4)
        identity = {"coreType": "Identity", "objectType": "coaty.Identity", "objectId": agent, "name": name}
        publish_json(self.broker, f"coaty/3/-/ADV:Identity/{agent}", {"object": identity})
        thing = {"coreType": "CoatyObject", "objectType": "com.example.Thing", "objectId": str(uuid.uuid4()), "name": "Its thing"}
        publish_json(self.broker, f"coaty/3/-/CHN:news/{agent}", {"object": thing})
        row = browser.wait_for_row("Its thing")
        browser.press("Pause")
        sender = browser.wait("the sender", "return [...arguments[0].children].find((cell) => text(cell).startsWith('An agent'))", row)
        ActionChains(browser.driver).move_to_element(sender).perform()
        browser.wait("the full name", "return document.querySelector('[data-full-text]')?.title === arguments[0]", name)
        row.click()
        browser.wait_for_text(name, "aside[aria-label=Event]")
        browser.press("Show only events of this sender")
        chip = browser.find("[aria-label=Chosen] button")
        self.assertLess(len(chip.text), len(name))
        self.assertEqual(chip.get_attribute("title"), name)
        browser.press("Close")
        browser.press("Resume")
