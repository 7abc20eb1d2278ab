"""What is written is what is read: submissions of runs, the record, and pre-registrations."""

import json
import shutil
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from submissions import WRITTEN, about, column, read_submission, registered, table

from srs_eval.algorithms.recurrent.lstm import Lstm
from srs_eval.data.synthetic import SyntheticUsers
from srs_eval.errors import ConfigError
from srs_eval.protocol.srs_benchmark import SrsBenchmark
from srs_eval.results.run import load_run
from srs_eval.run.evaluate import evaluate
from srs_eval.site.view import view
from srs_eval.submit import record as module
from srs_eval.submit import verifying
from srs_eval.submit.checking import Asked, check
from srs_eval.submit.command import command
from srs_eval.submit.problems import SubmissionError
from srs_eval.submit.reading import read_leaderboard
from srs_eval.submit.record import FrozenBoard, Record, read_record, write_record
from srs_eval.submit.registrations import registrations
from srs_eval.submit.submission import ACCEPTED, Accepted
from srs_eval.submit.verifying import accept, verify
from srs_eval.submit.writing import _pretrained_on, submit_published, submit_run


def test_what_may_know_its_test_rows_is_not_submitted(runs, tmp_path):
    run = Path(shutil.copytree(runs["avg"], tmp_path / "current"))
    summary = json.loads((run / "summary.json").read_text())
    (run / "summary.json").write_text(json.dumps({**summary, "in_sample": True}))
    with pytest.raises(ConfigError, match="cannot be submitted"):
        submit_run(run, tmp_path / "submitted", WRITTEN)
    with pytest.raises(ConfigError, match="60 letters"):
        submit_run(runs["avg"], tmp_path / "a b", WRITTEN)
    assert not (tmp_path / "submitted").exists()


def test_a_submission_is_read_as_the_run_it_was_written_from(board, runs):
    run, submission = load_run(runs["avg"]), read_submission(board / "avg")
    read = submission.run
    assert (read.rows, read.reviews) == (run.rows, run.reviews)
    assert read.facts.fit_counts == run.facts.fit_counts
    assert read.scores.keys() == run.scores.keys()
    assert all(
        np.array_equal(read.scores[name], run.scores[name], equal_nan=True) for name in run.scores
    )
    for name in ("data", "protocol", "when", "sees_truth", "pretrained", "users", "reviews"):
        assert getattr(read.facts, name) == getattr(run.facts, name)
    assert submission.mark == "reported"
    assert submission.about["algorithm"]["_target_"].endswith("Average")
    assert read.predicted is not None
    assert read.predicted.are_kept
    submit_run(runs["avg"], board / "avg", {"licence": "Apache-2.0"})
    found = read_submission(board / "avg").about
    # what the author wrote stays, and predictions do not
    assert (found["authors"], found["licence"]) == (WRITTEN["authors"], "Apache-2.0")
    assert not (board / "avg/predictions.parquet").exists()


def test_a_leaderboard_without_problems_has_a_board_for_what_was_scored(board, monkeypatch):
    (only,) = read_leaderboard(board)
    assert [each.name for each in only.submissions] == ["avg", "constant"]
    assert only.name == f"srs_benchmark-1_synthetic-4_{only.fingerprint[:8]}"
    first, second = only.submissions
    assert second.run.rows is first.run.rows
    sums = pa.FixedSizeListArray.from_arrays(pa.array([np.nan] * 6), 2)  # of earlier releases
    table(lambda columns: columns.update({"sums.ScoreSums()": sums}))(board / "avg")
    users, read = list[int](), SyntheticUsers.read
    monkeypatch.setattr(SyntheticUsers, "read", lambda *of: users.append(of[1]) or read(*of))
    checked = check([board])
    assert (checked.problems, users) == ([], [1, 2, 3])  # logs are read once for all
    assert checked.done["avg"] == ["predictions", "review logs"]


@pytest.mark.slow
def test_code_is_checked_where_that_is_asked_for(board):
    assert command(["check", str(board / "avg"), "code=true"]) == 0
    about(when="at_review")(board / "avg")
    for code in (True, False):
        found = check([board / "avg"], Asked(code=code)).problems
        assert [each.kind for each in found] == ["facts"]


def test_files_that_change_during_the_rerun_are_not_accepted(board, monkeypatch):
    def meanwhile(experiment):
        result = evaluate(experiment)
        column("auc", of=0.5)(board / "constant")
        return result

    monkeypatch.setattr("srs_eval.submit.verifying.evaluate", meanwhile)
    assert command(["accept", str(board / "constant"), "mark=verified"]) == 2
    assert read_record(board).submissions == {}
    accept(board / "constant", None, "")
    monkeypatch.undo()
    assert command(["accept", str(board / "constant"), "mark=verified"]) == 0


def test_published_rows_are_shown_as_such(tmp_path):
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


def test_mistakes_are_refused_in_the_words_of_the_file(transcript, capsys):
    def told(_, *words):
        assert command(words) == 2
        return capsys.readouterr().err

    transcript("submit_mistakes", told)


