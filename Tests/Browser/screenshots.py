#!/usr/bin/env python3
"""Takes screenshots of the console with live data.

usage: screenshots.py [IMAGES]

With IMAGES, it takes the images of the README. Without, it takes every view, in both color schemes and sizes, and writes the
screenshots to the folder `screenshots` of the run.
"""

import pathlib
import shutil
import subprocess
import sys

import stack
from browser import NARROW, OUT, PROGRAMS, WIDE, Browser

NAMESPACE = stack.TEMPERATURE_NAMESPACE
APPEARANCES = [(name, size, scheme) for name, size in (("wide", WIDE), ("narrow", NARROW)) for scheme in ("light", "dark")]
VIEWS = ["feed", "alive", "send", "routing", "gateway", "access"]
# Milliseconds between two values of the example's sources.
UPDATE_RATE = 1000


class Scene:
    """A network with events, and a page that has received them."""

    def __init__(self, folder):
        shutil.rmtree(folder, ignore_errors=True)
        self.stack = stack.Stack(folder, PROGRAMS)
        try:
            self.broker = self.stack.broker()
            self.gateway = self.stack.router(self.broker)
            self.browser = Browser(folder)
        except BaseException:
            self.stack.stop()
            raise

    def stop(self):
        self.browser.quit()
        self.stack.stop()

    def begin(self):
        self.browser.open(self.gateway.url)
        self.browser.wait_for_connection()
        for state in ("normal", "emergency"):
            self.stack.example(self.broker, "io-routing-actor", state, UPDATE_RATE)
        self.stack.example(self.broker, "io-routing-sources", UPDATE_RATE)
        agent = self.stack.agent(self.broker, NAMESPACE)
        self.publish_events(agent)
        self.browser.wait_for_row("com.example.add")

    def publish_events(self, agent):
        gateway = self.gateway
        doors = [gateway.advertise(f"{side} door", "com.example.Door", isOpen=False) for side in ("North", "South", "Garden")]
        lamp = gateway.advertise("Lamp over the stairs", "com.example.Lamp", isOn=False, brightness=40)
        thing = {"coreType": "CoatyObject", "objectType": "com.example.Robot", "objectId": agent.id[:-4] + "0001", "name": "Fork lift 2"}
        agent.instruct(publish="advertise", data={"object": thing | {"battery": 81, "isCharging": False}})
        gateway.curl("POST", "/v1/discover?limit=2&timeout=1000", {"objectTypes": ["com.example.Thing"]})
        gateway.curl("POST", "/v1/query?limit=1", {"objectTypes": ["com.example.Thing"]})
        agent.instruct(publish="channel", channelId="news", data={"object": thing | {"name": "Shift begins"}})
        for door in doors[:2]:
            gateway.advertise(door["name"], door["objectType"], objectId=door["objectId"], isOpen=True)
        gateway.advertise(lamp["name"], lamp["objectType"], objectId=lamp["objectId"], isOn=True, brightness=90)
        gateway.curl("POST", "/v1/deadvertise", {"objectIds": [doors[2]["objectId"]]})
        gateway.curl("POST", "/v1/call/com.example.add?limit=1", {"parameters": [3, 4]})

    def go(self, view):
        """Opens a view, and waits until it shows data."""
        browser = self.browser
        browser.driver.find_element("css selector", f'nav a[href="#{view}"]').click()
        browser.wait(f"the view {view}", "return shown()?.classList.contains(arguments[0])", f"view-{view}")
        getattr(self, f"show_{view}")()

    def show_feed(self):
        self.browser.wait_for_row("com.example.add")

    def show_alive(self):
        self.browser.choose_objects()
        self.browser.wait_for_row("Lamp over the stairs", "Alive")

    def show_send(self):
        browser = self.browser
        if browser.js("""return all('[aria-label="Answers"] > li').length > 0"""):
            return
        card = browser.find(".send-calls")
        browser.fill("Operation", "com.example.ask", card)
        browser.press("Answer calls", card)
        browser.wait_for_text("Waiting for calls")
        self.gateway.start_curl("POST", "/v1/call/com.example.ask?timeout=30000", {"parameters": {"question": "Which door?"}})
        browser.wait("the call", """return all('[aria-label="Calls"] > li').length > 0""")
        browser.choose("Pattern", "discover")
        form = browser.find("form[aria-label=Event]")
        browser.fill("Timeout (ms)", "1000", form)
        browser.press("Send")
        browser.wait_for_text("timeout after 1,000 ms")

    def show_routing(self):
        script = """
        const values = all("table[aria-label=Associations] tbody tr").map((row) => text(row.lastElementChild))
        return values.length === 3 && values.slice(0, 2).every((value) => /^[0-9.]+$/.test(value))
        """
        self.browser.wait("values", script)

    def show_gateway(self):
        self.browser.wait("rates", """return all(".spark-line").some((line) => (line.getAttribute("d") ?? "").length > 60)""")

    def show_access(self):
        self.browser.find('[aria-label="What may I do, and why not?"]')

    def open_detail(self, view):
        """Opens the detail of a view, and returns whether it has one."""
        browser = self.browser
        if view == "feed":
            # Otherwise, rows could move before the click.
            browser.press("Pause")
            browser.wait_for_row("com.example.add").click()
        elif view == "alive":
            browser.wait_for_row("Lamp over the stairs", "Alive").click()
        elif view == "routing":
            browser.choose("Source", "Temperature Source 1")
            browser.choose("Actor", "Temperature Actor 2")
            browser.press("Why?")
            browser.wait("the mark", "return all('svg [data-mark=explained]').length === 1")
        elif view == "access":
            browser.choose("Pattern", "channel")
            browser.fill("Channel", "news")
            browser.press("Check")
            browser.wait_for_text("Allowed", ".notice")
            browser.js("all('.outcome .notice')[0].scrollIntoView({ block: 'end' })")
        else:
            return False
        return True

    def open_help(self):
        """Opens the dialog with the keys and the color scheme."""
        self.browser.press_keys("?")
        self.browser.wait("the dialog", "return document.querySelector('dialog').open")

    def close_detail(self, view):
        if view in ("feed", "alive"):
            self.browser.press("Close")
        if view == "feed" and self.browser.js("return all('button', shown()).some((button) => text(button) === 'Resume')"):
            self.browser.press("Resume")


