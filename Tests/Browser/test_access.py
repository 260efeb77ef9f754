"""Signing in, and the parts of the console that the user's roles permit."""

import hashlib
import json

from browser import NETWORK, ConsoleCase
from test_accessibility import AccessibilityCase

ADMIN = "coaty_test-admin-token"
# Browsers request an icon for a file that is not a page.
DENIED = NETWORK + r"|status of (401|403|429)|favicon"

ROLES = {
    "viewer": [{"observe": ["advertise"], "types": ["*"]}, {"read": ["status"]}],
    "operator": [
        {"observe": ["advertise"], "types": ["*"]},
        {"publish": ["advertise"], "types": ["com.example.*"], "where": ["object.hall", ["Equals", {"property": "principal.hall"}]]},
        {"request": ["discover"], "types": ["com.example.Door"]},
        {"read": ["contexts"], "contexts": ["*"]},
    ],
    "guest": [{"read": ["info"]}],
}


def token_of(name):
    return f"coaty_token-of-{name}"


def token_entry(name, secret, role, **members):
    """Returns a token entry of an access configuration."""
    return {"name": name, "sha256": hashlib.sha256(secret.encode()).hexdigest(), "roles": [role]} | members


class AccessCase(AccessibilityCase):
    allowed = DENIED
    view = ""

    def open(self, fragment=None):
        """Opens the console in a tab without a stored token."""
        browser = self.browser
        browser.open(f"{self.gateway.url}/console/icon.svg")
        browser.js("sessionStorage.clear()")
        browser.open(f"{self.gateway.url}/#{fragment or ''}")

    def sign_in(self, token, view=None):
        self.open(f"token={token}")
        self.browser.wait_for_connection()
        if view:
            self.browser.go(view)

    def wait_for_form(self):
        self.browser.wait("the form", "return all('.sign-in form').length === 1")

    def enter(self, token):
        field = self.browser.js("return all('#token')[0]")
        field.clear()
        field.send_keys(token)
        self.browser.js("all('.sign-in button[type=submit]')[0].click()")

    def links(self):
        return self.browser.js("""return all("nav a").map((link) => link.getAttribute("href"))""")


class TokenTests(AccessCase):
    @classmethod
    def begin(cls):
        cls.broker = cls.stack.broker()
        cls.gateway = cls.stack.gateway(cls.broker, environment={"COATY_GATEWAY_TOKEN": ADMIN})

    def test_link_signs_in_and_leaves_no_token_in_the_address(self):
        browser = self.browser
        self.sign_in(ADMIN)
        self.assertEqual(browser.js("return location.href"), f"{self.gateway.url}/")
        addresses = browser.js("return performance.getEntriesByType('resource').map(({ name }) => name)")
        self.assertEqual([address for address in addresses if ADMIN in address], [])
        self.assertEqual(browser.js("return text(document.getElementById('user'))"), "COATY_GATEWAY_TOKEN")
        self.gateway_advertise("North door")
        browser.wait_for_row("North door")
        browser.go("Gateway")
        browser.wait("the status", "return shown().textContent.includes(arguments[0])", self.broker.url)

    def test_link_in_an_open_console_signs_in(self):
        self.open()
        self.wait_for_form()
        self.browser.js("location.hash = arguments[0]", f"#token={ADMIN}")
        self.browser.wait_for_connection()
        self.assertEqual(self.browser.js("return location.hash"), "")

    def gateway_advertise(self, name):
        thing = {"coreType": "CoatyObject", "objectType": "com.example.Door", "objectId": "3d6fd1c0-0c56-4f0e-9f1a-6a0b0f7a5c02", "name": name}
        script = """
        return fetch("v1/advertise", { method: "POST", body: arguments[0], headers:
          { "content-type": "application/json", authorization: `Bearer ${arguments[1]}` } }).then(({ status }) => status)
        """
        self.assertEqual(self.browser.js(script, json.dumps({"object": thing}), ADMIN), 202)

    def test_form_signs_in_after_a_wrong_token(self):
        browser = self.browser
        self.open()
        self.wait_for_form()
        self.assertEqual(browser.js("return document.activeElement.id"), "token")
        self.assertEqual(self.links(), [])
        self.assertEqual(browser.js("return text(document.getElementById('connection'))"), "Signed out")
        self.check("sign in")
        self.enter("coaty_wrong")
        browser.wait_for_text("does not know this token", ".error")
        self.assertEqual(browser.js("return document.activeElement.id"), "token")
        self.assertEqual(browser.js("return document.activeElement.getAttribute('aria-invalid')"), "true")
        self.assertIsNone(browser.js("return sessionStorage.getItem('coaty-token')"))
        self.check("a wrong token")
        self.enter("two words")
        browser.wait_for_text("without spaces", ".error")
        self.enter(ADMIN)
        browser.wait_for_connection()
        self.assertEqual(self.links(), ["#feed", "#alive", "#send", "#routing", "#gateway", "#access"])

    def test_wrong_link_is_explained(self):
        self.open("token=coaty_wrong")
        self.wait_for_form()
        self.browser.wait_for_text("does not know this token", ".error")
        self.assertEqual(self.browser.js("return location.hash"), "")

    def test_sign_out_forgets_the_token(self):
        browser = self.browser
        self.sign_in(ADMIN, "Access")
        browser.wait_for_text("the role admin has no limits")
        self.check("access of an admin")
        browser.press("Sign out")
        self.wait_for_form()
        self.assertIsNone(browser.js("return sessionStorage.getItem('coaty-token')"))
        self.assertFalse(browser.js("return all('.error').length > 0"))

    def test_event_source_sends_the_token_and_resumes_after_a_restart(self):
        browser = self.browser
        self.sign_in(ADMIN)
        script = """
        const { CoatyEventSource } = await import(`${location.origin}/client.js`)
        window.seen = []
        window.stream = new CoatyEventSource("v1/sse/advertise?objectType=com.example.Door", { token: arguments[0] })
        for (const op of ["ok", "event", "error"]) stream.addEventListener(op, () => seen.push(op))
        """
        browser.js(script, ADMIN)
        browser.wait("the stream", "return seen.includes('ok')")
        self.gateway_advertise("South door")
        browser.wait("the event", "return seen.includes('event')")
        self.gateway.kill()
        browser.wait("the end of the connection", "return seen.includes('error')")
        self.gateway.start()
        browser.wait("the stream resumes", "return seen.lastIndexOf('ok') > seen.indexOf('error') && stream.readyState === 1")
        browser.js("stream.close()")
        browser.wait_for_connection()

    def test_curl_commands_do_not_have_the_token(self):
        self.sign_in(ADMIN, "Send")
        command = self.browser.js("""return all('pre[aria-label="Equal curl command"]')[0].textContent""")
        self.assertIn('-H "authorization: Bearer $COATY_GATEWAY_TOKEN"', command)
        self.assertNotIn(ADMIN, command)


