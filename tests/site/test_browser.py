"""The site in a real browser: sorted, filtered, compared, and restored from an address."""

from __future__ import annotations

import functools
import http.server
import json
import runpy
import shutil
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from srs_eval.comparison.compare import compare
from srs_eval.submit.submission import Board

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "google-chrome", "chrome"))), None)
pytestmark = [
    pytest.mark.slow,
    pytest.mark.browser,
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on the PATH"),
]
SCRIPT = Path(__file__).parents[2] / "docs" / "make_screenshots.py"
COMPLAINTS = ("Log.entryAdded", "Runtime.exceptionThrown")


class Page:
    """A browser at one page at a time, with the complaints it makes."""

    def __init__(self, browser: Any) -> None:
        self.browser = browser
        self.complaints: list[Any] = []
        listen = browser._next_message

        def heard() -> Any:
            message = listen()
            if message.get("method") in COMPLAINTS:
                self.complaints.append(message["params"])
            return message

        browser._next_message = heard
        browser.call("Page.removeScriptToEvaluateOnNewDocument", identifier="1")
        browser.call("Log.enable")
        browser.call("Runtime.enable")

    def open(self, address: str) -> None:
        """Open an address, and wait until its script has drawn it."""
        self.browser.call("Page.navigate", url="about:blank")
        self.browser.call("Page.navigate", url=address)
        self.wait("document.documentElement.dataset.ready === 'true'")

    def wait(self, condition: str) -> None:
        end = time.monotonic() + 30
        while not self.browser.evaluate(condition):
            assert time.monotonic() < end, (condition, self.complaints)
            time.sleep(0.05)

    def result(self, expression: str) -> Any:
        """Evaluate an expression; minus signs come back as hyphens."""
        found = self.browser.evaluate(f"JSON.stringify({expression})")
        return None if found is None else json.loads(found.replace("−", "-"))

    def column(self, key: str) -> list[str]:
        """Return the cells of a column of the first table, hidden rows left out."""
        return self.result(
            "[...document.querySelectorAll('#tables table')[0].tBodies[0].rows]"
            ".filter(row => !row.hidden).map(row => row.cells[[...row.closest('table').tHead"
            f".rows[0].cells].findIndex(head => head.dataset.key === '{key}')]"
            f"{'.dataset.value' if key != 'model' else '.firstChild.textContent'})"
        )

    def choose(self, control: str, value: str) -> None:
        """Set a control, as a visitor does."""
        self.result(
            f"(() => {{ const control = document.querySelector('[data-state={control}]');"
            f"control.value = {json.dumps(value)}; control.dispatchEvent(new Event('input')); }})()"
        )
        time.sleep(0.5)

    def click(self, selector: str) -> None:
        self.result(f"document.querySelector({json.dumps(selector)}).click()")


@pytest.fixture(scope="module")
def page() -> Iterator[Page]:
    with runpy.run_path(str(SCRIPT))["Browser"](width=1300) as browser:
        yield Page(browser)


@pytest.fixture
def board(page: Page, site: Path, boards: list[Board]) -> Iterator[str]:
    """Return the folder of the first board; its pages must not complain."""
    yield (site / boards[0].name).as_uri()
    assert page.complaints == []


