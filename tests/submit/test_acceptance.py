"""Submissions that are checked, verified and accepted: nothing runs unasked, nothing changes."""

import json
import math
import re
import shutil
from pathlib import Path

import pytest
from cases import values_in
from contract import NAMES, built, config_of
from omegaconf import OmegaConf
from submissions import CHANGES, about, cell

from srs_eval.comparison.prereg import read_prereg
from srs_eval.data.synthetic import SyntheticUsers
from srs_eval.protocol.srs_benchmark import SrsBenchmark
from srs_eval.submit.checking import DECLARED, Asked, _unstarted, check
from srs_eval.submit.command import command
from srs_eval.submit.logs_check import scored_rows, source_of
from srs_eval.submit.problems import SubmissionError


def found_in(*folders, **asked):
    """Kinds of the problems, and the folders they are in."""
    problems = check([*folders], Asked(**asked)).problems
    return [(each.kind, each.file.parent.name) for each in problems]


def test_addresses_titles_and_folders_are_what_they_seem(board, transcript):
    def told_by(what, text):
        place, text = board / "constant", json.loads(text)
        if what == "folder":
            place = place.rename(board / text)
        else:
            code = {"url": text, "commit": "a1"} if what == "url" else None
            about(code=code, model=text if what == "title" else "constant")(place)
        kinds = {kind for kind, _ in found_in(place, logs=False)}
        place.rename(board / "constant")
        return f"{sorted(kinds)}\n"

    transcript("submit_names", told_by)


def test_what_an_algorithm_of_srs_eval_declares_is_read_from_its_class(board, transcript):
    def told_by(options):
        of = {"algorithm": json.loads(options), "when": "previous_review", "sees_truth": False}
        about(**of)(board / "constant")
        found = check([board / "constant"], Asked(logs=False)).problems
        return "".join(f"{problem.where}\n" for problem in found)

    transcript("submit_declared", told_by)


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


def stated(decision, digest=""):
    """State a verdict on the hypothesis in the file, or in that of a digest."""

    def change(folder):
        of = digest or read_prereg(folder.parent / "prereg" / "one.yaml").digest
        prereg = {"digest": of, "decision": decision, "verdict": [], "content": {}}
        about(prereg=prereg)(folder)

    return change


ALL_CHANGES = {**CHANGES, "stated": lambda *words: stated(**values_in(words))}


@pytest.mark.parametrize("name", ["accepting", "verifying", "registering"])
def test_commands_say_what_is_in_the_file(good, tmp_path, name, transcript, monkeypatch, capsys):
    def told_by(what, *words):
        if what == "board":
            place = tmp_path / str(len(list(tmp_path.iterdir()))) / "board"
            monkeypatch.chdir(shutil.copytree(good, place))
            return ""
        if what == "record":
            said = Path("accepted.yaml").read_text("utf-8")
        elif words and words[0] in ALL_CHANGES:
            ALL_CHANGES[words[0]](*words[1:])(Path(what).absolute())
            return ""
        else:
            status, told = command([what, *words]), capsys.readouterr()
            said = f"{told.out}{told.err}status {status}\n"
        said = re.sub(r"\b[0-9a-f]{16,}\b", "DIGEST", said.replace(f"{tmp_path}/", ""))
        return re.sub(r"\b\d{4}-\d\d-\d\d\b", "DAY", said)

    transcript(f"submit_{name}", told_by)
