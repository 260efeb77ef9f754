"""The client module on a page of another origin, such as the page in docs/browser.md."""

import re
import subprocess
import urllib.request

import browser
from browser import ConsoleCase
from stack import ROOT, eventually


PACKAGED = """<!doctype html>
<title>offline</title>
<script type="importmap">{ "imports": { "coaty-gateway-client": "./package/client.js" } }</script>
<script type="module">
  import { CoatyClient } from "coaty-gateway-client"
  const client = new CoatyClient("GATEWAY")
  await client.online()
  document.title = client.state
</script>
"""


class ClientTests(ConsoleCase):
    @classmethod
    def begin(cls):
        cls.broker = cls.stack.broker()
        cls.pages = cls.stack.pages()
        cls.gateway = cls.stack.gateway(cls.broker, "--allowed-origins", cls.pages.origin)

    def page(self):
        """Writes the first page of the documentation with the address of this gateway, and returns the address of the page."""
        text = (ROOT / "docs/browser.md").read_text()
        page = re.search(r"^```html\n(<!doctype html>.*?)^```$", text, re.MULTILINE | re.DOTALL)[1]
        self.assertLessEqual(len(page.splitlines()), 22, "the page has about twenty lines")
        (self.folder / "page.html").write_text(page.replace("http://127.0.0.1:8080", self.gateway.url))
        return f"{self.pages.origin}/page.html"

    def open(self, view=None):
        self.browser.open(self.page())

    def test_documented_page_shows_live_events(self):
        name = "North door <b>"
        # Events before the start of the page's subscription are not shown.
        def published():
            self.gateway.advertise(name)
            return self.browser.js("return document.body.innerText.includes(arguments[0])", name)

        eventually("the event on the page", published)

    def test_page_reconnects_after_a_restart_and_shows_the_gap(self):
        self.test_documented_page_shows_live_events()
        self.gateway.kill()
        self.gateway.start()
        self.browser.wait("the gap", "return document.body.innerText.includes('events are missing here')")
        self.gateway.advertise("After the restart")
        self.browser.wait("the event", "return document.body.innerText.includes('After the restart')")
        self.assertEqual(self.browser.problems(browser.NETWORK), [])

    def test_page_imports_the_package_without_a_bundler(self):
        packed = subprocess.run(
            ["npm", "pack", ROOT / "Sources/CoatyGateway/Console", "--silent", "--pack-destination", self.folder],
            check=True,
            capture_output=True,
            text=True,
        )
        # The archive contains one folder, package.
        subprocess.run(["tar", "-xzf", self.folder / packed.stdout.strip(), "-C", self.folder], check=True)
        (self.folder / "packaged.html").write_text(PACKAGED.replace("GATEWAY", self.gateway.url))
        self.browser.open(f"{self.pages.origin}/packaged.html")
        self.browser.wait("the client is online", "return document.title === 'online'")
        self.assertEqual(self.browser.problems(), [])

    def test_only_the_module_may_be_imported_by_other_origins(self):
        for path, is_public in (("/client.js", True), ("/client.d.ts", True), ("/console/app.js", False), ("/", False)):
            with urllib.request.urlopen(self.gateway.url + path) as answer:
                self.assertEqual(answer.headers["Access-Control-Allow-Origin"], "*" if is_public else None, path)
