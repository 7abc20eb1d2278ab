"""Submissions that are refused, each for its reason, and nothing of them is run."""

from __future__ import annotations

import math
import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from contract import NAMES, built, config_of
from omegaconf import OmegaConf
from submissions import resum, retable, rewrite

from srs_eval.algorithms.recurrent.weights import digests_of
from srs_eval.data.synthetic import SyntheticUsers
from srs_eval.protocol.srs_benchmark import SrsBenchmark
from srs_eval.submit.checking import Asked, check
from srs_eval.submit.command import command
from srs_eval.submit.declared import DECLARED, _unstarted
from srs_eval.submit.logs_check import scored_rows, source_of
from srs_eval.submit.problems import Problem, SubmissionError
from srs_eval.submit.reading import read_leaderboard
from srs_eval.submit.verifying import accept, verify
from srs_eval.submit.writing import fingerprint_of

ABOUT, RESULTS, PREDICTIONS = "submission.yaml", "results.parquet", "predictions.parquet"
Change = Callable[[Path], object]


def about(**values: Any) -> Change:
    """Set values of ``submission.yaml``; ``data__users`` is one inside another."""

    def change(content: dict[str, Any]) -> None:
        for key, value in values.items():
            *outer, last = key.split("__")
            inside = content
            for name in outer:
                inside = inside[name]
            inside[last] = value

    return lambda folder: rewrite(folder, change)


def added(content: str) -> Change:
    """Add lines to ``submission.yaml``."""
    return lambda folder: text(ABOUT, (folder / ABOUT).read_text("utf-8") + content)(folder)


def text(file: str, content: str) -> Change:
    return lambda folder: (folder / file).write_text(content, "utf-8")


def cell(column: str, value: Any) -> Change:
    """Set the value of the first user; a callable computes it from that of the run."""

    def change(columns: dict[str, Any]) -> None:
        old = columns[column][0]
        columns[column][0] = value(old) if callable(value) else value

    return table(change)


def table(change: Callable[[dict[str, Any]], object]) -> Change:
    return lambda folder: retable(folder, change)


def column(*names: str, of: Any) -> Change:
    """Set columns, of which all users have the same value."""
    return table(lambda columns: columns.update({name: [of] * 3 for name in names}))


def sums(begin: str, change: Callable[[Any], object]) -> Change:
    """Change sums [users, numbers] of which the name begins so."""
    return table(lambda columns: resum(columns, begin, change))


def predictions(change: Callable[[pa.Table], pa.Table]) -> Change:
    def changed(folder: Path) -> None:
        pq.write_table(change(pq.read_table(folder / PREDICTIONS)), folder / PREDICTIONS)

    return changed


def with_link(folder: Path) -> None:
    file = folder / RESULTS
    file.rename(folder.parent / "elsewhere")
    file.symlink_to(folder.parent / "elsewhere")


def without_a_user(folder: Path) -> None:
    reviews = pq.read_table(folder / RESULTS).column("reviews").to_pylist()
    retable(folder, lambda columns: [columns.update({k: v[1:]}) for k, v in columns.items()])
    rewrite(folder, lambda a: a["data"].update(users=len(reviews) - 1, reviews=sum(reviews[1:])))


def without(kept: Callable[[str], bool]) -> Change:
    """Leave columns out."""

    def change(columns: dict[str, Any]) -> None:
        for name in [name for name in columns if not kept(name)]:
            del columns[name]

    return table(change)


def learned_from_them(folder: Path) -> None:
    source = SyntheticUsers(users=3, seed=5, size_scale=0.02, max_reviews=900)
    seen = [fingerprint_of(digests_of(source.read(user))) for user in (1, 2, 3)]
    about(pretrained_on={"description": "a set", "users": [each for each in seen if each]})(folder)


