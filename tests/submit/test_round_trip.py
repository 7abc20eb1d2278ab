"""What is written is what is read: scores and the facts of the run."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from submissions import WRITTEN, about, column, table

from srs_eval.algorithms.recurrent.lstm import Lstm
from srs_eval.data.synthetic import SyntheticUsers
from srs_eval.errors import ConfigError
from srs_eval.experiment.evaluate import evaluate
from srs_eval.experiment.experiment import Experiment
from srs_eval.protocol.srs_benchmark import SrsBenchmark
from srs_eval.results.result import Result
from srs_eval.results.run import load_run
from srs_eval.site.view import view
from srs_eval.submit.checking import Asked, check
from srs_eval.submit.command import command
from srs_eval.submit.reading import read_leaderboard, read_submission
from srs_eval.submit.record import read_record
from srs_eval.submit.verifying import accept, verify
from srs_eval.submit.writing import _pretrained_on, submit_published, submit_run


def test_what_may_know_its_test_rows_is_not_submitted(
    runs: Mapping[str, Path], tmp_path: Path
) -> None:
    run = Path(shutil.copytree(runs["avg"], tmp_path / "current"))
    summary = json.loads((run / "summary.json").read_text())
    (run / "summary.json").write_text(json.dumps({**summary, "in_sample": True}))
    with pytest.raises(ConfigError, match="cannot be submitted"):
        submit_run(run, tmp_path / "submitted", WRITTEN)
    with pytest.raises(ConfigError, match="60 letters"):
        submit_run(runs["avg"], tmp_path / "a b", WRITTEN)
    assert not (tmp_path / "submitted").exists()


def test_a_submission_is_read_as_the_run_it_was_written_from(
    board: Path, runs: Mapping[str, Path]
) -> None:
    run, submission = load_run(runs["avg"]), read_submission(board / "avg")
    read = submission.run
    assert (read.rows, read.reviews, read.fits) == (run.rows, run.reviews, run.fits)
    assert read.scores.keys() == run.scores.keys()
    assert all(
        np.array_equal(read.scores[name], run.scores[name], equal_nan=True) for name in run.scores
    )
    for name in ("data", "protocol", "when", "sees_truth", "pretrained", "users", "reviews"):
        assert read.summary[name] == run.summary[name]
    assert submission.mark == "reported"
    assert submission.about["algorithm"]["_target_"].endswith("Average")
    assert read.predicted is not None
    assert read.predicted.are_kept
    submit_run(runs["avg"], board / "avg", {"licence": "Apache-2.0"})
    found = read_submission(board / "avg").about
    # what the author wrote stays, and predictions do not
    assert (found["authors"], found["licence"]) == (WRITTEN["authors"], "Apache-2.0")
    assert not (board / "avg/predictions.parquet").exists()


def test_a_leaderboard_without_problems_has_a_board_for_what_was_scored(board: Path) -> None:
    (only,) = read_leaderboard(board)
    assert [each.name for each in only.submissions] == ["avg", "constant"]
    assert only.name == f"srs_benchmark-1_synthetic-2_{only.fingerprint[:8]}"
    first, second = only.submissions
    assert second.run.rows is first.run.rows
    sums = pa.FixedSizeListArray.from_arrays(pa.array([np.nan] * 6), 2)  # of earlier releases
    table(lambda columns: columns.update({"sums.ScoreSums()": sums}))(board / "avg")
    checked = check([board])
    assert checked.problems == []
    assert checked.done["avg"] == ["predictions", "review logs"]


@pytest.mark.slow
def test_code_is_checked_where_that_is_asked_for(board: Path) -> None:
    assert command(["check", str(board / "avg"), "code=true"]) == 0
    about(when="at_review")(board / "avg")
    for code in (True, False):
        found = check([board / "avg"], Asked(code=code)).problems
        assert [each.kind for each in found] == ["facts"]


def test_files_that_change_during_the_rerun_are_not_accepted(
    board: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def meanwhile(experiment: Experiment) -> Result:
        result = evaluate(experiment)
        column("auc", of=0.5)(board / "constant")
        return result

    monkeypatch.setattr("srs_eval.submit.verifying.evaluate", meanwhile)
    assert command(["accept", str(board / "constant"), "mark=verified"]) == 2
    assert read_record(board).submissions == {}
    accept(board / "constant", None, "")
    monkeypatch.undo()
    assert command(["accept", str(board / "constant"), "mark=verified"]) == 0


def test_logs_are_read_once_for_all_submissions_of_a_command(
    board: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    users = []
    read = SyntheticUsers.read
    monkeypatch.setattr(
        SyntheticUsers, "read", lambda self, user: users.append(user) or read(self, user)
    )
    assert command(["accept", str(board)]) == 0
    assert users == [1, 2, 3]


def test_published_rows_are_shown_as_such(tmp_path: Path) -> None:
    rows = {"model": ["gru"] * 2, "user": [1, 2], "size": [10, 20], "log_loss": [0.3, 0.4]}
    pq.write_table(pa.table({**rows, "of_theirs": [-3.0, 7.0]}), tmp_path / "rows.parquet")
    folder = tmp_path / "leaderboard/gru"
    words = [f"published={tmp_path / 'rows.parquet'}", "model=gru", f"out={folder}"]
    given = ["authors=A. Author, B", "licence=MIT", "code=https://example.org/x@a1"]
    for further, kinds in ((given, {"gap"}), (["tuned_on=none", "description=theirs"], set())):
        assert command([*words, *further]) == 0
        assert {problem.kind for problem in check([folder]).problems} == kinds
    submission = read_submission(folder)
    stays = {"authors": ["A. Author", "B"], "licence": "MIT", "description": "theirs"}
    stays["code"] = {"url": "https://example.org/x", "commit": "a1"}
    assert {name: submission.about[name] for name in stays} == stays
    assert submission.mark == "published"
    assert submission.run.reviews == {1: 10, 2: 20}
    assert not submission.run.has_digests
    assert check([folder.parent], Asked()).problems == []
    with pytest.raises(ConfigError, match="mark"):
        accept(folder, "reported", "")
    assert accept(folder, None, "").mark == "published"
    few = {"model": ["lstm"], "user": [1], "size": [10], "log_loss": [0.2]}
    pq.write_table(pa.table(few), tmp_path / "few.parquet")
    submit_published(tmp_path / "few.parquet", "lstm", folder.parent / "lstm", WRITTEN)
    (problem,) = check([folder.parent], Asked()).problems
    assert (problem.kind, problem.file.parent.name) == ("rows", "lstm")


def test_mistakes_are_refused_in_the_words_of_the_file(
    transcript: Callable[..., None], capsys: pytest.CaptureFixture[str]
) -> None:
    def told(_: str, *words: str) -> str:
        assert command(words) == 2
        return capsys.readouterr().err

    transcript("submit_mistakes", told)


def test_users_that_weights_were_learned_from_are_written_as_fingerprints() -> None:
    target = "srs_eval.algorithms.recurrent.lstm.Lstm"
    found = _pretrained_on({"_target_": target})
    start = Lstm().start
    assert start is not None
    large = [user for user in start.seen if len(user.digests) > 8]
    assert found["users"] == [user.digests[8] for user in large]
    around = {"_target_": "srs_eval.algorithms.combined.per_group.PerGroup"}
    assert _pretrained_on({**around, "base": {"_target_": target}, "pooling": "none"}) == found


def test_accepted_submissions_stay_when_the_protocol_has_another_version(
    board: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    accept(board / "avg", None, "")
    monkeypatch.setattr(SrsBenchmark, "version", "2")
    found = [(problem.kind, problem.file.parent.name) for problem in check([board]).problems]
    assert found == [("facts", "constant")]
    about(protocol__version="2")(board / "constant")
    first, second = read_leaderboard(board)
    assert (first.protocol_version, second.protocol_version) == ("1", "2")
    assert check([board]).problems == []


def notes_with(board: Path, read: dict[str, int] | None) -> list[str]:
    """Claim what both submissions have read; return what the board then says of it."""
    for name in ("avg", "constant"):
        about(data__read=read)(board / name)
    (only,) = read_leaderboard(board)
    return list(view(only).notes)


def test_users_and_reviews_of_the_source_are_stated_and_shown(board: Path) -> None:
    (only,) = read_leaderboard(board)
    source = SyntheticUsers(users=3, seed=5, size_scale=0.02, max_reviews=900, version=2)
    there = {"users": 3, "reviews": sum(len(source.read(user)) for user in source.users())}
    assert {str(one.about["data"]["read"]) for one in only.submissions} == {str(there)}
    (rests,) = (note for note in view(only).notes if note.startswith("Rests on"))
    assert f"3 of 3 users and {only.submissions[0].about['data']['reviews']:,} of " in rests
    assert not any(note.startswith("Caution") for note in view(only).notes)

    notes = notes_with(board, {"users": 30, "reviews": there["reviews"]})
    assert "Caution: 90 % of the users (27 of 30) are left out" in notes
    (problem,) = verify(board / "constant").problems
    assert (problem.kind, problem.where) == ("scores", "data.read")

    notes = notes_with(board, None)  # as earlier releases wrote them
    assert not any(note.startswith("Rests on") for note in notes)
    assert not verify(board / "constant").problems
