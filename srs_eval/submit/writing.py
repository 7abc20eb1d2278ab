"""Write submissions: of finished runs, and of scores that other projects have published."""

from __future__ import annotations

import os
import shutil
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, fields, is_dataclass, replace
from importlib.metadata import version
from pathlib import Path, PurePath
from typing import Any

import numpy as np

import srs_eval
from srs_eval.algorithms.recurrent.weights import SeenUser, Weights, read_weights
from srs_eval.config.building import in_user_folds
from srs_eval.config.targets import TARGET, Builder
from srs_eval.data.synthetic import VERSION, SyntheticUsers
from srs_eval.errors import ConfigError
from srs_eval.evaluation.scoring import Scores
from srs_eval.nouns import Algorithm, Fit, User
from srs_eval.results.coverage import Coverage
from srs_eval.results.files import CONFIG, reading, write_text
from srs_eval.results.fit_counts import FitCounts
from srs_eval.results.folder import is_run, load, read_config
from srs_eval.results.published import read_published
from srs_eval.results.result import Result
from srs_eval.results.run import TRAITS
from srs_eval.run.description import targets
from srs_eval.run.experiment import CURVES_PER_USER
from srs_eval.submit.about import GAPS, LONGEST_TITLE, read_about
from srs_eval.submit.problems import Problem, SubmissionError, some
from srs_eval.submit.reading import NAME
from srs_eval.submit.results_table import FIT_COUNTS, Results, metrics_named, write_results
from srs_eval.submit.submission import ABOUT, PREDICTIONS, RESULTS
from srs_eval.text.suggestion import suggestion
from srs_eval.text.yaml_files import block_of
from srs_eval.tracking.run_facts import git

# Digest of the first 256 reviews: fewer are alike in different people.
_FINGERPRINT = 8
_URL = "https://github.com/srs-eval/srs_eval"
# Arguments of data that are different on every machine; those of a submission are never used.
PLACES = ("path", "url", "download", "repo_id")


def submit_run(
    run: Path, folder: Path, given: Mapping[str, Any], *, predictions: bool = False
) -> None:
    """Write a submission of a finished run.

    What the author wrote into a ``submission.yaml`` that is there already stays; `given` has
    further values that a run does not know.
    """
    require_name(folder)
    if not is_run(run):
        raise ConfigError(f"{run}: expected the folder of a finished run, with summary.json")
    result, config = load(run), _config(run)
    if predictions and not (run / PREDICTIONS).is_file():
        raise ConfigError(f"{run}: there is no {PREDICTIONS}; run again with parts_above=1000000")
    if not result.complete:
        raise ConfigError(f"{run}: no user has a score")
    if result.facts.in_sample:
        meaning = TRAITS["in_sample"][1]
        raise ConfigError(f"{run}: cannot be submitted, because its model {meaning}")
    about = {**_about(result, config), **_written_before(folder), **given}
    _write(folder, about, results_of(result))
    if predictions:
        shutil.copyfile(run / PREDICTIONS, folder / PREDICTIONS)
    else:
        (folder / PREDICTIONS).unlink(missing_ok=True)


def submit_published(file: Path, model: str, folder: Path, given: Mapping[str, Any]) -> None:
    """Write a submission of scores that another project has published."""
    require_name(folder)
    runs = {run.name: run for run in read_published(file)}
    if model not in runs:
        listed = f"; there are {some(runs)}"
        raise ConfigError(
            f"model={model}: not in {file}{suggestion(model, runs, otherwise=listed)}"
        )
    run = runs[model]
    users = tuple(run.rows)
    reviews = np.array([run.reviews[user] for user in users], np.int64)
    values = np.column_stack([*run.scores.values()]).astype(np.float64)
    scores = Scores(users, reviews, ("",) * len(users), tuple(run.scores), values)
    about: dict[str, Any] = {
        "model": model,
        "description": None,
        "authors": [],
        "code": None,
        "licence": None,
        "algorithm": None,
        "parameters": None,
        "protocol": {"name": "srs_benchmark", "version": "1", "options": {}},
        "when": run.when,
        "data": {
            "name": "published",
            "version": "1",
            "options": {},
            "fingerprint": "",
            "users": len(users),
            "reviews": int(reviews.sum()),
        },
        "pretrained_on": None,
        "sees_truth": False,
        "seed": None,
        "hardware": None,
        "seconds_per_user": None,
        "tuned_on": None,
        "srs_eval": None,
    }
    about = {**about, **_written_before(folder), **given}
    _write(folder, about, Results(scores))


