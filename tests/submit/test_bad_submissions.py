"""Submissions that are refused, each for its reason, and nothing of them is run."""

from __future__ import annotations

import math
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from cases import rest_nightly
from contract import NAMES, built, config_of
from omegaconf import OmegaConf
from submissions import retable, rewrite

from srs_eval.algorithms.recurrent.weights import digests_of
from srs_eval.data.synthetic import SyntheticUsers
from srs_eval.protocol.srs_benchmark import SrsBenchmark
from srs_eval.submit.checking import Asked, check
from srs_eval.submit.command import command
from srs_eval.submit.declared import DECLARED, _unstarted
from srs_eval.submit.logs_check import scored_rows, source_of
from srs_eval.submit.problems import SubmissionError
from srs_eval.submit.reading import read_leaderboard
from srs_eval.submit.results_table import _size_problems
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


def cell(column: str, value: Any) -> Change:
    """Set the value of the first user; a callable computes it from that of the run."""

    def change(columns: dict[str, Any]) -> None:
        old = columns[column][0]
        columns[column][0] = value(old) if callable(value) else value

    return lambda folder: retable(folder, change)


def table(change: Callable[[dict[str, Any]], object]) -> Change:
    return lambda folder: retable(folder, change)


def text(file: str, content: str) -> Change:
    return lambda folder: (folder / file).write_text(content, "utf-8")


def added(content: str) -> Change:
    def change(folder: Path) -> None:
        file = folder / ABOUT
        file.write_text(file.read_text("utf-8") + content, "utf-8")

    return change


def huge(file: str) -> Change:
    """Make a sparse file of 2 GB."""
    return lambda folder: os.truncate(folder / file, 2_000_000_000)


def with_link(folder: Path) -> None:
    file = folder / RESULTS
    file.rename(folder.parent.parent / "elsewhere")
    file.symlink_to(folder.parent.parent / "elsewhere")


def without_a_user(folder: Path) -> None:
    reviews = pq.read_table(folder / RESULTS).column("reviews").to_pylist()
    retable(folder, lambda columns: [columns.update({k: v[1:]}) for k, v in columns.items()])
    rewrite(folder, lambda a: a["data"].update(users=len(reviews) - 1, reviews=sum(reviews[1:])))


def long_names(columns: dict[str, Any]) -> None:
    """Names that are small in the file and large in memory."""
    columns["user"] = pa.array(["x" * 1_000_000] * len(columns["user"]))


def sums_changed(by: float) -> Change:
    def change(columns: dict[str, Any]) -> None:
        (name,) = (name for name in columns if name.startswith("sums.EqualBinSums"))
        flat = columns[name].flatten().to_numpy().copy()
        flat[1:40:2] += by
        columns[name] = pa.FixedSizeListArray.from_arrays(flat, columns[name].type.list_size)

    return table(change)


def without_sums(columns: dict[str, Any]) -> None:
    for name in [name for name in columns if name.startswith("sums.")]:
        del columns[name]


def improved(columns: dict[str, Any]) -> None:
    """Lower every score of a metric that follows from predictions alone."""
    columns["rmse_bins"] = [value * 0.99 for value in columns["rmse_bins"]]


def other_predictions(folder: Path) -> None:
    found = pq.read_table(folder / PREDICTIONS)
    p = found.column("p").to_numpy() * 0.99
    column = found.schema.get_field_index("p")
    pq.write_table(found.set_column(column, "p", pa.array(p)), folder / PREDICTIONS)


def of_sums(begin: str, change: Callable[[Any], object]) -> Change:
    """Change sums [users, numbers] of which the name begins so."""

    def changed(columns: dict[str, Any]) -> None:
        (name,) = (name for name in columns if name.startswith(f"sums.{begin}"))
        size = columns[name].type.list_size
        wide = columns[name].flatten().to_numpy().copy().reshape(-1, size)
        change(wide)
        columns[name] = pa.FixedSizeListArray.from_arrays(wide.ravel(), size)

    return table(changed)


def only_auc(columns: dict[str, Any]) -> None:
    for name in columns.keys() - {"user", "reviews", "rows", "auc"}:
        del columns[name]
    columns["auc"] = [1.0] * len(columns["auc"])