class ConfiguredCase(AccessCase):
    """Tests of a gateway whose configuration file is written by `configure`."""

    @classmethod
    def begin(cls):
        cls.broker = cls.stack.broker()
        cls.file = cls.folder / "gateway.yaml"
        cls.configure()
        cls.gateway = cls.stack.gateway(cls.broker, "--config", cls.file)

    @classmethod
    def write(cls, tokens, roles, **settings):
        # YAML contains JSON.
        cls.file.write_text(json.dumps({"access": {"tokens": tokens, "roles": roles}} | settings))


class RoleTests(ConfiguredCase):
    @classmethod
    def configure(cls, names=("viewer", "operator", "guest"), viewer="viewer"):
        tokens = [token_entry(name, token_of(name), viewer if name == "viewer" else name, attributes={"hall": "north"}) for name in names]
        cls.write(tokens, ROLES)

    def send_advertise(self, **members):
        body = self.browser.field("Body")
        body.clear()
        thing = {"coreType": "CoatyObject", "objectType": "com.example.Door", "objectId": "3d6fd1c0-0c56-4f0e-9f1a-6a0b0f7a5c02", "name": "Door"}
        body.send_keys(json.dumps({"object": thing | members}))
        self.browser.press("Send")

    def missing(self):
        return self.browser.wait("the missing grant", """return all('pre[aria-label="Missing grant"]')[0]?.textContent""")

    def ask(self, verb, pattern, name=None, value=None):
        browser = self.browser
        form = browser.js("return all('[aria-label=\"What may I do, and why not?\"] form')[0]")
        for label, option in (("Verb", verb), ("Pattern", pattern)):
            browser.choose(label, option, form)
        if name:
            browser.fill(name, value, form)
        browser.press("Check", form)

    def test_viewer_has_no_publish_controls(self):
        self.sign_in(token_of("viewer"))
        self.assertEqual(self.links(), ["#alive", "#gateway", "#access"])
        # A link to a view that the user may not use leads to the first permitted view.
        self.browser.js("location.hash = '#send'")
        self.browser.go("Gateway")
        self.assertEqual(self.browser.js("return all('[aria-label=\"Slow consumers\"]').map(text)"),
                         ["Slow consumersTo see which clients are slow needs the grant administer: [clients]."])
        self.check("gateway of a viewer")

    def test_operator_has_only_permitted_patterns(self):
        self.sign_in(token_of("operator"), "Send")
        patterns = self.browser.js("return [...all('#send-pattern')[0].options].map((option) => option.value)")
        self.assertEqual(patterns, ["advertise", "discover"])
        self.assertFalse(self.browser.js("return all('.send-calls').length > 0"))

    def test_denied_event_shows_the_missing_grant(self):
        browser = self.browser
        self.sign_in(token_of("operator"), "Send")
        self.send_advertise(hall="north")
        browser.wait_for_text("Published at")
        self.send_advertise(objectType="org.example.Door", hall="north")
        browser.wait_for_text("No grant of your roles allows this.", ".notice")
        self.assertIn('publish: ["advertise"]', self.missing())
        self.assertIn("org.example.Door", self.missing())
        browser.button("Copy grant")
        self.check("a denied event")
        self.send_advertise(hall="south")
        browser.wait_for_text("The condition of operator#2 is not true", ".notice")

    def test_access_explains_decisions(self):
        browser = self.browser
        self.sign_in(token_of("operator"), "Access")
        facts = browser.js("return all('dl.facts')[0].textContent")
        for text in ("operator", "north"):
            self.assertIn(text, facts)
        rows = browser.js("return all('.grants tbody tr').map(text)")
        self.assertEqual(len(rows), 4)
        self.assertIn("operator#2publishadvertisecom.example.*", rows[1])
        self.ask("request", "discover", "Object type or core type", "com.example.Door")
        browser.wait_for_text("Allowed by operator#3.", ".notice")
        self.ask("publish", "advertise", "Object type or core type", "com.example.Door")
        browser.wait_for_text("Allowed where a condition holds by operator#2.", ".notice")
        self.check("a conditional decision")
        self.ask("publish", "channel", "Channel", "news")
        browser.wait_for_text("Denied: no grant of your roles is for this.", ".notice")
        self.assertIn('channels: ["news"]', self.missing())
        self.check("a denied decision")
        self.ask("publish", "raw")
        browser.wait_for_text("This is needed.", ".error")

    def test_user_without_grants_for_views_sees_only_access(self):
        self.sign_in(token_of("guest"))
        self.assertEqual(self.links(), ["#access"])
        self.assertEqual(self.browser.js("return text(shown().querySelector('h1'))"), "Access")

    def test_changed_access_is_reported(self):
        browser = self.browser
        self.sign_in(token_of("viewer"), "Access")
        self.assertFalse(browser.js("return all('.notice').length > 0"))
        try:
            self.configure(viewer="guest")
            self.gateway.reload()
            self.assertEqual(browser.wait("the roles of the viewer", """
            return fetch("v1/access", { headers: { authorization: `Bearer ${arguments[0]}` } })
              .then((answer) => answer.json()).then(({ roles }) => roles[0] === "guest" ? roles : null)
            """, token_of("viewer")), ["guest"])
            browser.go("Gateway")
            browser.go("Access")
            browser.press("Reload the page")
            browser.wait("the links of a guest", "return all('nav a').length === 1")
        finally:
            self.configure()
            self.gateway.reload()

    def test_removed_token_ends_the_console(self):
        self.sign_in(token_of("viewer"))
        try:
            self.configure(["operator"])
            self.gateway.reload()
            self.wait_for_form()
            self.browser.wait_for_text("or it was removed", ".error")
        finally:
            self.configure()
            self.gateway.reload()