def test_users_that_weights_were_learned_from_are_written_as_fingerprints():
    target = "srs_eval.algorithms.recurrent.lstm.Lstm"
    found = _pretrained_on({"_target_": target}, {})
    start = Lstm().start
    large = [user for user in start.seen if len(user.digests) > 8]
    assert found["users"] == [user.digests[8] for user in large]
    around = {"_target_": "srs_eval.algorithms.combined.per_group.PerGroup"}
    assert _pretrained_on({**around, "base": {"_target_": target}, "pooling": "none"}, {}) == found


def test_accepted_submissions_stay_when_the_protocol_has_another_version(board, monkeypatch):
    accept(board / "avg", None, "")
    monkeypatch.setattr(SrsBenchmark, "version", "2")
    found = [(problem.kind, problem.file.parent.name) for problem in check([board]).problems]
    assert found == [("facts", "constant")]
    about(protocol__version="2")(board / "constant")
    first, second = read_leaderboard(board)
    assert (first.protocol_version, second.protocol_version) == ("1", "2")
    assert check([board]).problems == []


def notes_with(board, read):
    """Claim what both submissions have read; return what the board then says of it."""
    for name in ("avg", "constant"):
        about(data__read=read)(board / name)
    (only,) = read_leaderboard(board)
    return list(view(only).notes)


def test_users_and_reviews_of_the_source_are_stated_and_shown(board):
    (only,) = read_leaderboard(board)
    source = SyntheticUsers(users=3, seed=5, size_scale=0.02, max_reviews=900)
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


BOARD = FrozenBoard(3, 4, "d" * 64)
ENTRY = Accepted("2026-01-31", "1" * 64, "reported", "", "b" * 64, "board", "c" * 64)


def test_a_record_is_read_as_it_was_written(tmp_path):
    notes = ["", "yes", "2026-01-31", "a: b # c", "\u00e4" * 200, "word " * 100, "'\"\\", "~"]
    entries = tuple(replace(ENTRY, note=note.strip()) for note in notes)
    for record in (Record(), Record({"1": BOARD, "board": BOARD}, {"on": entries, "7": entries})):
        write_record(tmp_path, record)
        assert read_record(tmp_path) == record
        assert yaml.safe_load((tmp_path / ACCEPTED).read_text("utf-8")).keys() == {
            *("boards", "submissions")
        }


def test_what_could_not_be_read_again_is_not_written(tmp_path, monkeypatch):
    few, more = (Record({"board": BOARD}, dict.fromkeys("abc"[:n], (ENTRY,))) for n in (2, 3))
    write_record(tmp_path, few)
    monkeypatch.setattr(module, "_LARGEST", (tmp_path / ACCEPTED).stat().st_size)
    with pytest.raises(ConfigError, match="at most"):
        write_record(tmp_path, more)
    assert read_record(tmp_path) == few
    monkeypatch.setattr(module, "_LARGEST", 10)
    with pytest.raises(SubmissionError):
        read_record(tmp_path)


def test_two_that_accept_at_once_keep_both_entries(board, monkeypatch):
    write = verifying.write_record

    def slowly(folder, record):
        time.sleep(0.2)
        write(folder, record)

    monkeypatch.setattr(verifying, "write_record", slowly)
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda name: accept(board / name, None, ""), ("avg", "constant")))
    assert read_record(board).submissions.keys() == {"avg", "constant"}


def registered_in(board, **changed):
    """Register a hypothesis in the leaderboard, and judge it."""
    registered("one", **changed)(board)
    (one,) = registrations(board, read_leaderboard(board))
    return one


def test_a_registration_is_judged_by_the_board_it_is_about_or_says_why_not(board):
    for changed in (
        {},
        {"users": 4},
        {"options": {"data.seed": 6}},
        {"options": {"protocol.folds": 2}},
        {"fingerprint": "0000"},
    ):
        found = registered_in(board, **changed)
        assert (found.file, found.model, found.reason) == ("one.yaml", "avg", "")
        decision = "no verdict" if changed else "undecided"
        assert (found.judgement.decision, found.judgement.users) == (decision, 3)
        # without a statement, and shows that
        assert [line for line in found.judgement.deviations if "without" in line]
    for changed, reason in (
        ({"model": "mine"}, "mine: no run has this label"),
        ({"data": "anki"}, "no board of anki"),
        ({"level": 0.5}, "one.yaml: level"),
    ):
        found = registered_in(board, **changed)
        assert (found.judgement, reason in found.reason) == (None, True), found.reason


def test_several_hypotheses_about_a_model_are_judged(board):
    first = registered_in(board).judgement
    registered("other", metric="brier")(board)
    stated = {"digest": first.prereg.digest, "decision": None, "content": {}, "verdict": []}
    about(prereg=stated)(board / "avg")
    found = [each.judgement for each in registrations(board, read_leaderboard(board))]
    assert [len(each.deviations) for each in found if each] == [0, 1]
    assert not [each for each in found if each and each.decision == "no verdict"]
