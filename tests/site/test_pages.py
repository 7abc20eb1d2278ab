"""The files of a site: what they hold, how they are escaped, and where they may be written."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pyarrow.csv as pc
import pyarrow.parquet as pq
import pytest
import yaml

from srs_eval.comparison.compare import compare
from srs_eval.errors import ConfigError
from srs_eval.site.command import command
from srs_eval.site.frame import STYLES, by_version, web_link
from srs_eval.site.pages import write_site
from srs_eval.site.view import view
from srs_eval.submit.registrations import registrations
from srs_eval.submit.submission import Accepted, Board

HOSTILE = "<b>bold</b><img src=x>"


@pytest.fixture(scope="module")
def site(boards: list[Board], tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("site") / "out"
    write_site(boards, out)
    return out


class Tags(HTMLParser):
    """All tags of a page with their attributes."""

    def __init__(self, page: Path) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.feed(page.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))


def test_no_text_of_a_submission_is_markup_or_script(site: Path) -> None:
    pages = list(site.rglob("*.html"))
    assert len(pages) > 15
    for page in pages:
        for tag, attributes in Tags(page).found:
            assert tag not in ("img", "b", "style", "iframe")
            assert not [name for name in attributes if name.startswith("on") or name == "style"]
            address = attributes.get("href") or attributes.get("src") or ""
            assert not re.match(r"(?!https://example\.org|data:,)[a-z]+:", address)
    for script in site.glob("made_up-*/*.js"):
        assert "<" not in script.read_text(encoding="ascii")


def test_every_address_of_the_site_leads_to_a_file(site: Path) -> None:
    for page in site.rglob("*.html"):
        for _, attributes in Tags(page).found:
            address = attributes.get("href") or attributes.get("src") or "#"
            if not address.startswith(("#", "https:", "data:")):
                assert (page.parent / address).is_file(), (page, address)


def test_means_are_those_of_compare(boards: list[Board]) -> None:
    shown = view(boards[0])
    for metric, means in shown.means.items():
        verdict = compare(shown.paired.runs, metric=metric, intersect=True)
        for board, values in zip(verdict.leaderboards, means.values.values(), strict=False):
            assert values[:, 0].tolist() == pytest.approx(
                board.mean.tolist(), rel=1e-15, nan_ok=True
            )
            assert values[:, 1].tolist() == pytest.approx(board.lo.tolist(), rel=1e-15, nan_ok=True)


def test_who_is_ranked(boards: list[Board]) -> None:
    shown = view(boards[0])
    twin = next(model for model in shown.models if model.title == "again")
    assert twin.twin == "model00"
    assert "of few users" not in [model.title for model in shown.models]
    assert any("of few users" in note for note in shown.notes)
    assert any("by name and number" in note for note in shown.notes)


def test_the_newest_version_comes_first(site: Path) -> None:
    text = (site / "index.html").read_text(encoding="utf-8")
    assert text.index("made_up-10_") < text.index("made_up-1_")
    assert sorted(["1.10", "1.9", "2", "1.9b"], key=by_version) == ["1.9", "1.9b", "1.10", "2"]


def test_boards_of_the_same_versions_have_different_titles(site: Path, boards: list[Board]) -> None:
    pages = [(site / each.name / "index.html").read_text(encoding="utf-8") for each in boards]
    titles = [re.search("<h1>(.*)</h1>", page)[1] for page in pages]  # type: ignore[index]
    assert len({*titles}) == len(boards)
    for title, board in zip(titles, boards, strict=True):
        assert f">{title}</a>" in (site / board.name / "compare.html").read_text(encoding="utf-8")


def test_metrics_that_do_not_follow_from_sums_are_known(site: Path, boards: list[Board]) -> None:
    script = (site / boards[0].name / "board.js").read_text(encoding="ascii")
    metrics = json.loads(script.removeprefix('data.receive("board",').removesuffix(");\n"))[
        "metrics"
    ]
    recomputed = {each["name"]: each["recomputed"] for each in metrics}
    assert recomputed["log_loss"]
    assert recomputed["brier_skill"]
    assert not recomputed["auc"]
    assert not recomputed["smece"]


def test_a_verdict_that_an_author_has_typed_is_not_shown(site: Path, boards: list[Board]) -> None:
    for file in (f"{boards[0].name}/board.js", f"{boards[0].name}/models/model01.html"):
        assert "kept" not in (site / file).read_text(encoding="utf-8")


def test_registrations_are_shown_with_their_verdicts_or_why_there_is_none(
    boards: list[Board], tmp_path: Path
) -> None:
    folder = tmp_path / "leaderboard" / "prereg"
    folder.mkdir(parents=True)
    first = boards[1]
    models = {one.name: one for one in first.submissions}
    options = {"data": {"options": {}}, "protocol": {"options": {}}, "seed": None}
    known = [replace(one, about={**one.about, **options}) for one in models.values()]
    board = replace(first, submissions=tuple(known))
    content = {
        "hypothesis": HOSTILE,
        "model": "model00",
        "baseline": "model01",
        "metric": "log_loss",
        "smallest_difference": 0.00001,
        "users": 50,
        "data": "invented",
        "protocol": "made_up",
        "stopping_rule": "50 users",
    }
    nobody = {**content, "model": HOSTILE, "hypothesis": "of nobody"}
    for name, each in {"judged": content, "nobody": nobody}.items():
        (folder / f"{name}.yaml").write_text(yaml.safe_dump(each), encoding="utf-8")
    (folder / "broken.yaml").write_text("hypothesis: <b>", encoding="utf-8")
    found = {one.file: one for one in registrations(folder.parent, [board])}
    judged = found["judged.yaml"].judgement
    assert judged is not None
    write_site([board], tmp_path / "out", registered=[*found.values()])
    page = (tmp_path / "out" / board.name / "index.html").read_text(encoding="utf-8")
    section = page.partition('id="prereg"')[2].partition("</section>")[0]
    assert judged.in_short in section
    assert "of nobody" in section
    assert "no submission to this board has the title &lt;b&gt;" in section
    assert judged.prereg.digest[:16] in section
    badge = f"hypothesis {judged.in_short}"
    models_with = [
        path.stem
        for path in (tmp_path / "out" / board.name / "models").iterdir()
        if badge in path.read_text(encoding="utf-8")
    ]
    assert models_with == ["model00"]
    assert "broken.yaml" in (tmp_path / "out" / "index.html").read_text(encoding="utf-8")
    for file in (tmp_path / "out").rglob("*.html"):
        assert not {tag for tag, _ in Tags(file).found} & {"img", "b"}


def _luminance(colour: str) -> float:
    digits = colour[1:] if len(colour) == 7 else "".join(2 * digit for digit in colour[1:])
    shares = [int(digits[n : n + 2], 16) / 255 for n in (0, 2, 4)]
    linear = [x / 12.92 if x <= 0.04045 else ((x + 0.055) / 1.055) ** 2.4 for x in shares]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def test_text_has_enough_contrast_in_both_themes(site: Path) -> None:
    styles = [(site / "assets" / name).read_text(encoding="utf-8") for name in STYLES]
    found = [re.findall(r"--(\w+): (#\w+)", text) for text in styles]
    light, dark = {}, {}
    for colours in found:  # the dark ones are the second half
        light |= dict(colours[: len(colours) // 2])
        dark |= dict(colours[len(colours) // 2 :])
    for theme in (light, dark):
        for text in ("text", "muted", "link", "blue", "worse"):
            for page in ("page", "bold"):
                one, other = sorted(_luminance(theme[name]) for name in (text, page))
                assert (other + 0.05) / (one + 0.05) >= 4.5, (text, page, theme)
    assert "color: var(--off)" not in styles[1]


def test_raw_scores_are_exact(site: Path, boards: list[Board]) -> None:
    for one in boards[1].submissions:
        raw = site / boards[1].name / "raw"
        written = pc.read_csv(raw / f"{one.name}.csv")
        for metric, values in one.run.scores.items():
            assert written[metric].to_pylist() == values.tolist()
        assert pq.read_table(raw / f"{one.name}.parquet")["log_loss"].to_pylist() == (
            one.run.scores["log_loss"].tolist()
        )


def test_the_same_boards_give_the_same_bytes(
    site: Path, boards: list[Board], tmp_path: Path
) -> None:
    write_site(boards, tmp_path / "again")
    files = [path.relative_to(site) for path in site.rglob("*") if path.is_file()]
    assert len(files) > 50
    assert [
        f for f in files if (site / f).read_bytes() != (tmp_path / "again" / f).read_bytes()
    ] == []


def test_a_site_is_replaced_whole_and_other_folders_are_left_alone(
    boards: list[Board], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "thesis.txt").write_text("years of work")
    with pytest.raises(ConfigError):
        write_site(boards[1:], mine)
    assert [path.name for path in mine.iterdir()] == ["thesis.txt"]
    out = tmp_path / "out"
    write_site(boards[1:], out)
    (out / "old.html").touch()
    write_site(boards[1:], out)
    assert not (out / "old.html").exists()
    before = sorted(out.rglob("*"))
    monkeypatch.setattr("srs_eval.site.pages.model_page", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        write_site(boards[1:], out)
    assert sorted(out.rglob("*")) == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["mine", "out"]


@pytest.mark.parametrize(
    "address", ["javascript:alert(1)", " JaVaScript:x", "data:text/html,x", "//x.org", "http:x"]
)
def test_addresses_of_strangers_lead_to_the_web_alone(address: str) -> None:
    assert "<a" not in web_link(address)
    assert 'href="https://[&quot;onclick' in web_link('https://["onclick=x')


def test_a_board_of_published_rows_ranks_by_name_and_number(boards: list[Board]) -> None:
    given = [
        replace(one, run=replace(one.run, rows=dict.fromkeys(one.run.rows, "")))
        for one in boards[1].submissions
    ]
    shown = view(replace(boards[1], submissions=tuple(given)))
    assert len(shown.models) == len(given)
    assert any("by name and number" in note for note in shown.notes)


def test_mistakes_on_the_command_line_are_said_together(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command([]) == 2
    assert command([str(tmp_path / "nowhere"), f"out={tmp_path / 'out'}"]) == 2
    assert not (tmp_path / "out").exists()
    assert command([str(tmp_path), f"out={tmp_path / 'site'}"]) == 2
    assert command(["--help"]) == 0
    assert "nowhere" in capsys.readouterr().err


def test_a_board_says_which_submissions_no_maintainer_has_accepted(boards: list[Board]) -> None:
    new = [one.run.name for one in boards[0].submissions if not one.history]
    (note,) = (note for note in view(boards[0]).notes if "Not accepted" in note)
    assert f"{len(new)} of {len(boards[0].submissions)} submissions" in note
    accepted = [
        replace(one, history=(Accepted("2026-02-01", "1" * 64, "reported"),))
        for one in boards[1].submissions
    ]
    shown = view(replace(boards[1], submissions=tuple(accepted)))
    assert not any("Not accepted" in note for note in shown.notes)


def test_one_submission_is_in_the_singular(tmp_path: Path, boards: list[Board]) -> None:
    write_site([replace(boards[1], submissions=boards[1].submissions[:1])], tmp_path / "site")
    page = (tmp_path / "site" / boards[1].name / "index.html").read_text("utf-8")
    assert "1 model," in page
    assert "1 models" not in page
