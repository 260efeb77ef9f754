"""The page under load: 5,000 events per second for half a minute."""

import statistics
import time

from browser import ConsoleCase
from stack import PATIENCE, eventually

RATE = 5000
SECONDS = 30
# More events than the gateway queues for a page.
BURST_RATE = 20_000
BURST_SECONDS = 6
# Milliseconds between two clicks.
PAUSE = 300
# The targets of the clicks, repeated.
TARGETS = ["pause", "resume", "alive", "feed", "pause", "resume", "gateway", "feed"]
# Maximum milliseconds from a click to the frame that shows its effect, by the acceptance criteria.
MAXIMUM_RESPONSE = 100
# Maximum growth of the heap in bytes, measured after garbage collections: kept events of at most 8 MiB, about as much for their
# rows, and the views that are opened during the test.
MAXIMUM_GROWTH = 24 << 20
# Maximum number of elements in the document. Opened views add elements, and events do not.
MAXIMUM_NODES = 20_000


class LoadTests(ConsoleCase):
    def test_page_responds_to_clicks_and_stays_within_bounds(self):
        browser = self.browser
        # All views are opened before, so that only events can cause growth.
        for view in ("Agents & objects", "Send", "IO routing", "Gateway", "Live feed"):
            browser.go(view)
        browser.js(
            """
            window.responses = []
            addEventListener("click", (event) => {
              const began = event.timeStamp
              requestAnimationFrame(() => {
                const { port1, port2 } = new MessageChannel()
                port1.onmessage = () => responses.push(performance.now() - began)
                port2.postMessage(null)
              })
            }, { capture: true })
            """
        )
        # Other processes of the machine can delay a click, so that one slow run is accepted.
        for _ in range(2):
            slowest = self.run_load()
            if slowest < MAXIMUM_RESPONSE:
                return
        self.fail(f"a click was handled after {slowest:.0f} ms")

    def run_load(self):
        """Checks the bounds and counts under load, and returns the milliseconds of the slowest click."""
        browser = self.browser
        before = self.counts()
        samples = [self.measure()]
        load = self.stack.load(self.broker, RATE, SECONDS)
        began = time.monotonic()
        browser.js("window.responses = []")
        clicks = []
        while load.process.poll() is None and time.monotonic() < began + SECONDS + PATIENCE:
            clicks.append(TARGETS[len(clicks) % len(TARGETS)])
            self.click(clicks[-1])
            # During this pause, the test sends the page no commands, which would take time.
            browser.driver.execute_async_script("setTimeout(arguments[1], arguments[0])", PAUSE)
            browser.wait("the click is handled", "return responses.length >= arguments[0]", len(clicks))
            if len(clicks) % len(TARGETS) == 0:
                samples.append(self.measure())
        responses = browser.js("return responses")
        browser.go("Live feed")
        if clicks[-1] == "pause":
            # A paused feed shows another count.
            browser.press("Resume")
        samples.append(self.measure())
        total, seconds = self.sent(load)
        slowest = max(responses)
        heaps, nodes = zip(*samples)
        print(
            f"\n{total} events in {seconds} s; {len(responses)} clicks: median {statistics.median(responses):.0f} ms, "
            f"maximum {slowest:.0f} ms ({clicks[responses.index(slowest)]}); heap {heaps[0] / (1 << 20):.1f} MiB before, "
            f"then {min(heaps[1:]) / (1 << 20):.1f} to {max(heaps[1:]) / (1 << 20):.1f} MiB; nodes {nodes[0]}, then {max(nodes)}",
            flush=True,
        )
        self.assertGreaterEqual(total / seconds, RATE * 0.98, "the load is slower than intended")
        self.wait_for_all(total, before)
        self.assertGreaterEqual(len(clicks), 30)
        self.assertLess(max(heaps) - heaps[0], MAXIMUM_GROWTH)
        self.assertLess(max(nodes), MAXIMUM_NODES)
        return slowest

    def test_each_event_of_a_burst_is_received_or_reported_as_dropped(self):
        before = self.counts()
        load = self.stack.load(self.broker, BURST_RATE, BURST_SECONDS)
        # A busy page reads no messages.
        self.browser.js("const end = performance.now() + arguments[0]; while (performance.now() < end);", BURST_SECONDS * 1000)
        counted = self.wait_for_all(self.sent(load)[0], before)
        self.assertGreater(counted[1], 0, "the burst is too small: nothing was dropped")
        self.assertLess(self.measure()[0], MAXIMUM_GROWTH)

    def sent(self, load):
        """Returns the number of events that a load has published, and the seconds that it took."""
        sent = load.wait_for_output("the load", r'\{"sent": (\d+), "seconds": ([\d.]+)\}')
        return int(sent[1]), float(sent[2])

    def wait_for_all(self, total, before):
        """Waits until each event is received or reported as dropped, and returns both numbers."""
        counted = (0, 0)

        def are_all_counted():
            nonlocal counted
            counted = self.counts(before)
            return sum(counted) >= total

        try:
            eventually("all events are received, or reported as dropped", are_all_counted, 4 * PATIENCE)
        finally:
            print(f"of {total} events {counted[0]} are received, {counted[1]} reported as dropped", flush=True)
        self.assertEqual(sum(counted), total)
        return counted

    def click(self, target):
        if target in ("pause", "resume"):
            self.browser.press(target.title())
        else:
            self.browser.driver.find_element("css selector", f'nav a[href="#{target}"]').click()

    def counts(self, before=(0, 0)):
        """Returns the numbers of events that the feed has received, and that were reported as dropped."""
        script = """
        const footer = text(document.querySelector(".view-feed .pane-footer"))
        const number = (pattern) => Number((footer.match(pattern)?.[1] ?? "0").replaceAll(",", ""))
        return [number(/([\\d,]+) events?/), number(/([\\d,]+) dropped/)]
        """
        return [now - then for now, then in zip(self.browser.js(script), before)]

    def measure(self):
        """Returns the bytes of the heap after a garbage collection, and the number of elements in the document."""
        self.browser.cdp("HeapProfiler.collectGarbage")
        heap = self.browser.cdp("Runtime.getHeapUsage")["usedSize"]
        return heap, self.browser.js("return document.querySelectorAll('*').length")
