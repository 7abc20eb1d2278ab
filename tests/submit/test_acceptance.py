"""Submissions that are checked, verified and accepted: nothing runs unasked, nothing changes."""

import math
import re
import shutil
from pathlib import Path

import pytest
from contract import NAMES, built, config_of
from omegaconf import OmegaConf
from submissions import PREDICTIONS, about, cell, column, registered, text, without_a_user

from srs_eval.comparison.prereg import read_prereg
from srs_eval.data.synthetic import SyntheticUsers
from srs_eval.protocol.srs_benchmark import SrsBenchmark
from srs_eval.submit.checking import Asked, check
from srs_eval.submit.command import command
from srs_eval.submit.declared import DECLARED, _unstarted
from srs_eval.submit.logs_check import scored_rows, source_of
from srs_eval.submit.problems import SubmissionError


def found_in(*folders, **asked):
    """Kinds of the problems, and the folders they are in."""
    problems = check([*folders], Asked(**asked)).problems
    return [(each.kind, each.file.parent.name) for each in problems]


ORACLE = {"_target_": "srs_eval.algorithms.baselines.Oracle"}
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


def test_addresses_titles_and_folders_are_what_they_seem(board, tmp_path):
    for url in (*GOOD_ADDRESSES, *BAD_ADDRESSES):
        about(code={"url": url, "commit": "a1"})(board / "constant")
        kinds = [] if url in GOOD_ADDRESSES else ["form"]
        assert [kind for kind, _ in found_in(board / "constant", logs=False)] == kinds, url
    about(code=None)(board / "constant")
    for title in (*BLANKS, *(f"av{blank}g" for blank in BLANKS)):
        about(model=title)(board / "constant")
        assert "form" in dict(found_in(board / "constant", logs=False)), title
    for name in ("-rf", ".hidden", "a b", "x" * 61, "a\nb", "prereg"):
        (board / "constant").rename(tmp_path / name)
        assert "file" in dict(found_in(tmp_path / name)), name
        (tmp_path / name).rename(board / "constant")


DECLARING = [
    (ORACLE, ["when", "sees_truth"]),
    ({"_target_": BLEND, "base": ORACLE, "every": "review"}, ["when", "sees_truth"]),
    ({"_target_": BLEND, "base": {"_target_": "srs_eval.algorithms.fsrs6.Fsrs6"}}, ["when"]),
    (ENSEMBLE, ["when", "sees_truth"]),
    ({"_target_": "srs_eval.algorithms.online.MovingAverage"}, ["when"]),
    ({"_target_": BLEND, "base": 3}, ["algorithm"]),
    # of another place in srs_eval that knows the class
    ({**ORACLE, "p": "x"}, ["when", "sees_truth"]),
    # nothing is read
    ({"_target_": "srs_eval.algorithms.recurrent.lstm.Lstm", "weights": "/dev/zero"}, []),
]


def test_what_an_algorithm_of_srs_eval_declares_is_read_from_its_class(board):
    for options, places in DECLARING:
        about(algorithm=options, when="previous_review", sees_truth=False)(board / "constant")
        found = check([board / "constant"], Asked(logs=False)).problems
        assert [problem.where for problem in found] == places


@pytest.mark.parametrize("name", NAMES)
def test_every_algorithm_declares_before_it_is_started_what_it_declares_after(name):
    options = OmegaConf.to_container(config_of(name))
    started, unstarted = built(config_of(name)), _unstarted(options)
    assert all(getattr(unstarted, key) == getattr(started, key) for key in DECLARED)


def test_only_options_that_say_how_to_read_are_taken(board):
    reader = {"_target_": "srs_eval.data.table.ReviewTable", "path": "/etc/passwd"}
    columns = {"_target_": "srs_eval.data.table_options.Columns", "card": "c"}

    def source(options):
        about(data__options=options, data__name="x", data__version="1")(board / "avg")
        (submission,) = check([board / "avg"], Asked(logs=False)).submissions
        return source_of(submission, board / "mine.csv", trust=False)

    assert source({**reader, "columns": columns}).path == str(board / "mine.csv")
    for further in ({"query": "q"}, {"columns": {**columns, "_target_": "os.system"}}):
        with pytest.raises(SubmissionError):
            source({**reader, **further})


def test_reading_stops_when_many_users_differ(monkeypatch):
    monkeypatch.setattr("srs_eval.submit.logs_check._MOST_UNLIKE", 2)
    source = SyntheticUsers(users=10_000, seed=5, size_scale=0.02, max_reviews=900)
    found = scored_rows(source, SrsBenchmark(), {1: 1})
    assert (found.fingerprint, [*found.rows]) == ("", [1, 2])


def test_an_error_of_one_submission_hides_no_others(board, monkeypatch):
    monkeypatch.setattr("srs_eval.submit.checking.prediction_problems", {}.__getitem__)
    cell("auc", math.inf)(board / "constant")
    assert set(found_in(board)) == {("file", board.name), ("range", "constant")}


def copied(to, title):
    """Copy a submission into another folder, under another title."""
    return lambda folder: about(model=title)(Path(shutil.copytree(folder, folder.parent / to)))


def of_data(**options):
    return about(data__options=options, data__name="x", data__version="1")


