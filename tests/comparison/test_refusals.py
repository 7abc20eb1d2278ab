"""What compare refuses: an error of its own for each, whose words are in a file of texts."""

import json
import os
import re
from dataclasses import replace
from shutil import copyfile

import pandas as pd
import yaml

from srs_eval.comparison.compare import compare
from srs_eval.comparison.inputs import read_runs
from srs_eval.comparison.judging import judge
from srs_eval.comparison.pairing import pair
from srs_eval.comparison.prereg import prereg_of, read_prereg
from srs_eval.comparison.report.files import latex
from srs_eval.comparison.restriction import SameReviews
from srs_eval.comparison.strata import stratify
from srs_eval.errors import ConfigError
from srs_eval.results.published import read_published
from srs_eval.results.run import load_run, with_own_names

REGISTERED = {
    **{"hypothesis": "x", "model": "good", "baseline": "bad", "metric": "log_loss"},
    **{"smallest_difference": 0.01, "users": 12, "data": "invented", "protocol": "srs_benchmark"},
    "stopping_rule": "x",
}
TRAIN = "normalized_entropy_train"
SLICES = {"a": {4: slice(0, 100)}, "b": {4: slice(30, None), 5: slice(0, 90)}}


def runs_of(*folders):
    return with_own_names(map(load_run, folders))


def intersected(*folders):
    return pair(runs_of(*folders), intersect=True)


def judged(*folders, **changed):
    return judge(prereg_of({**REGISTERED, **changed}), runs_of(*folders))


def spoiled(folder, change, name="predictions.parquet"):
    """Change a table of a run, given as a data frame."""
    table = pd.read_parquet(folder / name)
    changed = change(table)
    (table if changed is None else changed).to_parquet(folder / name)
    return folder


def with_metric(folder, name):
    return spoiled(folder, lambda t: t.assign(**{name: 0.9}), "scores.parquet")


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
    "as many other reviews of a user": lambda run: pair(
        runs_of(run("a", rows={4: slice(100)}), run("b", rows={4: slice(40, None)}))
    ),
    "absent users and a lost fold": lambda run: pair(
        runs_of(run("whole"), run("short", range(1, 11)), run("broken", failed=[2]))
    ),
    "a fold lost in one run alone": lambda run: pair(
        runs_of(run("a", failed=[2, 5]), run("b", failed=[2]))
    ),
    "no user in common": lambda run: intersected(run("a", [1]), run("b", [2])),
    "no review in common": lambda run: intersected(
        run("a", [1], rows={1: slice(0, 9)}), run("b", [1], rows={1: slice(9, None)})
    ),
    "a run twice": lambda run: with_own_names(2 * [load_run(run("a"))]),
    "several published runs that differ": lambda run: pair(
        [load_run(run("own"))], [published(run, name, u3=17)[1] for name in "xyz"]
    ),
    "one's own run that differs from published ones": lambda run: pair(
        [load_run(run("own")), *(published(run, name, u3=17)[1] for name in "xyz")]
    ),
    "paths without runs": lambda run: read_runs([run("a") / name for name in ("no", "job.json")]),
    "another log": lambda run: intersected(run("a"), run("b", other_reviews=[4])),
    "other cards": lambda run: overlapping(run, moved("card")),
    "a review twice": lambda run: overlapping(
        run, lambda table: pd.concat([table, table[table.user == 4][-1:]])
    ),
    "no predictions to restrict": lambda run: pair(
        runs_of(*(run(name, rows=SLICES[name], without_predictions=True) for name in "ab"))
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
    "scores that are infinite": lambda run: compare(
        runs_of(spoiled(run("a"), lambda t: t.assign(log_loss=float("inf")), "scores.parquet"))
    ),
    "a metric in units of each protocol": lambda run: compare(
        [
            load_run(with_metric(run(name, protocol=f"of {name}", blur=name == "b"), TRAIN))
            for name in "ab"
        ],
        metric=TRAIN,
    ),
    "a metric without a better direction": lambda run: compare(
        runs_of(with_metric(run("a"), "temporal_rise")), metric="temporal_rise"
    ),
    "a metric that is misspelt": lambda run: compare(runs_of(run("a")), metric="logloss"),
    "a baseline that is misspelt": lambda run: compare(runs_of(run("shifted")), baseline="shift"),
    "a table that is misspelt": lambda run: latex(
        compare(runs_of(run("a"))), ["runs", "leaderboard_user"]
    ),
    **{
        f"a count that is {count!r}": lambda run, count=count: load_run(run("a", fallback=count))
        for count in ("many", -1, True, 1.5, None)
    },
    "a summary cut off": lambda run: load_run(cut(run("a") / "summary.json").parent),
    "scores cut off": lambda run: load_run(cut(run("a") / "scores.parquet").parent),
    "predictions cut off": lambda run: stratify(
        pair(runs_of(cut(run("a") / "predictions.parquet").parent, run("b", blur=1))), 0, "brier"
    ),
    "a folder of lines cut off": lambda run: read_published(cut(with_lines(run)).parent),
    "an unknown time of prediction": lambda run: read_published(with_lines(run, when="later")),
    "a published user twice": lambda run: read_published(with_lines(run, user=1)),
    "a published model that there is not": lambda run: read_published(
        with_lines(run), ["gpt", "model"]
    ),
    "a hypothesis with mistakes": lambda run: prereg_of(
        {
            **{"hypothesi": "x", "model": ["good"], "baseline": None, "smallest_difference": 0},
            **{"users": True, "direction": "upward", "level": 0.89, "date": "31.1.2026"},
            **{"options": {"data.seed": [1]}, "authors": [1], "metric": " ", "data": "x"},
            **{"protocol": "x", "stopping_rule": "x"},
        }
    ),
    "a hypothesis about one model": lambda run: prereg_of({**REGISTERED, "baseline": "good"}),
    "a label of no run": lambda run: judged(run("good(fit=default)"), run("bad")),
    "a label that is misspelt": lambda run: judged(run("good"), model="goodd", baseline="good"),
    "a label of two runs": lambda run: judged(run("good"), run("good"), run("bad")),
    "runs without a user in common": lambda run: judged(run("good", [1]), run("bad", [2])),
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


def test_each_is_refused_in_the_words_of_the_file(make_run, tmp_path, golden_text):
    told = []
    for number, (name, call) in enumerate(REFUSED.items()):

        def run(label, *users, without_predictions=False, number=number, **options):
            folder = tmp_path / str(number)
            place = f"{number}/{len(list(folder.iterdir())) if folder.is_dir() else 0}_{label}"
            made = make_run(label, *users, folder=place, **options)
            if without_predictions:
                (made / "predictions.parquet").unlink()
            return made

        try:
            found = call(run)
        except ConfigError as error:
            told.append(f"{name}\n{error}\n")
        else:
            raise AssertionError((name, found))
    text = "\n".join(told).replace(str(tmp_path), "").replace("\\", "/")
    text = re.sub(r"\((ArrowInvalid|JSONDecodeError): .*\)", r"(\1)", text)
    text = re.sub("(maximum recursion depth exceeded).*", r"\1", text)
    golden_text("comparison_refusals", re.sub(r"/\d+/", "folder/", text))
