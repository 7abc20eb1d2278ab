"""What compare refuses: an error of its own for each, whose words are in a file of texts."""

import json
import re
from dataclasses import replace
from shutil import copyfile

from cases import refusal
from commands import write

from srs_eval.comparison.compare import compare
from srs_eval.comparison.entry import read_entry, with_own_names
from srs_eval.comparison.inputs import read_runs
from srs_eval.comparison.pairing import pair
from srs_eval.comparison.published import read_published
from srs_eval.comparison.restriction import SameReviews
from srs_eval.comparison.strata import stratify

LINE = {"metrics": {"LogLoss": 0.3}, "user": 1, "size": 10}


def runs_of(*folders):
    return with_own_names(map(read_entry, folders))


def beside_published(folders, *, names, own=()):
    """Pair a run with published ones, which differ in the size of a user, or take them for own."""
    run = read_entry(folders[0])
    other = {"rows": dict.fromkeys(run.rows, ""), "reviews": {**run.reviews, 3: 17}}
    made = [replace(run, name=name, **other) for name in (*names, *own)]
    return pair([run, *made]) if own else pair([run], made)


def predictions_of(folders, *, of, user=None, metric="brier"):
    """Read a run that has the predictions of another, the last."""
    *folders, other = folders
    copyfile(other / "predictions.parquet", folders[of] / "predictions.parquet")
    return SameReviews(runs_of(*folders)).read(user) if user else strata_of(folders, metric=metric)


def strata_of(folders, *, metric):
    return stratify(pair(runs_of(*folders)), 0, metric)


CALLS = {
    "compare": lambda folders, **options: compare(runs_of(*folders), **options),
    "pair": lambda folders, **options: pair(runs_of(*folders), **options),
    "paths": lambda folders, names: read_runs([folders[0] / name for name in names]),
    "predictions_of": predictions_of,
    "published": beside_published,
    "strata": strata_of,
    "twice": lambda folders: with_own_names(2 * [read_entry(folders[0])]),
}


def test_each_is_refused_in_the_words_of_the_file(runs_in_words, tmp_path, transcript):
    def lines(_, *, models=(), cut=0, **second):
        file = tmp_path / "lines" / "Model.jsonl"
        text = f"{json.dumps(LINE)}\n{json.dumps({**LINE, 'user': 2, **second})}"
        write(tmp_path, {"lines/Model.jsonl": text[: len(text) - cut]})
        return read_published(file.parent if cut else file, models)

    def told_by(what, *words):
        folders, options = runs_in_words(*words)
        calls = {**CALLS, "lines": lines}
        text = refusal(lambda: calls[what](folders, **options))
        of_others = "ArrowInvalid|JSON|TypeError|ValidationError|ValueError: (setting|could)"
        text = re.sub(rf"\(({of_others}).*\)", "(…)", text.replace("\\", "/"))
        return re.sub(r"/\d+/", "/", text)

    transcript("comparison_refusals", told_by)