def predictions_changed(change: Callable[[pa.Table], pa.Table]) -> Change:
    def changed(folder: Path) -> None:
        pq.write_table(change(pq.read_table(folder / PREDICTIONS)), folder / PREDICTIONS)

    return changed


def further_user(found: pa.Table) -> pa.Table:
    """Predictions of a user without scores."""
    other = found.set_column(0, "user", pa.array([99] * len(found)))
    return pa.concat_tables([found, other.cast(found.schema)])


def text_users(columns: dict[str, Any]) -> None:
    columns["user"] = [str(user) for user in columns["user"]]


SECRET = {
    "_target_": "srs_eval.data.sql.SqlQuery",
    "query": "SELECT CAST(content AS INT) AS card FROM read_text('/etc/hostname')",
}


def learned_from_them(folder: Path) -> None:
    source = SyntheticUsers(users=3, seed=5, size_scale=0.02, max_reviews=900)
    seen = [fingerprint_of(digests_of(source.read(user))) for user in (1, 2, 3)]
    about(pretrained_on={"description": "a set", "users": [each for each in seen if each]})(folder)


BAD: dict[str, tuple[str, str, Change]] = {
    # name: kind of the problem, file, change of the submission `avg`
    "a better loss": ("sums", RESULTS, cell("log_loss", lambda loss: loss * 0.99)),
    "a script in the title": ("text", ABOUT, about(model="<script>alert(1)</script>")),
    "a file of 2 GB": ("size", RESULTS, huge(RESULTS)),
    "a user twice": ("repeated", RESULTS, cell("user", 2)),
    "another version": ("version", ABOUT, about(protocol__version="2")),
    "another version of the data": ("version", ABOUT, about(data__version="3")),
    "options without a class": ("missing", ABOUT, about(data__options={"users": 3})),
    "no options": ("missing", ABOUT, about(protocol__options={})),
    "Inf": ("range", RESULTS, cell("auc", math.inf)),
    "text for numbers": (
        "type",
        RESULTS,
        table(lambda columns: columns.update(auc=["high"] * len(columns["auc"]))),
    ),
    "NaN in place of a bad score": ("range", RESULTS, cell("log_loss", math.nan)),
    "NaN of a metric with bounds": ("range", RESULTS, cell("rmse_bins", math.nan)),
    "out of bounds": ("range", RESULTS, cell("auc", 1.5)),
    "a missing value": ("missing", RESULTS, cell("brier", None)),
    "a user left out": ("users", RESULTS, without_a_user),
    "rows of other reviews": ("rows", RESULTS, cell("rows", "0" * 16)),
    "more reviews": ("reviews", ABOUT, cell("reviews", lambda n: n + 1)),
    "no digest of rows": ("reviews", RESULTS, cell("rows", "")),
    "a digest that is none": ("type", RESULTS, cell("rows", "../../etc/passwd")),
    "impossible bins": ("sums", RESULTS, cell("rmse_bins", 0.99)),
    "scores that do not follow from the predictions": ("predictions", RESULTS, table(improved)),
    "predictions of another model": ("predictions", RESULTS, other_predictions),
    "no sums": ("missing", RESULTS, table(without_sums)),
    "sums that contradict each other": ("sums", RESULTS, sums_changed(1.0)),
    "markup in a user": (
        "text",
        RESULTS,
        table(lambda columns: columns.update(user=["<img>", "b", "c"][: len(columns["user"])])),
    ),
    "names of a megabyte": ("text", RESULTS, table(long_names)),
    "a column that is no metric": (
        "unknown",
        RESULTS,
        table(lambda columns: columns.update({"../x": columns["auc"]})),
    ),
    "too many columns": (
        "size",
        RESULTS,
        table(lambda columns: columns.update({f"m{n}": columns["auc"] for n in range(600)})),
    ),
    "no parquet": ("unreadable", RESULTS, text(RESULTS, "PAR1")),
    "more fits that failed than fits": ("range", RESULTS, cell("fit.failed", 99)),
    "a misspelt key": ("unknown", ABOUT, added("licenc: MIT\n")),
    "a key twice": ("repeated", ABOUT, added("licence: MIT\n")),
    "an alias": ("unreadable", ABOUT, added("x: &a [1]\ny: [*a, *a]\n")),
    "deep brackets": ("unreadable", ABOUT, added(f"x: {'[' * 500}{']' * 500}\n")),
    "very many values": ("unreadable", ABOUT, added(f"x: [{'1,' * 40_000}]\n")),
    "a tag of Python": ("unreadable", ABOUT, added("x: !!python/object/apply:os.abort []\n")),
    "a large description": ("size", ABOUT, added("# " + "x" * 2_000_000)),
    "no keys": ("type", ABOUT, text(ABOUT, "- 1\n")),
    "no description": ("gap", ABOUT, about(description=None)),
    "no authors": ("gap", ABOUT, about(authors=[])),
    "control characters": ("text", ABOUT, about(model="fsrs\u202e6")),
    "an address that is a program": (
        "type",
        ABOUT,
        about(code={"url": "javascript:alert(1)", "commit": "a"}),
    ),
    "fewer users than there are": ("users", ABOUT, about(data__users=2)),
    "NaN in the description": ("range", ABOUT, about(seconds_per_user=math.nan)),
    "a number without end": ("range", ABOUT, about(seed=10**400)),
    "markup in an option": ("text", ABOUT, about(data__options__x=[["<script>"]])),
    "other logs": ("rows", ABOUT, about(data__fingerprint="0" * 16)),
    "users who were learned from": ("overlap", ABOUT, learned_from_them),
    "a protocol that cannot be built": ("code", ABOUT, about(protocol__options__x=1)),
    "a tag of YAML": ("unreadable", ABOUT, added('x: !!int ""\n')),
    "a tag in options": ("unreadable", ABOUT, added("x: !!omap [{a: <b>}]\n")),
    "a number of 5,000 digits": ("unreadable", ABOUT, added(f"x: 0x{'F' * 5_000}\n")),
    "a number to the base of 60": ("unreadable", ABOUT, added("x: 1:30\n")),
    "a title with a space of no width": ("text", ABOUT, about(model="avg\u200b")),
    "a billion users": ("users", ABOUT, about(data__options__users=10**9)),
    "a billion fits": ("code", ABOUT, about(protocol__options__base={"refits": 10**9})),
    "another name of the data": ("version", ABOUT, about(data__name="revlogs")),
    "a protocol of others under its name": (
        "version",
        ABOUT,
        about(protocol__options={"_target_": "evil.SrsBenchmark"}),
    ),
    "a digest of two megabytes": (
        "size",
        RESULTS,
        table(lambda columns: columns.update(rows=["0" * 2_000_000] * len(columns["user"]))),
    ),
    "sums of no metric": (
        "unknown",
        RESULTS,
        table(lambda columns: columns.update({"sums.x": columns["sums.ScoreSums()"]})),
    ),
    "an invented metric": (
        "unknown",
        RESULTS,
        table(lambda columns: columns.update(log_loss_true=columns["auc"])),
    ),
    "no log loss": ("missing", RESULTS, table(only_auc)),
    "counts that are NaN": ("range", RESULTS, of_sums("Threshold", lambda sums: sums.fill(np.nan))),
    "counts of another model": (
        "sums",
        RESULTS,
        of_sums("Threshold", lambda sums: sums.__setitem__((0, 2), 1)),
    ),
    "texts for users that are numbers": ("users", RESULTS, table(text_users)),
    "a column of predictions twice": (
        "repeated",
        PREDICTIONS,
        predictions_changed(lambda found: found.append_column("p", found.column("p"))),
    ),
    "predictions without scores": ("reviews", PREDICTIONS, predictions_changed(further_user)),
    "a link": ("link", RESULTS, with_link),
    "a program": ("name", "run.sh", text("run.sh", "exit")),
    "a missing file": ("missing", RESULTS, lambda folder: (folder / RESULTS).unlink()),
}


