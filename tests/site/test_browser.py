"""The site in a real browser: sorted, filtered, compared, and restored from an address."""

import pytest
from browser_page import NEEDED, Page, screenshots

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
    page.click("th[data-key=difference] button")
    assert page.column("difference")[0] == "0"  # of the leader, to itself
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
