"""The files of a site: what they hold, how they are escaped, and where they may be written."""

import re
from dataclasses import replace
from datetime import date
from pathlib import Path

import pyarrow.csv as pc
import pyarrow.parquet as pq
import pytest
import yaml
from cases import elements
from filelock import FileLock

from srs_eval.errors import ConfigError
from srs_eval.site.folder import MARKER, whole_site
from srs_eval.site.pages import by_version, write_site
from srs_eval.submit.registrations import registrations
from srs_eval.text.pages import TEMPLATES

HOSTILE = "<b>bold</b><img src=x>"


PAGES = ("index.html", "{0}/index.html", "{0}/compare.html", "{0}/models/model01.html")
PAGES += ("{0}/models/model03.html", "{0}/models/model04.html", "{0}/board.js")


def test_pages_are_those_of_the_file_and_the_same_each_time(site, boards, tmp_path, golden_text):
    again = tmp_path / "again"
    write_site(boards, again)
    files = [path.relative_to(site) for path in site.rglob("*") if path.is_file()]
    assert len(files) > 50
    assert [f for f in files if (site / f).read_bytes() != (again / f).read_bytes()] == []
    told = []
    for name in PAGES:
        content = (again / name.format(boards[0].name)).read_text("utf-8")
        content = re.sub(r"(?<=[>}]) *(?=<)|(?<=[\]}],)(?=[\[{\"])", "\n", content)
        content = re.sub(r"(\.\d{6})\d+", r"\1", content)  # as far as processors agree
        told.append(f"=== {name}\n{re.sub('sha256-[^;]*', 'sha256', content).strip()}\n")
    golden_text("site", "\n".join(told))


def test_no_text_of_a_submission_is_markup_or_script_and_every_address_leads_to_a_file(site):
    pages = list(site.rglob("*.html"))
    assert len(pages) > 15
    for page in pages:
        for tag, attributes in elements(page.read_text("utf-8")):
            assert tag not in ("img", "b", "style", "iframe")
            assert not [name for name in attributes if name.startswith("on") or name == "style"]
            address = attributes.get("href") or attributes.get("src") or "#"
            assert not re.match(r"(?!https://example\.org|data:,)[a-z]+:", address)
            if not address.startswith(("#", "https:", "data:")):
                assert (page.parent / address).is_file(), (page, address)
    for script in site.glob("made_up-*/**/*.js"):
        assert "<" not in script.read_text(encoding="ascii")


def test_versions_are_sorted_by_their_numbers():
    assert sorted(["1.10", "1.9", "2", "1.9b"], key=by_version) == ["1.9", "1.9b", "1.10", "2"]


def test_registrations_are_shown_with_their_verdicts_or_why_there_is_none(
    boards, tmp_path, golden_text
):
    folder = tmp_path / "leaderboard" / "prereg"
    folder.mkdir(parents=True)
    options = {"data": {"options": {}}, "protocol": {"options": {}}, "seed": None}
    known = [replace(one, about={**one.about, **options}) for one in boards[1].submissions]
    board = replace(boards[1], submissions=tuple(known))
    content = {
        **{"hypothesis": HOSTILE, "model": "model00", "baseline": "model01", "users": 50},
        **{"metric": "log_loss", "smallest_difference": 0.00001, "stopping_rule": "50 users"},
        **{"data": "invented", "protocol": "made_up", "date": date(2026, 1, 31)},
    }
    nobody = {**content, "model": HOSTILE, "hypothesis": "of nobody"}
    for name, each in {"judged": content, "nobody": nobody}.items():
        (folder / f"{name}.yaml").write_text(yaml.safe_dump(each), encoding="utf-8")
    (folder / "broken.yaml").write_text("hypothesis: <b>", encoding="utf-8")
    found = registrations(folder.parent, [board])
    write_site([board], tmp_path / "out", registered=found)
    told = []
    for file in sorted((tmp_path / "out").rglob("*.html")):
        assert not {tag for tag, _ in elements(file.read_text("utf-8"))} & {"img", "b"}
        sections = file.read_text("utf-8").split("<section ")
        told += [f"== {file.name}"] * (len(sections) > 1)
        told += [each.partition("</section>")[0] for each in sections if "prereg" in each[:30]]
        told += re.findall(r"<span [^>]*>hypothesis[^<]*", sections[0])
    golden_text("site_hypotheses", "\n".join(told))


