"""The site in a real browser: sorted, filtered, compared, and restored from an address."""

from __future__ import annotations

import functools
import http.server
import importlib.util
import json
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


class Page:
    """A browser at one page at a time, with the complaints it makes."""

    def __init__(self, browser: Any) -> None:
        self.browser = browser
        self.complaints: list[Any] = []
        listen = browser._next_message

        def heard() -> Any:
            message = listen()
            if message.get("method") in ("Log.entryAdded", "Runtime.exceptionThrown"):
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
        """Wait until a condition holds."""
        end = time.monotonic() + 30
        while not self.browser.evaluate(condition):
            assert time.monotonic() < end, (condition, self.complaints)
            time.sleep(0.05)

    def result(self, expression: str) -> Any:
        """Evaluate an expression, or what it promises; NaN comes back as None."""
        text = f"(async () => JSON.stringify(await ({expression})))()"
        found = self.browser.call(
            "Runtime.evaluate", expression=text, awaitPromise=True, returnByValue=True
        )
        return json.loads(found["result"]["value"])

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
            " ?? null"
        )
        time.sleep(0.5)

    def click(self, selector: str) -> None:
        """Click."""
        self.result(f"document.querySelector({json.dumps(selector)}).click() ?? null")


@pytest.fixture(scope="module")
def page() -> Iterator[Page]:
    specification = importlib.util.spec_from_file_location("make_screenshots", SCRIPT)
    assert specification is not None
    assert specification.loader is not None
    screenshots = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(screenshots)
    with screenshots.Browser(width=1300) as browser:
        yield Page(browser)


@pytest.fixture
def board(page: Page, site: Path, boards: list[Board]) -> Iterator[str]:
    """Open the first board; the page must not complain."""
    address = (site / boards[0].name / "index.html").as_uri()
    page.open(address)
    yield address
    assert page.complaints == []


def test_a_visitor_sorts_filters_and_shares_the_address(page: Page, board: str) -> None:
    ranked = page.column("mean")
    assert ranked == sorted(ranked, key=float)
    page.click("th[data-key=seconds] button")
    up = page.column("seconds")
    assert up == sorted(up, key=float)
    page.click("th[data-key=seconds] button")
    assert page.column("seconds") == up[::-1]
    every = dict(zip(page.column("model"), page.column("difference"), strict=True))
    page.choose("mark", "verified")
    verified = dict(zip(page.column("model"), page.column("difference"), strict=True))
    assert 0 < len(verified) < len(every)
    assert verified.items() <= every.items()
    page.choose("mark", "")
    page.choose("q", "AGAIN")
    assert page.column("model") == ["again"]
    page.choose("q", "")
    page.choose("pretrained", "only")
    assert page.column("model") == ["model04"]
    page.choose("pretrained", "")
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
    page.open(f"{board}#metric=nonsense&baseline=../../x&sort=__proto__&weighting=%3Cb%3E")
    assert page.result("ui.metricOf({ metrics: [{ name: 'first' }] }).name") == "first"


@pytest.mark.parametrize(
    "path",
    [
        "index.html",
        "models/model00.html",
        "models/model01.html#baseline=model02",  # with hostile texts
        "models/model02.html",
        "models/model03.html",  # a duplicate
        "models/model04.html#metric=smece",  # which has none
        "models/model08.html#metric=mbe&weighting=reviews",  # the oracle
        "compare.html#a=model01&b=model02",
        "compare.html#a=model04&b=model00&metric=smece",
        "compare.html#a=model00&b=model03",
    ],
)
def test_odd_and_hostile_pages_are_drawn_on_a_phone(page: Page, board: str, path: str) -> None:
    size = {"height": 800, "deviceScaleFactor": 1}
    page.browser.call("Emulation.setDeviceMetricsOverride", width=390, mobile=True, **size)
    page.open(board.replace("index.html", path))
    width = page.result("document.documentElement.scrollWidth")
    page.browser.call("Emulation.clearDeviceMetricsOverride")
    assert width <= 390
    shown = page.result("document.querySelector('main').innerText")
    assert "NaN" not in shown
    assert "undefined" not in shown
    assert page.result("document.images.length") == 0
    assert page.result("document.title") != "owned"
    assert "</script><img" in shown or "a=model01" not in path
    assert "0 of 0 that differ, 60 tied" in shown or not path.endswith("b=model03")


def test_two_models_are_swapped_and_their_users_are_drawn_when_opened(
    page: Page, board: str, boards: list[Board]
) -> None:
    runs = {one.name: one.run for one in boards[0].submissions}
    verdict = compare([runs["model07"], runs["model00"]], baseline=runs["model07"].name)
    difference = verdict.leaderboard.pairs[1][0]
    lo, hi = difference.interval()
    page.open(board.replace("index.html", "compare.html#a=model00&b=model07"))
    text = page.result("document.getElementById('comparison').innerText").replace("−", "-")
    assert f"{difference.mean:+.4f}" in text
    assert f"{lo:.4f} … {hi:.4f}" in text
    fetched = (
        "performance.getEntriesByType('resource').some(each => each.name.includes('/scores/'))"
    )
    assert page.result(fetched) is False
    page.click("#comparison summary")
    page.wait("document.querySelector('#comparison details .dots') !== null")
    dots = page.result("document.querySelector('.dots').getAttribute('d').match(/M/g).length")
    assert dots == len(verdict.users)
    page.click("#swap")
    page.wait("location.hash.includes('a=model07')")
    page.wait(f"document.body.innerText.replaceAll('−', '-').includes('{-difference.mean:+.4f}')")
    page.open(board.replace("index.html", "compare.html#a=model05&b=model07"))
    notes = page.result("[...document.querySelectorAll('.note')].map(each => each.innerText)")
    assert len(notes) == 2  # of another time, and published


def test_a_server_serves_it_too_and_nothing_else_is_fetched(
    page: Page, board: str, site: Path, boards: list[Board]
) -> None:
    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            pass

    with http.server.ThreadingHTTPServer(
        ("127.0.0.1", 0), functools.partial(Quiet, directory=site)
    ) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        address = f"http://127.0.0.1:{server.server_port}"
        page.open(f"{address}/{boards[0].name}/index.html")
        names = page.result("performance.getEntriesByType('resource').map(each => each.name)")
        assert all(name.startswith(address) for name in names)
        assert page.column("model")
        server.shutdown()