SECRET = {
    "_target_": "srs_eval.data.sql.SqlQuery",
    "query": "SELECT CAST(content AS INT) AS card FROM read_text('/etc/hostname')",
}
FACTS = {"user", "reviews", "rows", "auc"}
BAD: dict[str, tuple[str, Change]] = {
    # name: kind of a problem, change of the submission `avg`
    "a link": ("link", with_link),
    "a program": ("name", text("run.sh", "exit")),
    "a missing file": ("missing", lambda folder: (folder / RESULTS).unlink()),
    "a file of 2 GB": ("size", lambda folder: os.truncate(folder / RESULTS, 2_000_000_000)),
    "a large description": ("size", added("# " + "x" * 2_000_000)),
    "no keys": ("type", text(ABOUT, "- 1\n")),
    "a misspelt key": ("unknown", added("licenc: MIT\n")),
    "a key twice": ("repeated", added("licence: MIT\n")),
    "an alias": ("unreadable", added("x: &a [1]\ny: [*a, *a]\n")),
    "deep brackets": ("unreadable", added(f"x: {'[' * 500}{']' * 500}\n")),
    "very many values": ("unreadable", added(f"x: [{'1,' * 40_000}]\n")),
    "a tag of Python": ("unreadable", added("x: !!python/object/apply:os.abort []\n")),
    "a tag in options": ("unreadable", added("x: !!omap [{a: <b>}]\n")),
    "a number of 5,000 digits": ("unreadable", added(f"x: 0x{'F' * 5_000}\n")),
    "a number to the base of 60": ("unreadable", added("x: 1:30\n")),
    "a number without end": ("range", about(seed=10**400)),
    "NaN in the description": ("range", about(seconds_per_user=math.nan)),
    "no authors": ("gap", about(authors=[], description=None)),
    "a script in the title": ("text", about(model="<script>alert(1)</script>")),
    "a title that turns its direction": ("text", about(model="fsrs\u202e6")),
    "markup in an option": ("text", about(data__options__x=[["<script>"]])),
    "another version": ("version", about(protocol__version="2")),
    "another version of the data": ("version", about(data__version="3")),
    "another name of the data": ("version", about(data__name="revlogs")),
    "a protocol of others": ("version", about(protocol__options={"_target_": "evil.SrsBenchmark"})),
    "a protocol that cannot be built": ("code", about(protocol__options__x=1)),
    "a billion fits": ("code", about(protocol__options__base={"refits": 10**9})),
    "a billion users": ("users", about(data__options__users=10**9)),
    "no options": ("missing", about(protocol__options={})),
    "a name too long for a folder": (
        "name",
        about(
            protocol={"name": "p" * 120, "version": "v" * 120, "options": {"_target_": "x.Y"}},
            data__name="d" * 120,
            data__options={"_target_": "x.Y"},
        ),
    ),
    "fewer users than there are": ("users", about(data__users=2)),
    "other logs": ("rows", about(data__fingerprint="0" * 16)),
    "users who were learned from": ("overlap", learned_from_them),
    "no parquet": ("unreadable", text(RESULTS, "PAR1")),
    "too many columns": ("size", column(*(f"m{n}" for n in range(600)), of=0.5)),
    "a column that is no metric": ("unknown", column("../x", "log_loss_true", "sums.x", of=0.5)),
    "text for numbers": ("type", column("auc", of="high")),
    "names of a megabyte": ("text", column("user", of="x" * 1_000_000)),
    "markup in a user": ("text", table(lambda columns: columns.update(user=["<img>", "2", "3"]))),
    "texts for users that are numbers": (
        "users",
        table(lambda columns: columns.update(user=["1", "2", "3"])),
    ),
    "a user twice": ("repeated", cell("user", 2)),
    "a user left out": ("users", without_a_user),
    "a digest that is none": ("type", cell("rows", "../../etc/passwd")),
    "a digest of two megabytes": ("size", column("rows", of="0" * 2_000_000)),
    "no digest of rows": ("reviews", cell("rows", "")),
    "rows of other reviews": ("rows", cell("rows", "0" * 16)),
    "more reviews": ("reviews", cell("reviews", lambda n: n + 1)),
    "more fits that failed than fits": ("range", cell("fit.failed", 99)),
    "Inf": ("range", cell("auc", math.inf)),
    "out of bounds": ("range", cell("auc", 1 + 1e-6)),
    "NaN in place of a bad score": ("range", cell("log_loss", math.nan)),
    "NaN of a metric with bounds": ("range", cell("rmse_bins", math.nan)),
    "a missing value": ("missing", cell("brier", None)),
    "no log loss": ("missing", without(FACTS.__contains__)),
    "no sums": ("missing", without(lambda name: not name.startswith("sums."))),
    "a better loss": ("sums", cell("log_loss", lambda loss: loss * 0.99)),
    "impossible bins": ("sums", cell("rmse_bins", 0.99)),
    "sums that contradict each other": (
        "sums",
        sums("EqualBinSums", lambda wide: np.add(wide[0, 1:40:2], 1, out=wide[0, 1:40:2])),
    ),
    "sums that are infinite": ("range", sums("ScoreSums", lambda wide: wide[0].fill(np.inf))),
    "counts that are NaN": ("range", sums("Threshold", lambda wide: wide.fill(np.nan))),
    "counts of another model": (
        "sums",
        sums("Threshold", lambda wide: wide.__setitem__((0, 2), 1)),
    ),
    "scores that are not of the predictions": (
        "predictions",
        cell("rmse_bins", lambda score: score * 0.99),
    ),
    "predictions of another model": (
        "predictions",
        predictions(
            lambda t: t.set_column(t.schema.names.index("p"), "p", pa.array([0.5] * len(t)))
        ),
    ),
    "a column of predictions twice": (
        "repeated",
        predictions(lambda found: found.append_column("p", found.column("p"))),
    ),
    "predictions without scores": (
        "reviews",
        predictions(
            lambda t: pa.concat_tables([t, t.set_column(0, "user", pa.array([99] * len(t)))])
        ),
    ),
}