def _write(folder: Path, about: Mapping[str, Any], results: Results) -> None:
    """Write the two files of a submission."""
    folder.mkdir(parents=True, exist_ok=True)
    write_results(folder / RESULTS, results)
    write_text(folder / ABOUT, block_of(about, compact=True))


def require_name(folder: Path) -> None:
    """Raise an error if a submission cannot be called like this."""
    if not NAME.fullmatch(folder.name):
        advice = "1 to 60 letters, digits, dots, underscores and hyphens, and a letter first"
        raise SubmissionError([Problem("file", folder, "", folder.name, advice)])


def results_of(result: Result) -> Results:
    """Return the metrics of srs_eval in a run, and how its fits ended."""
    scores, fits = _of_srs_eval(result.by_user), fits_by_user(result)
    ended = [asdict(FitCounts.of(each)) for each in fits]
    counts = {name: np.array([each[name] for each in ended], np.int64) for name in FIT_COUNTS}
    seconds = np.array([sum(fit.seconds for fit in each) for each in fits], np.float64)
    return Results(scores, counts, seconds)


def fingerprint_of(digests: Sequence[str]) -> str:
    """Return what a user is recognised by: the digest of the first 256 reviews; "" with fewer."""
    return digests[_FINGERPRINT] if len(digests) > _FINGERPRINT else ""


def _of_srs_eval(scores: Scores) -> Scores:
    """Leave out metrics of other packages, which cannot be recomputed."""
    named = metrics_named(scores.names)
    known = [number for number, name in enumerate(scores.names) if name in named]
    names = tuple(scores.names[number] for number in known)
    return replace(scores, names=names, values=scores.values[:, known])


def fits_by_user(result: Result) -> list[list[Fit]]:
    """Return the fits of each user."""
    fits: dict[User, list[Fit]] = {user: [] for user in result.by_user.users}
    for fit in result.fitted:
        if fit.user in fits:
            fits[fit.user].append(fit)
    return [*fits.values()]


def _about(result: Result, config: Mapping[str, Any]) -> dict[str, Any]:
    """Return everything about a submission that a run knows, and gaps for the rest."""
    facts, tags = result.facts, result.facts.tags
    seconds = sum(fit.seconds for fit in result.fitted)
    data, protocol = dict(config["data"]), dict(config["protocol"])
    for place in PLACES:
        data.pop(place, None)
    return {
        "model": facts.label[:LONGEST_TITLE],
        "description": None,
        "authors": [],
        "code": _own_code(config["algo"]),
        "licence": None,
        "algorithm": _without_folders(config["algo"]),
        "parameters": parameters_of(result.fitted),
        "protocol": {
            "name": facts.protocol,
            "version": tags.get("protocol_version", "1"),
            "options": protocol,
        },
        "when": facts.when,
        "data": {
            "name": facts.data,
            "version": data_version(data),
            "options": _without_folders(data),
            "fingerprint": facts.data_fingerprint,
            "users": len(result.complete),
            "reviews": int(result.by_user.reviews.sum()),
            "read": read_by(facts.coverage),
        },
        "pretrained_on": _pretrained_on(config["algo"], protocol) if facts.pretrained else None,
        "sees_truth": facts.sees_truth,
        "seed": facts.seed,
        "curves_per_user": config["curves_per_user"],
        "hardware": {"cpu": tags.get("cpu", "unknown"), "cores": os.cpu_count() or 1},
        "seconds_per_user": float(f"{seconds / max(len(result.by_user.users), 1):.4g}"),
        "tuned_on": None,
        "srs_eval": tags.get("version.srs-eval", version("srs-eval")),
    }


def read_by(coverage: Coverage | None) -> dict[str, int] | None:
    """Return how many users and reviews a run has read, if it is known."""
    return None if coverage is None else {"users": coverage.users, "reviews": coverage.reviews}