def test_a_visitor_sorts_filters_and_shares_the_address(page: Page, board: str) -> None:
    page.open(f"{board}/index.html")
    ranked = page.column("mean")
    assert ranked == sorted(ranked, key=float)
    page.click("th[data-key=seconds] button")
    up = page.column("seconds")
    assert up == sorted(up, key=float)
    page.click("th[data-key=seconds] button")
    assert page.column("seconds") == up[::-1]
    every = {*zip(page.column("model"), page.column("difference"), strict=True)}
    page.choose("mark", "verified")
    verified = {*zip(page.column("model"), page.column("difference"), strict=True)}
    assert 0 < len(verified) < len(every)
    assert verified <= every
    page.choose("mark", "")
    for control, value, left in (("q", "AGAIN", "again"), ("pretrained", "only", "model04")):
        page.choose(control, value)
        assert page.column("model") == [left]
        page.choose(control, "")
    for control, value in {"metric": "auc", "weighting": "reviews", "baseline": "model01"}.items():
        page.choose(control, value)
    page.choose("q", "model")
    before = page.result("document.getElementById('tables').innerText")
    assert "to fsrs <b>6</b> & co" in before
    page.open(page.result("location.href"))
    assert page.result("document.getElementById('tables').innerText") == before
    page.open(page.result("document.getElementById('compare').href"))
    assert page.result("location.hash").endswith(
        "weighting=reviews&baseline=model01&a=model00&b=model01"
    )
    page.open(f"{board}/index.html#metric=nonsense&baseline=../../x&sort=__proto__&weighting=%3Cb")
    assert page.result("ui.metricOf({ metrics: [{ name: 'first' }] }).name") == "first"


@pytest.mark.parametrize(
    "path",
    [
        "index.html",
        "models/model01.html#baseline=model02",  # with hostile texts
        "models/model03.html",  # a duplicate
        "models/model04.html#metric=smece",  # which has none
        "models/model08.html#metric=mbe&weighting=reviews",  # the oracle
        "compare.html#a=model01&b=model02",
        "compare.html#a=model04&b=model00&metric=smece",
        "compare.html#a=model00&b=model03",
    ],
)
def test_odd_and_hostile_pages_are_drawn_on_a_phone(page: Page, board: str, path: str) -> None:
    size = {"width": 390, "height": 800, "deviceScaleFactor": 1, "mobile": True}
    page.browser.call("Emulation.setDeviceMetricsOverride", **size)
    page.open(f"{board}/{path}")
    width = page.result("document.documentElement.scrollWidth")
    page.browser.call("Emulation.clearDeviceMetricsOverride")
    assert width <= 390
    shown = page.result("document.querySelector('main').innerText")
    assert not any(word in shown for word in ("NaN", "undefined", "null"))
    assert page.result("document.images.length") == 0
    assert page.result("document.title") != "owned"
    assert "</script><img" in shown or "a=model01" not in path
    assert "0 of 0 that differ, 60 tied" in shown or not path.endswith("b=model03")


def test_two_models_are_swapped_and_drawn_user_by_user_from_a_server_too(
    page: Page, board: str, site: Path, boards: list[Board]
) -> None:
    runs = {one.name: one.run for one in boards[0].submissions}
    verdict = compare([runs["model07"], runs["model00"]], baseline=runs["model07"].name)
    difference = verdict.leaderboard.pairs[1][0]
    lo, hi = difference.interval()
    fetched = "performance.getEntriesByType('resource').map(each => each.name)"
    serve = functools.partial(http.server.SimpleHTTPRequestHandler, directory=site)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), serve) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        address = f"http://127.0.0.1:{server.server_port}"
        page.open(f"{address}/{boards[0].name}/compare.html#a=model00&b=model07")
        text = page.result("document.getElementById('comparison').innerText")
        assert f"{difference.mean:+.4f}" in text
        assert f"{lo:.4f} … {hi:.4f}" in text
        assert not any("/scores/" in name for name in page.result(fetched))
        page.click("#comparison summary")
        page.wait("document.querySelector('#comparison details .dots') !== null")
        dots = page.result("document.querySelector('.dots').getAttribute('d').match(/M/g).length")
        assert dots == len(verdict.users)
        assert all(name.startswith(address) for name in page.result(fetched))
        server.shutdown()
    page.open(f"{board}/compare.html#a=model00&b=model07")
    page.click("#swap")
    page.wait("location.hash.includes('a=model07')")
    page.wait(f"document.body.innerText.replaceAll('−', '-').includes('{-difference.mean:+.4f}')")
    page.open(f"{board}/compare.html#a=model05&b=model07")
    assert page.result("document.querySelectorAll('.note').length") == 2  # another time, published