@pytest.mark.parametrize("name", rest_nightly(BAD, kept=10))
def test_a_bad_submission_is_refused_for_its_reason(board: Path, name: str) -> None:
    kind, file, change = BAD[name]
    change(board / "avg")
    found = [(problem.kind, problem.file) for problem in check([board]).problems]
    assert (kind, board / "avg" / file) in found
    assert all(place.parent.name != "constant" for _, place in found)


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


def test_lists_are_counted_as_numbers() -> None:
    schema = pa.schema({"sums.x": pa.list_(pa.float64(), 10**7)})
    metadata: Any = SimpleNamespace(num_rows=10, num_columns=1)
    (problem,) = _size_problems(Path(RESULTS), metadata, schema)
    assert problem.kind == "size"


def test_recalled_reviews_are_those_of_the_logs(board: Path) -> None:
    def forged(sums: Any) -> None:
        sums[:, 1] -= 1

    of_sums("ScoreSums", forged)(board / "constant")
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
        BAD[name][2](board / "avg")
    about(licence=3)(board / "constant")
    with pytest.raises(SubmissionError) as error:
        read_leaderboard(board)
    kinds = [(problem.kind, problem.file.parent.name) for problem in error.value.found]
    assert sorted(kinds) == [("range", "avg"), ("text", "avg"), ("type", "constant")]
    assert len(error.value.problems) == 3


