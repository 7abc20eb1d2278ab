"""The site is built without a warning, its pages lead to each other, and figures are drawn."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

import srs_eval

ROOT = Path(__file__).parents[1]

pytestmark = pytest.mark.nightly


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    pytest.importorskip("myst_nb", reason="needs the extra site")
    built = tmp_path_factory.mktemp("site") / "html"
    words = ["-W", "--keep-going", "-q", "-b", "html", "-c", "docs", ".", str(built)]
    subprocess.run([sys.executable, "-m", "sphinx", *words], cwd=ROOT, check=True)
    return built


def test_every_link_within_the_site_leads_somewhere(site):
    found = [page for page in site.rglob("*.html") if "_static" not in page.parts]
    pages = {page: page.read_text("utf-8") for page in found}
    assert len(pages) > 40
    names = {page: {*re.findall(r'\b(?:id|name)="([^"]+)"', text)} for page, text in pages.items()}
    broken = []
    for page, text in pages.items():
        for target in re.findall(r'\b(?:href|src)="(?![a-z]+:)([^"]+)"', text):
            path, _, anchor = target.partition("#")
            place = (page.parent / path.partition("?")[0]).resolve() if path else page
            known = not anchor or place.suffix != ".html" or anchor in names.get(place, ())
            if not place.exists() or not known:
                broken.append((str(page.relative_to(site)), target))
    assert not broken


def test_what_the_gallery_draws_and_public_names_are_there(site):
    gallery, names = (
        (site / "docs" / f"{name}.html").read_text("utf-8") for name in ("gallery", "api")
    )
    assert len(re.findall(r"<img [^>]*_images/[0-9a-f]{40}", gallery)) >= 6
    for name in {*srs_eval.__all__} - {"__version__"}:
        assert re.search(rf'id="srs_eval\.(nouns\.)?{name}"', names), name