def take_all(folder):
    shutil.rmtree(folder, ignore_errors=True)
    scene = Scene(OUT / "Screenshots")
    browser = scene.browser
    try:
        browser.open(scene.gateway.url)
        browser.wait_for_connection()
        for view in VIEWS:
            browser.driver.find_element("css selector", f'nav a[href="#{view}"]').click()
            for name, size, scheme in APPEARANCES:
                browser.set_appearance(size, scheme)
                snap(browser, folder / f"{view}-empty-{name}-{scheme}.png")
            browser.set_appearance(WIDE, "light")
        scene.begin()
        for view in VIEWS:
            scene.go(view)
            for name, size, scheme in APPEARANCES:
                browser.set_appearance(size, scheme)
                snap(browser, folder / f"{view}-{name}-{scheme}.png")
            for name, size, scheme in APPEARANCES:
                browser.set_appearance(size, scheme)
                if scene.open_detail(view):
                    snap(browser, folder / f"{view}-opened-{name}-{scheme}.png")
                    scene.close_detail(view)
            browser.set_appearance(WIDE, "light")
        scene.go(VIEWS[0])
        scene.open_help()
        for name, size, scheme in APPEARANCES:
            browser.set_appearance(size, scheme)
            snap(browser, folder / f"help-{name}-{scheme}.png")
        print(f"{len(list(folder.iterdir()))} screenshots: {folder}")
    finally:
        scene.stop()


def take_for_readme(folder):
    folder.mkdir(parents=True, exist_ok=True)
    scene = Scene(OUT / "Screenshots")
    try:
        scene.begin()
        scene.go("feed")
        scene.open_detail("feed")
        snap(scene.browser, folder / "console-feed.png")
        scene.close_detail("feed")
        scene.go("routing")
        snap(scene.browser, folder / "console-routing.png")
    finally:
        scene.stop()
    for name in ("console-feed.png", "console-routing.png"):
        image = folder / name
        subprocess.run(["pngquant", "--force", "--strip", "--skip-if-larger", "--output", image, "128", image], check=False)
        print(f"{image}: {image.stat().st_size // 1024} KiB")


def snap(browser, path):
    # The size and the scheme take effect within two frames.
    browser.driver.execute_async_script("requestAnimationFrame(() => requestAnimationFrame(arguments[arguments.length - 1]))")
    browser.screenshot(path)


def main():
    if len(sys.argv) > 1:
        take_for_readme(pathlib.Path(sys.argv[1]))
    else:
        take_all(OUT / "screenshots")


main()
