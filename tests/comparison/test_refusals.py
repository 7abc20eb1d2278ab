"""What compare refuses: an error names the file, the run, the user and what differs."""

import json
import re
from dataclasses import replace
from shutil import copyfile

import pytest
from commands import write

from srs_eval.comparison.compare import compare, read_runs
from srs_eval.comparison.entry import read_entry, same_reviews
from srs_eval.errors import ConfigError

BOTH = 'a rows={"4":[0,100]} | b rows={"4":[30,null],"5":[0,90]}'
OTHER_LOGS = "different logs: for user 4 .* different outcomes, first at review [14] "
REFUSED = [
    ('a rows={"4":[null,100]} | b rows={"4":[40,null]}', "b scored other reviews than a of user 4"),
    (
        "whole | short users=[1,2,3,4] | broken failed=[2]",
        "short has no scores of users 5, 6, 7, 8, 9 and 3 more\n  - broken has no .* 2: a",
    ),
    ("a failed=[2,5] | b failed=[2]", "a has no scores of user 5"),
    ("a users=[1] | b users=[2] | intersect=true", "of no user all runs scored the same"),
    ("a | b other_reviews=[4] | intersect=true", OTHER_LOGS),
    # where both scored the same rows
    ('a rows={"4":[1,60]} | b other_reviews=[4] rows={"4":[1,60]} | intersect=true', OTHER_LOGS),
    (f"{BOTH} blur=1 cards=1 | intersect=true", "different cards, first at review 31"),
    ('a scores={"log_loss":Infinity}', "0_a: log_loss of a user is infinite"),
    ('a scores={"own":0.9} | metric=own', "metric=own: no run has it, or none is better"),
    ("a | metric=logloss", "metric=logloss: .*; there are auc, brier, log_loss"),
    ("shifted | baseline=shift", "baseline=shift: no unique run .* there are shifted"),
    ("a fallback=many", "0_a/summary.json: cannot be read"),
    ("a cut=summary.json", "0_a/summary.json: cannot be read"),
    ("a cut=scores.parquet", "0_a/scores.parquet: cannot be read"),
]
LINE = {"metrics": {"LogLoss": 0.3}, "user": 1, "size": 10}
LINES = [
    ({"when": "later"}, "predicts later; expected one of previous_review, day_before, at_review"),
    *(({"metrics": each}, "cannot be read") for each in ("x", [], [1], {"LogLoss": []})),
    *(({"user": each}, "expected a number or a name") for each in (None, True, 1.5, [1], {})),
    ({"user": 1}, "more than one score of the same user"),
    *(({"size": each}, "a whole number of 1 or more") for each in (None, True, "x", 0, -1, 1.5)),
    *(({"traits": each}, "cannot be read") for each in (5, [[]])),
]


@pytest.mark.parametrize(("words", "said"), REFUSED)
def test_runs_that_cannot_be_compared_are_refused(compared, words, said):
    with pytest.raises(ConfigError) as error:
        compared(words)
    assert re.search(said, str(error.value).replace("\\", "/")), error.value


@pytest.mark.parametrize(("second", "said"), LINES)
def test_published_lines_that_cannot_be_read_are_refused(tmp_path, second, said):
    file = tmp_path / "lines" / "Model.jsonl"
    text = f"{json.dumps(LINE)}\n{json.dumps({**LINE, 'user': 2, **second})}"
    write(tmp_path, {"lines/Model.jsonl": text})
    with pytest.raises(ConfigError, match=re.escape(str(file))) as error:
        read_runs([file.parent])
    assert said in str(error.value)
    write(tmp_path, {"lines/Model.jsonl": text[:-20]})
    with pytest.raises(ConfigError, match="cannot be read"):
        read_runs([file])


def test_paths_without_runs_are_refused_together_and_a_run_that_is_there_twice(make_run):
    folder = make_run("a")
    with pytest.raises(ConfigError, match="nothing is there") as error:
        read_runs([folder / "no", folder / "none"])
    assert len(str(error.value).splitlines()) == 2
    with pytest.raises(ConfigError, match="more than once: a"):
        compare(2 * [read_entry(folder)])


def test_published_scores_differ_by_number_and_runs_beside_them_by_digest_too(make_run):
    one, two = (read_entry(make_run(n, rows={"4": (k, 100 + k)})) for n, k in (("a", 0), ("b", 9)))
    published = replace(one, name="x", scores=one.scores.assign(rows=""), run=None)
    fewer = replace(published, scores=published.scores.assign(reviews=[120, 120, 17] + 9 * [120]))
    number = "x scored other reviews than a of users 1, 2, 3.*: 120 and 80 of user 1"
    digest = "b scored other reviews than a of user 4: 100 and 100 of user 4, by digest"
    for runs, said in (([fewer, one], number), ([published, one, two], digest)):
        for order in (runs, [*runs[1:], runs[0]]):
            with pytest.raises(ConfigError, match=said):
                compare(order)
    assert compare([one, published]).users == one.users


@pytest.mark.parametrize("second", [False, True])
def test_predictions_of_other_reviews_are_refused(make_run, second):
    users = [1, 2, 3]
    folders = [make_run(name, users, blur=n) for n, name in enumerate(("a", "b"))]
    other = make_run("d", users, other_reviews=[1])
    copyfile(other / "predictions.parquet", folders[second] / "predictions.parquet")
    runs = [*map(read_entry, folders)]
    with pytest.raises(ConfigError, match="different runs"):
        next(same_reviews(runs, [1]))
    with pytest.raises(ConfigError, match="different runs"):
        _ = compare(runs, metric="brier").strata
