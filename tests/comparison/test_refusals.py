"""What compare refuses: an error of its own for each, whose words are in a file of texts."""

import json
import os
import re
from dataclasses import replace
from shutil import copyfile

import pandas as pd
import yaml
from cases import refusal

from srs_eval.comparison.compare import compare
from srs_eval.comparison.inputs import read_runs
from srs_eval.comparison.judging import judge
from srs_eval.comparison.pairing import pair
from srs_eval.comparison.prereg import prereg_of, read_prereg
from srs_eval.comparison.report.files import latex
from srs_eval.comparison.restriction import SameReviews
from srs_eval.comparison.strata import stratify
from srs_eval.results.published import read_published
from srs_eval.results.run import load_run, with_own_names

REGISTERED = {
    **{"hypothesis": "x", "model": "good", "baseline": "bad", "metric": "log_loss"},
    **{"smallest_difference": 0.01, "users": 12, "data": "invented", "protocol": "srs_benchmark"},
    "stopping_rule": "x",
}
SLICES = {"a": {4: slice(0, 100)}, "b": {4: slice(30, None), 5: slice(0, 90)}}


def runs_of(*folders):
    return with_own_names(map(load_run, folders))


def intersected(*folders):
    return pair(runs_of(*folders), intersect=True)


def spoiled(folder, change, name="predictions.parquet"):
    """Change a table of a run, given as a data frame."""
    table = pd.read_parquet(folder / name)
    changed = change(table)
    (table if changed is None else changed).to_parquet(folder / name)
    return folder


def moved(column):
    """Move a column of a review that two runs share."""

    def change(table):
        table.loc[(table.user == 4) & (table.row == 60), column] += 1

    return change


def overlapping(run, change=lambda table: table):
    first, second = (run(name, rows=SLICES[name], blur=name == "b") for name in "ab")
    return intersected(first, spoiled(second, change))


def with_predictions_of(run, other, *users, of=1, **options):
    """Compare two runs, of which one has the predictions of another."""
    folders = [run(name, *users, blur=blur) for name, blur in (("a", 0), ("b", 1))]
    other = run(other, *users, **options)
    copyfile(other / "predictions.parquet", folders[of] / "predictions.parquet")
    return folders


def published(run, name, **sizes):
    own = load_run(run("mine"))
    found = {**own.reviews, **{int(user[1:]): size for user, size in sizes.items()}}
    return own, replace(own, name=name, rows=dict.fromkeys(own.rows, ""), reviews=found)


def of_bytes(run, content):
    file = run("a") / "file.yaml"
    file.write_bytes(content)
    return read_prereg(file)


def with_lines(run, **second):
    row = {"metrics": {"LogLoss": 0.3}, "user": 1, "size": 10}
    file = run("a") / "Model.jsonl"
    file.write_text(f"{json.dumps(row)}\n{json.dumps({**row, 'user': 2, **second})}")
    return file


def cut(file):
    os.truncate(file, file.stat().st_size - 20)
    return file


REFUSED = {
    "nothing": lambda run: compare([]),
    "a run twice": lambda run: with_own_names(2 * [load_run(run("a"))]),
    "several published runs that differ": lambda run: pair(
        [load_run(run("own"))], [published(run, name, u3=17)[1] for name in "xyz"]
    ),
    "one's own run that differs from published ones": lambda run: pair(
        [load_run(run("own")), *(published(run, name, u3=17)[1] for name in "xyz")]
    ),
    "paths without runs": lambda run: read_runs([run("a") / name for name in ("no", "job.json")]),
    "other cards": lambda run: overlapping(run, moved("card")),
    "a review twice": lambda run: overlapping(
        run, lambda table: pd.concat([table, table[table.user == 4][-1:]])
    ),
    "predictions of other reviews": lambda run: stratify(
        pair(runs_of(*with_predictions_of(run, "b", other_reviews=[1], blur=1))), 0, "log_loss"
    ),
    "predictions of another baseline": lambda run: stratify(
        pair(runs_of(*with_predictions_of(run, "c", shift=1, of=0))), 0, "brier"
    ),
    "predictions of another run": lambda run: stratify(
        pair(runs_of(*with_predictions_of(run, "c", shift=1))), 0, "brier"
    ),
    "a user's predictions of another run": lambda run: SameReviews(
        runs_of(*with_predictions_of(run, "c", [7], shift=1, of=0))
    ).read(7),
    "a column less": lambda run: overlapping(run, lambda table: table.drop(columns="p")),
    "a table that is misspelt": lambda run: latex(
        compare(runs_of(run("a"))), ["runs", "leaderboard_user"]
    ),
    "predictions cut off": lambda run: stratify(
        pair(runs_of(cut(run("a") / "predictions.parquet").parent, run("b", blur=1))), 0, "brier"
    ),
    "a folder of lines cut off": lambda run: read_published(cut(with_lines(run)).parent),
    "an unknown time of prediction": lambda run: read_published(with_lines(run, when="later")),
    **{
        f"lines with {odd}": lambda run, odd=odd: read_published(with_lines(run, **odd))
        for odd in (
            *({"metrics": value} for value in ("x", [], [1], {"LogLoss": []}, {"LogLoss": "x"})),
            *({"user": value} for value in (None, True, 1.5, [1], {}, 1)),
            *({"size": value} for value in (None, True, "x", 0, -1, 1.5, float("nan"), [1])),
            *({"traits": value} for value in (5, [[]])),
        )
    },
    "a published model that there is not": lambda run: read_published(
        with_lines(run), ["gpt", "model"]
    ),
    **{
        f"a registration {name}": lambda run, content=content: of_bytes(run, content)
        for name, content in {
            "that is empty": b"",
            "without keys": b"- hypothesis",
            "that is no YAML": b"a: [",
            "that runs a program": b"hypothesis: !!python/object/apply:os.system [ls]",
            "of long texts": yaml.safe_dump({"hypothesis": ["x" * 1000] * 90}).encode(),
        }.items()
    },
}


CALLS = {
    "compare": lambda folders, **options: compare(runs_of(*folders), **options),
    "judge": lambda folders, **of: judge(prereg_of({**REGISTERED, **of}), runs_of(*folders)),
    "pair": lambda folders, **options: pair(runs_of(*folders), **options),
    "prereg": lambda _, **content: prereg_of(content),
}


def without_causes(text):
    text = re.sub(r"\((ArrowInvalid|JSONDecodeError): .*\)", r"(\1)", text)
    return re.sub("(maximum recursion depth exceeded).*", r"\1", text)


def test_runs_are_refused_in_the_words_of_the_file(runs_in_words, transcript):
    def told_by(what, *words):
        folders, options = runs_in_words(*words)
        return without_causes(refusal(lambda: CALLS[what](folders, **options)))

    transcript("refused_runs", told_by)


def test_each_is_refused_in_the_words_of_the_file(make_run, tmp_path, golden_text):
    told = ""
    for number, (name, case) in enumerate(REFUSED.items()):
        (tmp_path / str(number)).mkdir()

        def run(label, *users, number=number, **options):
            place = f"{number}/{len(list((tmp_path / str(number)).iterdir()))}_{label}"
            return make_run(label, *users, folder=place, **options)

        told += f"{name}\n  {refusal(lambda case=case, run=run: case(run))}\n"
    told = without_causes(told.replace("\\", "/")).replace(str(tmp_path), "")
    golden_text("comparison_refusals", re.sub(r"/\d+/", "folder/", told))
