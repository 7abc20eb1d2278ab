"""A real browser for tests: marks of tests that need one, and a page with its complaints."""

import json
import shutil
import time

import pytest
from cases import loaded

IS_THERE = any(map(shutil.which, ("chromium", "google-chrome", "chrome")))
NEEDED = [
    pytest.mark.slow,
    pytest.mark.browser,
    pytest.mark.skipif(not IS_THERE, reason="no Chromium on the PATH"),
]
screenshots = loaded("docs/make_screenshots.py")
COMPLAINTS = ("Log.entryAdded", "Runtime.exceptionThrown")


def in_browser(test):
    """Mark a test that needs a browser."""
    for mark in NEEDED:
        test = mark(test)
    return test


class Page:
    """A browser at one page at a time, with the complaints it makes."""

    def __init__(self, browser):
        self.browser = browser
        self.complaints = []
        listen = browser._next_message

        def heard():
            message = listen()
            if message.get("method") in COMPLAINTS:
                self.complaints.append(message["params"])
            return message

        browser._next_message = heard
        browser.call("Page.removeScriptToEvaluateOnNewDocument", identifier="1")
        browser.call("Log.enable")
        browser.call("Runtime.enable")

    def open(self, address):
        """Open an address, and wait until its script has drawn it."""
        self.browser.call("Page.navigate", url="about:blank")
        self.browser.call("Page.navigate", url=address)
        self.wait("document.documentElement.dataset.ready === 'true'")

    def wait(self, condition):
        end = time.monotonic() + 30
        while not self.browser.evaluate(condition):
            assert time.monotonic() < end, (condition, self.complaints)
            time.sleep(0.05)

    def result(self, expression):
        """Evaluate an expression; minus signs come back as hyphens."""
        found = self.browser.evaluate(f"JSON.stringify({expression})")
        return None if found is None else json.loads(found.replace("−", "-"))

    def column(self, key):
        """Return the cells of a column of the first table, hidden rows left out."""
        return self.result(
            "[...document.querySelectorAll('#tables table')[0].tBodies[0].rows]"
            ".filter(row => !row.hidden).map(row => row.cells[[...row.closest('table').tHead"
            f".rows[0].cells].findIndex(head => head.dataset.key === '{key}')]"
            f"{'.dataset.value' if key != 'model' else '.firstChild.textContent'})"
        )

    def choose(self, control, value):
        """Set a control, as a visitor does."""
        self.result(
            f"(() => {{ const control = document.querySelector('[data-state={control}]');"
            f"control.value = {json.dumps(value)}; control.dispatchEvent(new Event('input')); }})()"
        )
        time.sleep(0.5)

    def click(self, selector):
        self.result(f"document.querySelector({json.dumps(selector)}).click()")