def in_words(folder: Path, problems: list[Problem]) -> str:
    lines = [f"{each.kind}: {each}" for each in problems]
    text = "".join(f"{line}\n" for line in lines).replace(str(folder), "board").replace("\\", "/")
    text = re.sub(r"(\.\d{9})\d+", r"\1", text)  # as far as processors agree
    text = re.sub(r"\b2,000,\d{3} bytes", "2 MB", text)
    return re.sub(r"\((Arrow\w+): .*\)", r"(\1)", text)


def test_each_is_refused_for_its_reason_in_the_words_of_the_file(
    good: Path, tmp_path: Path, golden_text: Callable[[str, str], None]
) -> None:
    told, asked = [], Asked()
    for number, (name, (kind, change)) in enumerate(BAD.items()):
        board = Path(shutil.copytree(good, tmp_path / str(number)))
        change(board / "avg")
        found = check([board], asked).problems
        assert kind in [problem.kind for problem in found], (name, found)
        assert all(problem.file.parent.name != "constant" for problem in found), name
        told.append(f"{name}\n{in_words(board, found)}")
    golden_text("bad_submissions", "\n".join(told))


def test_no_query_and_no_class_of_others_is_built_without_trust(
    board: Path, tmp_path: Path
) -> None:
    path = tmp_path / "logs.duckdb"
    path.touch()
    for options in (SECRET, {"_target_": "submissions.Source", "path": "x"}):
        about(data__options=options, data__name="x", data__version="1")(board / "avg")
        found = check([board / "avg"], Asked(path=path)).problems
        assert [(each.kind, each.where) for each in found] == [("code", "data.options")]
        with pytest.raises(SubmissionError) as error:
            verify(board / "avg", Asked(path=path))
        assert [each.where for each in error.value.found] == ["data.options"]


def test_only_options_that_say_how_to_read_are_taken(board: Path) -> None:
    reader = {"_target_": "srs_eval.data.table.ReviewTable", "path": "/etc/passwd"}
    columns = {"_target_": "srs_eval.data.table_options.Columns", "card": "c"}

    def source(options: dict[str, Any]) -> Any:
        about(data__options=options, data__name="x", data__version="1")(board / "avg")
        (submission,) = check([board / "avg"], Asked(logs=False)).submissions
        return source_of(submission, board / "mine.csv", trust=False)

    assert source({**reader, "columns": columns}).path == str(board / "mine.csv")
    for further in ({"query": "q"}, {"columns": {**columns, "_target_": "os.system"}}):
        with pytest.raises(SubmissionError):
            source({**reader, **further})