OTHERS = about(protocol={"name": "mine", "version": "1", "options": {"_target_": "a.B"}})
# Commands, and changes of folders between them.
ACCEPTING = {
    "an accepted submission stays as it is": [
        *("accept avg", ("avg", cell("auc", 0.75)), "check ."),
        *(("avg", about(data__version="3")), "check .", ("avg", shutil.rmtree), "check ."),
    ],
    "versions are appended": [
        *("accept avg note=first", "accept constant", "check .", "accept avg note=again"),
        *(("avg", about(description="Another.")), "check .", "accept avg note=second", "check ."),
    ],
    "predictions are part of what is accepted": [
        *("accept avg", ("avg", lambda folder: (folder / PREDICTIONS).unlink())),
        *("check .", "accept avg", "check ."),
    ],
    "a version of the protocol that there is not": [
        *("accept avg", ("avg", about(protocol__version="99")), "accept avg"),
    ],
    "of another board": [
        *("accept avg", ("constant", OTHERS), ("avg", OTHERS), "accept constant", "accept avg"),
    ],
    "fewer users than the board has": [
        *("accept avg", ("constant", without_a_user), "check . logs=false"),
        *("check constant logs=false", "accept constant"),
    ],
    "a copy whose title looks the same": [
        *("accept avg", ("avg", copied("copy", "\uff21VG")), "accept copy"),
    ],
    "a copy of what was not accepted": [
        *(("constant", copied("a_copy", "mine")), "check .", "accept a_copy", "accept constant"),
        *(("a_copy", shutil.rmtree), "accept constant"),
    ],
    "what an algorithm declares now": [
        *("accept avg", ("constant", about(algorithm=ORACLE)), "accept constant", "check avg"),
    ],
    "no leaderboard": [
        "check ..",
        (".", text("accepted.yaml", "submissions: {avg: [{mark: best}]}\n")),
        "check .",
    ],
    "a link beside": [
        (".", lambda board: (board / "again").symlink_to(board / "avg")),
        "check .",
        "check again",
        "check avg",
    ],
}
VERIFYING = {
    "equal scores, and others": [
        *("verify constant", "accept constant mark=verified", "check ."),
        *(("constant", about(algorithm__p=0.7)), "verify constant"),
        *(("constant", about(algorithm__p=0.8, parameters=7)),),
        *(("constant", column("fit.fits", of=1)), "verify constant"),
    ],
    "scores within a tolerance": [
        *(("constant", about(algorithm__p=0.8001)), "verify constant"),
        *("verify constant tolerance=0.001", "accept constant mark=verified tolerance=0.001"),
    ],
    "a program": [("avg", about(algorithm={"_target_": "os.system"})), "check .", "verify avg"],
    "code of others": [
        ("avg", about(algorithm={"_target_": "submissions.about"})),
        "check .",
        "verify avg",
    ],
    "a query": [
        *(
            ("avg", of_data(_target_="srs_eval.data.sql.SqlQuery", query="SELECT 1")),
            "check avg data.path=avg",
            "verify avg data.path=avg",
        ),
    ],
}


def stated(decision, digest=""):
    """State a verdict on the hypothesis in the file, or in that of a digest."""

    def change(folder):
        of = digest or read_prereg(folder.parent / "prereg" / "one.yaml").digest
        prereg = {"digest": of, "decision": decision, "verdict": [], "content": {}}
        about(prereg=prereg)(folder)

    return change


REGISTERING = {
    "a verdict that the scores say": [
        *((".", registered("one")), ("avg", stated("undecided")), "check . logs=false"),
        *(("avg", stated(None)), "check avg logs=false"),
        # the digest is no longer that of a file
        *((".", registered("one", model="mine", baseline="avg")), "check . logs=false"),
        *(("avg", stated(None)), "check . logs=false"),
    ],
    "other verdicts": [
        *((".", registered("one")), ("avg", stated("kept")), "check . logs=false"),
        *("check avg logs=false", ("avg", stated("kept, 1 deviation")), "check . logs=false"),
    ],
    "a digest of no file": [
        *(("avg", stated("kept", digest="0" * 64)), "check . logs=false"),
        *((".", registered("one")), "check . logs=false"),
    ],
}
FLOWS = {"accepting": ACCEPTING, "verifying": VERIFYING, "registering": REGISTERING}


@pytest.mark.parametrize("name", FLOWS)
def test_commands_say_what_is_in_the_file(good, tmp_path, name, golden_text, monkeypatch, capsys):
    told = []
    for number, (about_it, steps) in enumerate(FLOWS[name].items()):
        board = Path(shutil.copytree(good, tmp_path / str(number) / "board"))
        monkeypatch.chdir(board)
        told.append(f"=== {about_it}")
        for step in steps:
            if isinstance(step, str):
                status = command(step.split())
                said = capsys.readouterr()
                told += [f"$ {step} -> {status}", said.out + said.err]
            else:
                step[1](board / step[0])
        record = board / "accepted.yaml"
        told += [record.read_text("utf-8")] if record.exists() else []
    text = "\n".join(told).replace(f"{tmp_path}/", "")
    text = re.sub(r"\b\d{4}-\d\d-\d\d\b", "DAY", re.sub(r"\b[0-9a-f]{16,}\b", "DIGEST", text))
    golden_text(f"submit_{name}", text)
