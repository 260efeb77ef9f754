"""Chromium, and the base class of all tests of the console."""

import os
import pathlib
import re
import shutil
import tempfile
import unittest
import uuid

from selenium import webdriver
from selenium.common.exceptions import WebDriverException
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.action_chains import ActionChains

import stack
from stack import eventually

WIDE = (1280, 800)
NARROW = (390, 844)

# The folder for output, and the folder of the programs under test. `run` sets both.
OUT = pathlib.Path(os.environ["BROWSER_TEST_OUT"])
PROGRAMS = pathlib.Path(os.environ["BROWSER_TEST_PROGRAMS"])

# A public name that the browser resolves to 127.0.0.1.
REBOUND = "rebound.example"

# Errors that the browser logs while a server is not running.
NETWORK = r"net::ERR_|WebSocket connection to .* failed"

# Runs before the page's scripts: records violations of the policy, and calls by texts that run as code.
WATCH = """
window.watched = { violations: [], ran: [] }
addEventListener("securitypolicyviolation", (event) =>
  watched.violations.push(`${event.effectiveDirective}: ${event.blockedURI} ${event.sample}`))
"""

# Functions for scripts: `all` returns visible elements, `nameOf` an accessible name, `text` a text, and `shown` the current view.
LIBRARY = """
const isSeen = (element) => element.checkVisibility({ visibilityProperty: true })
const text = (element) => element.textContent.replace(/\\s+/g, " ").trim()
const nameOf = (element) => element.getAttribute("aria-label") ?? text(element)
const shown = () => document.querySelector("section.view:not([hidden])")
const all = (selector, root = document) => [...(root ?? document).querySelectorAll(selector)].filter(isSeen)
"""


class Browser:
    """Chromium with an empty profile.

    A size is in CSS pixels; a narrow one emulates a phone. A scheme is `light` or `dark`.
    """

    def __init__(self, folder, size=WIDE, scheme="light"):
        folder.mkdir(parents=True, exist_ok=True)
        self._profile = tempfile.mkdtemp(prefix="profile-", dir=folder)
        options = webdriver.ChromeOptions()
        options.binary_location = str(_wrapped(folder, "/usr/bin/chromium"))
        options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
        for argument in (
            *("--headless=new", f"--user-data-dir={self._profile}", f"--window-size={WIDE[0]},{WIDE[1]}"),
            *("--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars", "--force-device-scale-factor=1"),
            *("--no-first-run", "--disable-background-networking", "--disable-component-update", "--lang=en-US"),
            # The host name of a foreign site, which resolves to this machine.
            f"--host-resolver-rules=MAP {REBOUND} 127.0.0.1",
            # Exact heap sizes, and garbage collection on demand.
            *("--enable-precise-memory-info", "--js-flags=--expose-gc"),
            # Chromium has no sandbox for root. Only pages of the test are loaded.
            *(("--no-sandbox",) if os.geteuid() == 0 else ()),
        ):
            options.add_argument(argument)
        service = Service(
            executable_path=str(_wrapped(folder, "/usr/bin/chromedriver")),
            log_output=str(folder / f"chromedriver-{uuid.uuid4()}.log"),
        )
        self.driver = webdriver.Chrome(options=options, service=service)
        self.driver.set_script_timeout(2 * stack.PATIENCE)
        self.cdp("Page.enable")
        self.cdp("Page.addScriptToEvaluateOnNewDocument", source=WATCH)
        self.set_appearance(size, scheme)
        self._problems = []

    def quit(self):
        self.driver.quit()
        shutil.rmtree(self._profile, ignore_errors=True)

    def cdp(self, command, **parameters):
        return self.driver.execute_cdp_cmd(command, parameters)

    def set_appearance(self, size, scheme):
        """Sets the size and the color scheme."""
        width, height = size
        metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 720}
        self.cdp("Emulation.setDeviceMetricsOverride", **metrics)
        features = {"prefers-color-scheme": scheme, "prefers-reduced-motion": "reduce"}
        self.cdp("Emulation.setEmulatedMedia", features=[{"name": name, "value": value} for name, value in features.items()])

    # The page.

    def js(self, script, *arguments):
        """Runs a function body and returns its result. The body may use the functions of `LIBRARY`."""
        return self.driver.execute_script(LIBRARY + script, *arguments)

    def open(self, url):
        self._note()
        self.driver.get(url)

    def wait(self, what, script, *arguments, seconds=stack.PATIENCE):
        """Returns the result of a function body as soon as it is true."""
        return eventually(what, lambda: self.js(script, *arguments), seconds)

    def wait_for_connection(self, text="Online"):
        self.wait(f"the connection is {text}", "return text(document.getElementById('connection')).startsWith(arguments[0])", text)

    def go(self, title):
        """Opens a view by its link."""
        script = """
        const link = document.querySelector(`nav a[href="#${arguments[0]}"]`)
        return link && isSeen(link) ? link : null
        """
        ids = {"Live feed": "feed", "Agents & objects": "alive", "Send": "send", "IO routing": "routing"}
        self.wait(f"the link {title}", script, ids.get(title, title.lower())).click()
        self.wait(f"the view {title}", "return shown()?.querySelector('h1')?.textContent === arguments[0]", title)

    def find(self, selector, name=None, within=None):
        """Returns the first visible element with an accessible name, in the current view or in an element."""
        script = """
        return all(arguments[0], arguments[2] ?? shown()).find((element) => arguments[1] === null || nameOf(element) === arguments[1])
        """
        return self.wait(f"{selector} {name or ''}", script, selector, name, within)

    def button(self, name, within=None):
        return self.find("button, [role=button]", name, within)

    def press(self, name, within=None):
        self.button(name, within).click()

    def choose_objects(self):
        """Shows the objects instead of the agents. The label of the button contains their number."""
        self.wait("the button Objects", """return all("button", shown()).find((button) => /^Objects \\d/.test(text(button)))""").click()

    def field(self, label, within=None):
        script = """
        return all("input, select, textarea", arguments[1] ?? shown()).find((field) =>
          field.getAttribute("aria-label") === arguments[0]
            || [...(field.labels ?? [])].some((label) => text(label.querySelector(":scope > span") ?? label) === arguments[0]
               || text(label) === arguments[0]))
        """
        return self.wait(f"the field {label}", script, label, within)

    def fill(self, label, value, within=None):
        field = self.field(label, within)
        field.clear()
        field.send_keys(value)
        return field

    def choose(self, label, option, within=None):
        """Chooses the option of a select whose text contains this text."""
        script = """
        const option = [...arguments[0].options].find((option) => text(option).includes(arguments[1]))
        if (!option) return false
        arguments[0].value = option.value
        arguments[0].dispatchEvent(new Event("input", { bubbles: true }))
        arguments[0].dispatchEvent(new Event("change", { bubbles: true }))
        return true
        """
        self.wait(f"the option {option} of {label}", script, self.field(label, within), option)

    def press_keys(self, *keys):
        ActionChains(self.driver).send_keys(*keys).perform()

    def wait_for_text(self, value, selector="main"):
        script = "return all(arguments[1]).some((element) => element.textContent.includes(arguments[0]))"
        self.wait(f"the text {value!r}", script, value, selector)

    def wait_for_row(self, value, list_name="Events"):
        """Returns the button of the row that contains a text."""
        script = """
        return all(`[aria-label="${arguments[1]}"] li button`).find((row) => row.textContent.includes(arguments[0]))
        """
        return self.wait(f"a row with {value!r}", script, value, list_name)

    def plot(self, name, within=None):
        """Returns the label of the plot of a value; None if there is no plot."""
        script = """
        const plot = all("figure.plot", arguments[1]).find((plot) => text(plot.querySelector(".plot-name")) === arguments[0])
        return plot ? plot.querySelector("svg").getAttribute("aria-label") : null
        """
        return self.js(script, name, within)

    def screenshot(self, path):
        path.parent.mkdir(parents=True, exist_ok=True)
        self.driver.save_screenshot(str(path))

    # Problems.

    def _note(self):
        try:
            seen = self.js("const seen = window.watched ?? {}; window.watched = { violations: [], ran: [] }; return seen")
        except WebDriverException as problem:
            seen = {"violations": [f"the page does not respond: {problem}"]}
        self._problems += [f"violation of the policy: {violation}" for violation in seen.get("violations", [])]
        self._problems += [f"a text ran as code: {code}" for code in seen.get("ran", [])]
        for entry in self.driver.get_log("browser"):
            if entry["level"] == "SEVERE":
                self._problems.append(entry["message"])

    def problems(self, allowed=None):
        """Removes and returns the violations, texts that ran as code, and logged errors since the last call."""
        self._note()
        problems, self._problems = self._problems, []
        return [problem for problem in problems if not (allowed and re.search(allowed, problem))]


