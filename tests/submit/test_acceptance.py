"""Submissions that are checked, verified and accepted: nothing runs unasked, nothing changes."""

from __future__ import annotations

import math
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from contract import NAMES, built, config_of
from omegaconf import OmegaConf
from submissions import ABOUT, RESULTS, about, cell, without_a_user

from srs_eval.data.synthetic import SyntheticUsers
from srs_eval.protocol.srs_benchmark import SrsBenchmark
from srs_eval.submit.checking import Asked, check
from srs_eval.submit.command import command
from srs_eval.submit.declared import DECLARED, _unstarted
from srs_eval.submit.logs_check import scored_rows, source_of
from srs_eval.submit.problems import SubmissionError
from srs_eval.submit.verifying import accept, verify

SECRET = {
    "_target_": "srs_eval.data.sql.SqlQuery",
    "query": "SELECT CAST(content AS INT) AS card FROM read_text('/etc/hostname')",
}


def found_in(*folders: Path, **asked: Any) -> list[tuple[str, str]]:
    """Kinds of the problems, and the folders they are in."""
    problems = check([*folders], Asked(**asked)).problems
    return [(each.kind, each.file.parent.name) for each in problems]


def refused(call: Callable[..., object], *given: object) -> list[tuple[str, str]]:
    """Kinds of the problems for which a call refuses a submission, and where they are."""
    with pytest.raises(SubmissionError) as error:
        call(*given)
    return [(each.kind, each.where) for each in error.value.found]


def accepted(board: Path, *names: str) -> None:
    for name in names:
        accept(board / name, None, "")


ORACLE = {"_target_": "srs_eval.algorithms.oracle.Oracle"}
BLEND = "srs_eval.algorithms.combined.blend.Blend"
AVERAGE = {"_target_": "srs_eval.algorithms.baselines.Average"}
ENSEMBLE = {
    "_target_": "srs_eval.algorithms.combined.ensemble.Ensemble",
    "members": {"a": AVERAGE, "b": ORACLE},
}
GOOD_ADDRESSES = "https://example.org:8080/@author/b?c=d&e=%20#f-g_h~i", "http://[::1]/a"
BAD_ADDRESSES = (
    *("https://user:secret@example.org/", "https://github.com\\@example.org/", "https://"),
    *("https://example.org/\u202egro", "https://ex\u00e4mple.org/", "javascript:alert(1)"),
    "https://example.org/'onclick='x",
)
BLANKS = "\u3164\u2800\u034f\ufe0f\uffa0\u200b"


def test_addresses_and_titles_are_what_they_seem(board: Path) -> None:
    for url in (*GOOD_ADDRESSES, *BAD_ADDRESSES):
        about(code={"url": url, "commit": "a1"})(board / "constant")
        kinds = [] if url in GOOD_ADDRESSES else ["type"]
        assert [kind for kind, _ in found_in(board / "constant", logs=False)] == kinds, url
    about(code=None)(board / "constant")
    for title in (*BLANKS, *(f"av{blank}g" for blank in BLANKS)):
        about(model=title)(board / "constant")
        assert "text" in dict(found_in(board / "constant", logs=False)), title