def test_reading_stops_when_many_users_differ(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("srs_eval.submit.logs_check._MOST_UNLIKE", 2)
    source = SyntheticUsers(users=10_000, seed=5, size_scale=0.02, max_reviews=900)
    found = scored_rows(source, SrsBenchmark(), {1: 1})
    assert (found.fingerprint, [*found.rows]) == ("", [1, 2])


def test_recalled_reviews_are_those_of_the_logs(board: Path) -> None:
    forged = sums("ScoreSums", lambda wide: np.subtract(wide[:, 1], 1, out=wide[:, 1]))
    forged(board / "constant")
    found = check([board / "constant"]).problems
    assert any("the logs have" in problem.advice for problem in found)


def test_an_error_of_one_submission_hides_no_others(
    board: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(folder: Path, results: object) -> Any:
        raise KeyError(folder)

    monkeypatch.setattr("srs_eval.submit.checking.prediction_problems", fails)
    cell("auc", math.inf)(board / "constant")
    found = {(each.kind, each.file.name) for each in check([board]).problems}
    assert found == {("unreadable", "avg"), ("range", RESULTS)}


def test_every_problem_is_reported_at_once(board: Path) -> None:
    for name in ("a script in the title", "Inf", "no authors", "out of bounds"):
        BAD[name][1](board / "avg")
    about(licence=3)(board / "constant")
    with pytest.raises(SubmissionError) as error:
        read_leaderboard(board)
    kinds = [(problem.kind, problem.file.parent.name) for problem in error.value.found]
    assert sorted(kinds) == [("range", "avg"), ("text", "avg"), ("type", "constant")]


@pytest.mark.parametrize("name", ["-rf", ".hidden", "a b", "x" * 61, "a\nb", "prereg"])
def test_a_folder_has_a_plain_name(board: Path, name: str) -> None:
    (board / "avg").rename(board / name)
    assert "name" in [problem.kind for problem in check([board / name]).problems]


def test_a_folder_is_no_link(board: Path) -> None:
    (board / "again").symlink_to(board / "avg")
    assert [problem.kind for problem in check([board]).problems] == ["link"]
    assert [problem.kind for problem in check([board / "again"]).problems] == ["link"]


@pytest.mark.parametrize(
    ("name", "title", "kinds"),
    [
        ("AVG", "another", {"name", "duplicate"}),
        ("copy", "\uff21VG", {"repeated", "duplicate"}),
    ],
)
def test_a_copy_is_not_accepted(board: Path, name: str, title: str, kinds: set[str]) -> None:
    accept(board / "avg", None, "")
    shutil.copytree(board / "avg", board / name)
    about(model=title)(board / name)
    with pytest.raises(SubmissionError) as error:
        accept(board / name, None, "")
    assert {each.kind for each in error.value.found} == kinds
    assert {each.file.parts[-2] for each in error.value.found} <= {name, board.name}


def test_a_copy_of_what_was_not_accepted_yet_is_seen_by_accept(board: Path) -> None:
    shutil.copytree(board / "constant", board / "a_copy")
    about(model="mine")(board / "a_copy")
    found = [(each.kind, each.file.parent.name) for each in check([board]).problems]
    assert found == [("duplicate", "constant")]
    for name in ("a_copy", "constant"):
        with pytest.raises(SubmissionError) as error:
            accept(board / name, None, "")
        assert [(each.kind, each.file.parent.name) for each in error.value.found] == [
            ("duplicate", name)
        ]
    shutil.rmtree(board / "a_copy")
    accept(board / "constant", None, "")


@pytest.mark.parametrize(
    ("url", "is_good"),
    [
        ("https://example.org:8080/@author/b?c=d&e=%20#f-g_h~i", True),
        ("http://[::1]/a", True),
        ("https://user:secret@example.org/", False),
        ("https://github.com\\@example.org/", False),
        ("https://example.org/\u202egro", False),
        ("https://ex\u00e4mple.org/", False),
        ("https://example.org/'onclick='x", False),
        ("https://", False),
        ("javascript:alert(1)", False),
    ],
)
def test_an_address_is_what_it_seems(board: Path, url: str, *, is_good: bool) -> None:
    about(code={"url": url, "commit": "a1"})(board / "constant")
    found = check([board / "constant"], Asked(logs=False)).problems
    assert [each.kind for each in found] == ([] if is_good else ["type"])


def test_titles_have_no_characters_that_show_nothing(board: Path) -> None:
    for character in "\u3164\u2800\u034f\ufe0f\uffa0\u200b":
        for title in (character, f"av{character}g"):
            about(model=title)(board / "constant")
            found = check([board / "constant"], Asked(logs=False)).problems
            assert "text" in [each.kind for each in found]


def test_an_accepted_submission_stays_on_its_board(board: Path) -> None:
    accept(board / "avg", None, "")
    for name in ("constant", "avg"):
        about(protocol={"name": "mine", "version": "1", "options": {"_target_": "a.B"}})(
            board / name
        )
        if name == "constant":
            accept(board / name, None, "")
    with pytest.raises(SubmissionError) as error:
        accept(board / "avg", None, "")
    assert [(each.kind, each.where) for each in error.value.found] == [
        ("changed", "protocol, data")
    ]


def test_a_new_version_is_one_of_the_protocol_as_it_is(board: Path) -> None:
    accept(board / "avg", None, "")
    about(protocol__version="99")(board / "avg")
    kinds = [problem.kind for problem in check([board / "avg"], Asked(accepting=True)).problems]
    assert "version" in kinds


def test_an_accepted_submission_stays_as_it_is(board: Path) -> None:
    accept(board / "avg", None, "")
    cell("auc", 0.75)(board / "avg")
    assert "changed" in [problem.kind for problem in check([board]).problems]
    about(data__version="3")(board / "avg")
    found = [(p.file.name, p.where) for p in check([board]).problems if p.kind == "changed"]
    assert found == [(RESULTS, ""), (ABOUT, ""), (ABOUT, "protocol, data")]
    for file in (board / "avg").iterdir():
        file.unlink()
    (board / "avg").rmdir()
    assert [problem.kind for problem in check([board]).problems] == ["missing"]


def test_a_board_is_what_its_first_accepted_submission_scored(board: Path) -> None:
    accept(board / "avg", None, "")
    without_a_user(board / "constant")
    for folder in (board, board / "constant"):
        kinds = [problem.kind for problem in check([folder], Asked(logs=False)).problems]
        assert kinds == ["users"]
    with pytest.raises(SubmissionError):
        accept(board / "constant", None, "")


@pytest.mark.parametrize(
    ("target", "kinds"),
    [("os.system", []), ("submissions.rewrite", []), ("srs_eval.new.command", ["code"])],
)
def test_code_of_others_is_not_run(board: Path, target: str, kinds: list[str]) -> None:
    about(algorithm={"_target_": target})(board / "avg")
    assert [problem.kind for problem in check([board]).problems] == kinds
    with pytest.raises(SubmissionError) as error:
        verify(board / "avg")
    assert [problem.kind for problem in error.value.found] == ["code"]


def test_the_record_is_not_written_by_hand(board: Path) -> None:
    (board / "accepted.yaml").write_text("submissions: {avg: [{mark: best}]}\n")
    assert command(["check", str(board)]) == 2


ORACLE = {"_target_": "srs_eval.algorithms.oracle.Oracle"}
BLEND = "srs_eval.algorithms.combined.blend.Blend"


@pytest.mark.parametrize(
    ("options", "places"),
    [
        (ORACLE, ["when", "sees_truth"]),
        ({"_target_": BLEND, "base": ORACLE, "every": "review"}, ["when", "sees_truth"]),
        ({"_target_": BLEND, "base": {"_target_": "srs_eval.algorithms.fsrs6.Fsrs6"}}, ["when"]),
        (
            {
                "_target_": "srs_eval.algorithms.combined.ensemble.Ensemble",
                "members": {
                    "a": {"_target_": "srs_eval.algorithms.baselines.Average"},
                    "b": ORACLE,
                },
            },
            ["when", "sees_truth"],
        ),
        ({"_target_": "srs_eval.algorithms.moving_average.MovingAverage"}, ["when"]),
        ({"_target_": BLEND, "base": 3}, ["algorithm"]),
        # of another place in srs_eval that knows the class
        ({**ORACLE, "p": "x"}, ["when", "sees_truth"]),
        # nothing is read
        ({"_target_": "srs_eval.algorithms.recurrent.lstm.Lstm", "weights": "/dev/zero"}, []),
    ],
)
def test_what_an_algorithm_of_srs_eval_declares_is_read_from_its_class(
    board: Path, options: dict[str, Any], places: list[str]
) -> None:
    about(algorithm=options, when="previous_review", sees_truth=False)(board / "constant")
    found = check([board / "constant"], Asked(logs=False)).problems
    assert [problem.where for problem in found] == places


@pytest.mark.parametrize("name", NAMES)
def test_every_algorithm_declares_before_it_is_started_what_it_declares_after(name: str) -> None:
    options = OmegaConf.to_container(config_of(name))
    started, unstarted = built(config_of(name)), _unstarted(options)
    assert [getattr(unstarted, key) for key in DECLARED] == [
        getattr(started, key) for key in DECLARED
    ]


def test_an_archive_stays_whatever_its_algorithm_declares_now(board: Path) -> None:
    accept(board / "avg", None, "")
    about(algorithm=ORACLE)(board / "constant")
    with pytest.raises(SubmissionError):
        accept(board / "constant", None, "")
    assert check([board / "avg"]).problems == []


def test_a_folder_of_other_things_is_no_leaderboard(
    board: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command(["check", str(board.parent)]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 2