def _wrapped(folder, program):
    """Returns a wrapper that starts a program and ends it when the parent process ends."""
    path = folder / f"wrapped-{pathlib.Path(program).name}"
    if not path.exists():
        path.write_text(f'#!/bin/sh\nexec setpriv --pdeathsig KILL -- {program} "$@"\n')
        path.chmod(0o755)
    return path


class ConsoleCase(unittest.TestCase):
    """A test case with a separate stack and browser.

    After each test, it checks that there was no violation of the policy, and that all logged errors match `allowed`.
    """

    allowed = None
    # The view that each test opens first.
    view = "feed"

    @classmethod
    def setUpClass(cls):
        folder = OUT / cls.__name__
        shutil.rmtree(folder, ignore_errors=True)
        cls.folder = folder
        cls.stack = stack.Stack(folder, PROGRAMS)
        cls.addClassCleanup(cls.stack.stop)
        cls.begin()
        cls.browser = Browser(folder)
        cls.addClassCleanup(cls.browser.quit)

    @classmethod
    def begin(cls):
        """Starts the processes that the tests of the class share."""
        cls.broker = cls.stack.broker()
        cls.gateway = cls.stack.gateway(cls.broker)

    def setUp(self):
        # Before the page is opened: if that fails, the problems explain it.
        self.addCleanup(self.check_problems)
        self.open()

    def open(self, view=None):
        # A URL that differs only in its fragment would not load the page again.
        self.browser.open("about:blank")
        self.browser.open(f"{self.gateway.url}/#{view or self.view}")
        self.browser.wait_for_connection()

    def run(self, result=None):
        before = len(result.failures) + len(result.errors)
        outcome = super().run(result)
        if len(result.failures) + len(result.errors) > before and hasattr(self, "browser"):
            try:
                self.browser.screenshot(self.folder / f"{self._testMethodName}.png")
            except WebDriverException:
                pass
        return outcome

    def check_problems(self):
        self.assertEqual(self.browser.problems(self.allowed), [])
