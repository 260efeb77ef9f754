// See docs/browser.md.