def _written_before(folder: Path) -> dict[str, Any]:
    """Return what the author of a submission that is there already has written."""
    file = folder / ABOUT
    if not file.is_file():
        return {}
    read = read_about(file)
    if isinstance(read, Problem):
        raise SubmissionError([read])
    return {key: read.content[key] for key in ("model", *GAPS, "code") if read.content.get(key)}


def _config(run: Path) -> Mapping[str, Any]:
    """Read the options of a run that a submission has."""
    with reading(run / CONFIG):
        content = read_config(run)
        groups = {group: dict(content[group]) for group in ("algo", "data", "protocol")}
        groups["protocol"] = in_user_folds(groups["protocol"])
        return {**groups, "curves_per_user": content.get("curves_per_user", CURVES_PER_USER)}


def parameters_of(fits: Sequence[Fit]) -> int | None:
    """Return how many parameters most fits have, with those of their parts; None for no count."""
    sizes = Counter(
        len(fit.parameters) + sum(len(part.parameters) for part in fit.parts)
        for fit in fits
        if fit.status == "ok"
    )
    return (sizes.most_common(1)[0][0] or None) if sizes else None


def _pretrained_on(options: Mapping[str, Any], protocol: Mapping[str, Any]) -> dict[str, Any]:
    """Return the users an algorithm has learned from, as far as its weights say."""
    algorithm = Builder().build(options, Algorithm, "algo")
    seen, folds = _seen(algorithm), protocol.get("user_folds")
    reviews = sum(user.reviews for user in seen)
    listed = f"{len(seen):,} users with {reviews:,} reviews" if seen else None
    return {
        "description": f"the other users, in {folds} folds" if folds else listed,
        "users": learned_from(algorithm),
    }


def learned_from(algorithm: Algorithm) -> list[str]:
    """Return the fingerprints of the users an algorithm has learned from, see `fingerprint_of`."""
    found = (fingerprint_of(user.digests) for user in _seen(algorithm))
    return [*dict.fromkeys(filter(None, found))]


def _seen(algorithm: Algorithm) -> list[SeenUser]:
    return [user for weights in _weights_of(algorithm) for user in weights.seen]


def _weights_of(algorithm: Any) -> Iterator[Weights]:
    """Go through the weights that an algorithm, or one that it is made of, starts from."""
    names = [field.name for field in fields(algorithm)] if is_dataclass(algorithm) else []
    values = [getattr(algorithm, name) for name in names]
    given = [value for value in values if isinstance(value, Weights)]
    files = [value for value in values if isinstance(value, str | Path)]
    yield from given or (
        read_weights(Path(file).expanduser())
        for file in files
        if str(file).endswith(".safetensors")
    )
    for inner in getattr(algorithm, "combined", ()):
        yield from _weights_of(inner)


def _without_folders(options: Any) -> Any:
    """Return options in which absolute paths are names of files."""
    if isinstance(options, Mapping):
        return {name: _without_folders(value) for name, value in options.items()}
    if isinstance(options, list):
        return [_without_folders(value) for value in options]
    if isinstance(options, str) and PurePath(options).is_absolute():
        return PurePath(options).name
    return options


def _own_code(options: Mapping[str, Any]) -> dict[str, str] | None:
    """Return the address and commit of srs_eval, if the algorithm is a part of it."""
    if not str(options.get(TARGET)).startswith("srs_eval."):
        return None
    return {"url": _URL, "commit": _commit() or f"v{version('srs-eval')}"}


def _commit() -> str:
    """Return the commit of a checkout of srs_eval; "" if it is none, or if files were changed."""
    folder = Path(srs_eval.__file__).parents[1]
    if not (folder / ".git").exists():
        return ""
    found = git(folder, "describe", "--always", "--abbrev=40", "--dirty", "--exclude=*") or ""
    return "" if found.endswith("-dirty") else found


def is_simulated(options: Mapping[str, Any]) -> bool:
    """Whether options of data are those of simulated users."""
    return [*targets(options)] == [f"{SyntheticUsers.__module__}.{SyntheticUsers.__qualname__}"]


def data_version(options: Mapping[str, Any]) -> str:
    """Return the version of the data that options give."""
    return VERSION if is_simulated(options) else str(options.get("version", "1"))