def test_raw_scores_are_exact(site, boards):
    for one in boards[1].submissions:
        raw = site / boards[1].name / "raw"
        written = pc.read_csv(raw / f"{one.name}.csv")
        for metric, values in one.run.scores.items():
            assert written[metric].to_pylist() == values.tolist()
        assert pq.read_table(raw / f"{one.name}.parquet")["log_loss"].to_pylist() == (
            one.run.scores["log_loss"].tolist()
        )


def test_addresses_of_strangers_lead_to_the_web_alone():
    web_link = TEMPLATES.get_template("site/parts.html").module.web_link
    for address in (
        "javascript:alert(1)",
        " JaVaScript:x",
        "data:text/html,x",
        "//x.org",
        "http:x",
    ):
        assert "<a" not in web_link(address)
    assert 'href="https://[&#34;onclick' in web_link('https://["onclick=x')


def left_over(place, *sites):
    """Leave what a killed command leaves beside its site."""
    folder = place.parent / f".{place.name}.abcd1234"
    for name in sites:
        (folder / name).mkdir(parents=True)
        (folder / name / MARKER).touch()
        (folder / name / "index.html").write_text(name)
    return folder


def write(place, text, *, fails=False):
    with whole_site(place) as folder:
        (folder / "index.html").write_text(text)
        if fails:
            raise ValueError("no scores")


def names(folder):
    return {path.name for path in folder.iterdir()}


@pytest.fixture
def place(tmp_path):
    return tmp_path / "site"


def test_a_site_is_replaced_whole_and_other_folders_are_left_alone(place):
    place.mkdir()
    (place / "thesis.txt").write_text("years of work")
    with pytest.raises(ConfigError):
        write(place, "a")
    assert names(place) == {"thesis.txt"}
    (place / "thesis.txt").unlink()
    write(place, "a")
    (place / "old.html").touch()
    write(place, "b")
    assert names(place) == {MARKER, "index.html"}
    with pytest.raises(ValueError, match="no scores"):
        write(place, "c", fails=True)
    assert (place / "index.html").read_text() == "b"
    assert names(place.parent) == {"site"}


def test_what_a_killed_command_left_is_removed_or_put_back_by_the_next(place):
    left_over(place, "new")
    (place.parent / ".site.notes").mkdir()  # of another program
    left_over(place.with_name("other"), "new")
    write(place, "a")
    others = {".site.notes", ".other.abcd1234"}
    assert names(place.parent) == {"site", *others}
    place.rename(place.with_name("away"))
    left_over(place, "old", "new")  # killed between moving the old site away and the new one in
    with pytest.raises(ValueError, match="no scores"):
        write(place, "b", fails=True)
    assert (place / "index.html").read_text() == "old"
    assert names(place.parent) == {"site", "away", *others}


def test_what_another_command_writes_now_is_left_alone(place):
    theirs = left_over(place, "new")
    with FileLock(theirs / ".lock"):
        write(place, "mine")
        assert names(place.parent) == {"site", theirs.name}
    with whole_site(place) as folder:
        write(place, "meanwhile")
        assert folder.is_dir()
        assert not theirs.exists()
    assert names(place.parent) == {"site"}


def test_a_site_stays_where_its_place_cannot_be_taken(place, monkeypatch):
    write(place, "first")
    rename = Path.rename
    monkeypatch.setattr(
        Path, "rename", lambda self, to: rename(self, to if self.name != "new" else to / "a/b")
    )
    with pytest.raises(OSError, match="a/b"):
        write(place, "second")
    assert (place / "index.html").read_text() == "first"
    assert names(place.parent) == {"site"}
