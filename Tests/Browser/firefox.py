"""Firefox over WebDriver BiDi, without geckodriver, which Debian does not package."""

import itertools
import json
import pathlib
import re
import shutil
import tempfile

import websocket

import stack
from browser import LIBRARY, WATCH
from stack import Child, eventually

# No requests to other servers, and no pages at the first start.
PREFERENCES = """
user_pref("app.normandy.enabled", false);
user_pref("browser.aboutwelcome.enabled", false);
user_pref("browser.safebrowsing.update.enabled", false);
user_pref("browser.shell.checkDefaultBrowser", false);
user_pref("datareporting.policy.dataSubmissionEnabled", false);
user_pref("network.captive-portal-service.enabled", false);
user_pref("network.connectivity-service.enabled", false);
user_pref("services.settings.server", "data:,");
user_pref("toolkit.telemetry.reportingpolicy.firstRun", false);
"""


class Firefox:
    """Firefox with an empty profile and one page."""

    def __init__(self, folder):
        folder.mkdir(parents=True, exist_ok=True)
        self._profile = tempfile.mkdtemp(prefix="firefox-", dir=folder)
        pathlib.Path(self._profile, "user.js").write_text(PREFERENCES)
        command = ["firefox-esr", "--headless", "--no-remote", "--profile", self._profile, "--remote-debugging-port", "0"]
        self._child = Child(folder / "firefox.log", [*command, "--width", "1280", "--height", "800", "about:blank"])
        log = folder / "firefox.log"
        address = eventually("Firefox listens", lambda: re.search(r"BiDi listening on (ws://\S+)", log.read_text()))[1]
        self._socket = websocket.create_connection(f"{address}/session", timeout=2 * stack.PATIENCE, suppress_origin=True)
        self._ids = itertools.count(1)
        self._errors = []
        self.command("session.new", capabilities={})
        self.command("session.subscribe", events=["log.entryAdded"])
        self._page = self.command("browsingContext.getTree")["contexts"][0]["context"]
        self.command("script.addPreloadScript", functionDeclaration=f"() => {{ {WATCH} }}")

    def quit(self):
        self._socket.close()
        self._child.end()
        shutil.rmtree(self._profile, ignore_errors=True)

    def command(self, method, **parameters):
        """Sends a command, and returns its result."""
        number = next(self._ids)
        self._socket.send(json.dumps({"id": number, "method": method, "params": parameters}))
        while True:
            message = json.loads(self._socket.recv())
            if message["type"] == "event":
                entry = message["params"]
                if entry["level"] == "error":
                    self._errors.append(entry["text"])
            elif message["id"] == number:
                assert message["type"] == "success", message
                return message["result"]

    def open(self, url):
        self._note_violations()
        self.command("browsingContext.navigate", context=self._page, url=url, wait="complete")

    def js(self, script, *arguments):
        """Returns the result of a function body, as `Browser.js` does; the result is JSON."""
        function = f"async (...arguments) => {{ {LIBRARY} return JSON.stringify(await (async () => {{ {script} }})() ?? null) }}"
        answer = self.command(
            "script.callFunction",
            functionDeclaration=function,
            arguments=[_value(argument) for argument in arguments],
            target={"context": self._page},
            awaitPromise=True,
        )
        assert answer["type"] == "success", answer
        return json.loads(answer["result"]["value"])

    def wait(self, what, script, *arguments):
        return eventually(what, lambda: self.js(script, *arguments))

    def press(self, name):
        """Clicks the button or the link with an accessible name in the current view."""
        script = """
        const found = all("button, a, summary, [role=button]", shown()).find((element) => nameOf(element) === arguments[0])
        found?.click()
        return found !== undefined
        """
        self.wait(f"the button {name}", script, name)

    def press_keys(self, *keys):
        """Presses keys. The page receives them, but Enter does not press a button: without a window, the page has no focus."""
        actions = [{"type": kind, "value": key} for key in keys for kind in ("keyDown", "keyUp")]
        sources = [{"type": "key", "id": "keyboard", "actions": actions}]
        self.command("input.performActions", context=self._page, actions=sources)

    def problems(self):
        """Removes and returns the logged errors and the violations of the policy."""
        self._note_violations()
        errors, self._errors = self._errors, []
        return errors

    def _note_violations(self):
        violations = self.js("return window.watched?.violations")
        self._errors += [f"violation of the policy: {violation}" for violation in violations or []]


def _value(value):
    return {"type": "number" if isinstance(value, (int, float)) else "string", "value": value}