@pytest.mark.parametrize("name", ["-rf", ".hidden", "a b", "x" * 61, "a\nb", "prereg"])
def test_a_folder_has_a_plain_name(board: Path, name: str) -> None:
    (board / "avg").rename(board / name)
    assert "name" in [problem.kind for problem in check([board / name]).problems]


def test_a_folder_is_no_link(board: Path) -> None:
    (board / "again").symlink_to(board / "avg")
    assert [problem.kind for problem in check([board]).problems] == ["link"]
    assert [problem.kind for problem in check([board / "again"]).problems] == ["link"]


def test_the_same_scores_under_two_names_are_found(board: Path) -> None:
    (board / "avg").rename(board / "first")
    (board / "second").mkdir()
    for file in (ABOUT, RESULTS):
        (board / "second" / file).write_bytes((board / "first" / file).read_bytes())
    found = {(problem.kind, problem.file.parent.name) for problem in check([board]).problems}
    assert found == {("duplicate", "second"), ("repeated", "second")}


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


@pytest.mark.parametrize("length", [60, 120])
def test_the_name_of_a_board_is_that_of_a_folder(board: Path, length: int) -> None:
    class_of_others = {"_target_": "x.Y"}
    protocol = {"name": "p" * length, "version": "v" * length, "options": class_of_others}
    data = {"name": "d" * length, "version": "1", "options": {**class_of_others, "version": "1"}}
    for name in ("avg", "constant"):
        rewrite(board / name, lambda content: content["data"].update(data))
        about(protocol=protocol)(board / name)
    found = {(each.kind, each.file.parent.name) for each in check([board]).problems}
    assert found == ({("name", "avg"), ("name", "constant")} if length == 120 else set())


@pytest.mark.parametrize(
    ("url", "is_good"),
    [
        ("https://example.org", True),
        ("https://example.org:8080/a/b?c=d&e=%20#f-g_h~i", True),
        ("http://[::1]/a", True),
        ("https://example.org/@author/model.git", True),
        ("https://github.com@example.org/", False),
        ("https://user:secret@example.org/", False),
        ("https://github.com\\@example.org/", False),
        ("https://example.org/\x1b[31m", False),
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


@pytest.mark.parametrize("character", ["\u3164", "\u2800", "\u034f", "\ufe0f", "\uffa0", "\u200b"])
def test_titles_have_no_characters_that_show_nothing(board: Path, character: str) -> None:
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


def test_sums_are_of_finite_numbers(board: Path) -> None:
    def change(columns: dict[str, Any]) -> None:
        (name,) = (name for name in columns if name.startswith("sums.ScoreSums"))
        flat = columns[name].flatten().to_numpy().copy()
        flat[2] = np.inf
        columns[name] = pa.FixedSizeListArray.from_arrays(flat, columns[name].type.list_size)

    retable(board / "avg", change)
    assert "range" in [problem.kind for problem in check([board]).problems]


def test_a_folder_of_other_things_is_no_leaderboard(
    board: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command(["check", str(board.parent)]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 2