@pytest.mark.parametrize(
    ("options", "places"),
    [
        (ORACLE, ["when", "sees_truth"]),
        ({"_target_": BLEND, "base": ORACLE, "every": "review"}, ["when", "sees_truth"]),
        ({"_target_": BLEND, "base": {"_target_": "srs_eval.algorithms.fsrs6.Fsrs6"}}, ["when"]),
        (ENSEMBLE, ["when", "sees_truth"]),
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


def test_no_query_and_no_class_of_others_is_built_without_trust(
    board: Path, tmp_path: Path
) -> None:
    path = tmp_path / "logs.duckdb"
    path.touch()
    for options in (SECRET, {"_target_": "submissions.Source", "path": "x"}):
        about(data__options=options, data__name="x", data__version="1")(board / "avg")
        assert found_in(board / "avg", path=path) == [("code", "avg")]
        assert refused(verify, board / "avg", Asked(path=path)) == [("code", "data.options")]


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


@pytest.mark.parametrize(
    ("target", "kinds"),
    [("os.system", []), ("submissions.about", []), ("srs_eval.new.command", ["code"])],
)
def test_code_of_others_is_not_run(board: Path, target: str, kinds: list[str]) -> None:
    about(algorithm={"_target_": target})(board / "avg")
    assert [kind for kind, _ in found_in(board)] == kinds
    assert {kind for kind, _ in refused(verify, board / "avg")} == {"code"}


def test_reading_stops_when_many_users_differ(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("srs_eval.submit.logs_check._MOST_UNLIKE", 2)
    source = SyntheticUsers(users=10_000, seed=5, size_scale=0.02, max_reviews=900)
    found = scored_rows(source, SrsBenchmark(), {1: 1})
    assert (found.fingerprint, [*found.rows]) == ("", [1, 2])


def test_an_error_of_one_submission_hides_no_others(
    board: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(folder: Path, results: object) -> Any:
        raise KeyError(folder)

    monkeypatch.setattr("srs_eval.submit.checking.prediction_problems", fails)
    cell("auc", math.inf)(board / "constant")
    assert set(found_in(board)) == {("unreadable", board.name), ("range", "constant")}


def test_a_folder_has_a_plain_name_and_is_no_link(board: Path, tmp_path: Path) -> None:
    for name in ("-rf", ".hidden", "a b", "x" * 61, "a\nb", "prereg"):
        (board / "avg").rename(tmp_path / name)
        assert "name" in dict(found_in(tmp_path / name)), name
        (tmp_path / name).rename(board / "avg")
    (board / "again").symlink_to(board / "avg")
    assert found_in(board) == found_in(board / "again") == [("link", board.name)]
    assert found_in(board / "avg") == []


@pytest.mark.parametrize(
    ("name", "title", "kinds"),
    [
        ("AVG", "another", {"name", "duplicate"}),
        ("copy", "\uff21VG", {"repeated", "duplicate"}),
    ],
)
def test_a_copy_is_not_accepted(board: Path, name: str, title: str, kinds: set[str]) -> None:
    accepted(board, "avg")
    shutil.copytree(board / "avg", board / name)
    about(model=title)(board / name)
    with pytest.raises(SubmissionError) as error:
        accept(board / name, None, "")
    assert {each.kind for each in error.value.found} == kinds
    assert {each.file.parts[-2] for each in error.value.found} <= {name, board.name}


def test_a_copy_of_what_was_not_accepted_yet_is_seen_by_accept(board: Path) -> None:
    shutil.copytree(board / "constant", board / "a_copy")
    about(model="mine")(board / "a_copy")
    assert found_in(board) == [("duplicate", "constant")]
    for name in ("a_copy", "constant"):
        assert [kind for kind, _ in refused(accept, board / name, None, "")] == ["duplicate"]
    shutil.rmtree(board / "a_copy")
    accepted(board, "constant")


def test_an_accepted_submission_stays_as_it_is_on_its_board(board: Path) -> None:
    accepted(board, "avg")
    cell("auc", 0.75)(board / "avg")
    assert ("changed", "avg") in found_in(board)
    about(data__version="3")(board / "avg")
    found = [(p.file.name, p.where) for p in check([board]).problems if p.kind == "changed"]
    assert found == [(RESULTS, ""), (ABOUT, ""), (ABOUT, "protocol, data")]
    shutil.rmtree(board / "avg")
    assert [kind for kind, _ in found_in(board)] == ["missing"]


def test_a_board_and_its_versions_are_those_of_its_first_accepted_submission(board: Path) -> None:
    accepted(board, "avg")
    about(protocol__version="99")(board / "avg")
    assert "version" in dict(found_in(board / "avg", accepting=True))
    for name in ("constant", "avg"):
        about(protocol={"name": "mine", "version": "1", "options": {"_target_": "a.B"}})(
            board / name
        )
    accepted(board, "constant")
    assert refused(accept, board / "avg", None, "") == [("changed", "protocol, data")]


def test_a_board_has_the_users_of_its_first_accepted_submission(board: Path) -> None:
    accepted(board, "avg")
    without_a_user(board / "constant")
    for folder in (board, board / "constant"):
        assert [kind for kind, _ in found_in(folder, logs=False)] == ["users"]
    assert "users" in dict(refused(accept, board / "constant", None, ""))


def test_an_archive_stays_whatever_its_algorithm_declares_now(board: Path) -> None:
    accepted(board, "avg")
    about(algorithm=ORACLE)(board / "constant")
    assert refused(accept, board / "constant", None, "")
    assert found_in(board / "avg") == []


def test_what_is_no_leaderboard_is_refused_in_two_lines(
    board: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command(["check", str(board.parent)]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 2
    # the record is not written by hand
    (board / "accepted.yaml").write_text("submissions: {avg: [{mark: best}]}\n")
    assert command(["check", str(board)]) == 2