class AnonymousTests(AccessCase):
    @classmethod
    def begin(cls):
        cls.broker = cls.stack.broker()
        file = cls.folder / "gateway.yaml"
        roles = {"public": [{"observe": ["advertise"], "types": ["*"]}]}
        file.write_text(json.dumps({"access": {"anonymous": ["public"], "roles": roles}}))
        cls.gateway = cls.stack.gateway(cls.broker, "--config", file, environment={"COATY_GATEWAY_TOKEN": ADMIN})

    def test_anonymous_user_can_sign_in(self):
        browser = self.browser
        self.open()
        browser.wait_for_connection()
        self.assertEqual(self.links(), ["#alive", "#access"])
        browser.go("Access")
        browser.fill("Token", ADMIN)
        browser.press("Sign in")
        browser.wait("the links of an admin", "return all('nav a').length === 6")
        browser.wait_for_connection()

    def test_wrong_link_can_be_ignored(self):
        self.open("token=coaty_wrong")
        self.wait_for_form()
        self.browser.js("all('.sign-in button').find((button) => text(button) === 'Continue without a token').click()")
        self.browser.wait_for_connection()
        self.assertEqual(self.links(), ["#alive", "#access"])


class OpenTests(AccessCase):
    @classmethod
    def begin(cls):
        cls.broker = cls.stack.broker()
        cls.gateway = cls.stack.gateway(cls.broker)

    def test_open_access_is_explained_without_alarm(self):
        browser = self.browser
        self.open()
        browser.wait_for_connection()
        self.assertEqual(browser.js("const user = document.getElementById('user'); return [text(user), user.dataset.kind]"), ["Open access", None])
        browser.go("Access")
        browser.wait_for_text("Everybody who reaches this gateway may do everything.")
        self.assertFalse(browser.js("return all('.notice[data-kind=warn]').length > 0"))
        form = browser.js("return all('[aria-label=\"What may I do, and why not?\"] form')[0]")
        browser.press("Check", form)
        browser.wait_for_text("Allowed: your access is not restricted.", ".notice")
