"""The site in a real browser: sorted, filtered, compared, and restored from an address."""

import functools
import http.server
import threading

import pytest
from browser_page import NEEDED, Page, screenshots

from srs_eval.comparison.compare import compare

pytestmark = NEEDED


@pytest.fixture(scope="module")
def page():
    with screenshots.Browser(width=1300) as browser:
        yield Page(browser)


@pytest.fixture
def board(page, site, boards):
    """Return the folder of the first board; its pages must not complain."""
    yield (site / boards[0].name).as_uri()
    assert page.complaints == []


def test_a_visitor_sorts_filters_and_shares_the_address(page, board):
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
def test_odd_and_hostile_pages_are_drawn_on_a_phone(page, board, path):
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


def test_two_models_are_swapped_and_drawn_user_by_user_from_a_server_too(page, board, site, boards):
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
