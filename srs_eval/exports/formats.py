"""What apps read, made from a fit, and what its reader should know."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from srs_eval.algorithms.algorithm import Part
from srs_eval.data.reviews import User
from srs_eval.errors import ConfigError
from srs_eval.exports.fitted import Fitted, RunFits
from srs_eval.exports.intervals import first_intervals
from srs_eval.exports.versions import FsrsVersion, outside_bounds
from srs_eval.runs.folder import json_text

# What Anki shows in its field, and keeps when it optimises.
_ANKI_DECIMALS = 4
# What py-fsrs does unless told otherwise; from_json wants all of it.
_PY_FSRS: Mapping[str, Any] = {
    "desired_retention": 0.9,
    "learning_steps": [60, 600],
    "relearning_steps": [600],
    "maximum_interval": 36500,
    "enable_fuzzing": True,
}
_S90 = 0.9
_PASTE_INTO_ANKI = (
    'paste into Anki: deck options > FSRS > "FSRS parameters"; newer versions unlock the field '
    "after three clicks"
)
_EACH_PRESET = (
    "Each line of numbers is for the preset, or for the preset of the deck, that the line above "
    "it names"
)
_READ_BY_PY_FSRS = (
    "import fsrs, pathlib; scheduler = fsrs.Scheduler.from_json(pathlib.Path({file}).read_text())"
)
_READ_EACH_BY_PY_FSRS = (
    "import fsrs, json, pathlib; text = pathlib.Path({file}).read_text(); "
    "schedulers = {{name: fsrs.Scheduler.from_json(json.dumps(s)) "
    "for name, s in json.loads(text).items()}}"
)
_FRACTIONAL = ("srs_benchmark_secs", "srs_benchmark_equalised")


@dataclass(frozen=True, slots=True)
class HandOver:
    """A fit as an app reads it."""

    text: str  # What the app reads
    learned: str  # How many reviews it was learned from, and how many it has not seen
    notes: tuple[str, ...] = ()  # What should be known of it
    python: str = ""  # Python that reads it from the file {file}

    def __str__(self) -> str:
        """Return what the app reads."""
        return self.text


def for_anki(fitted: Fitted) -> HandOver:
    """Return the list for Anki's field "FSRS parameters", one for each preset that has its own."""
    fits = fitted.standalone()
    versions = [_read_by_apps(fit, "anki") for fit in fits]
    lists = [", ".join(f"{n:.{_ANKI_DECIMALS}f}" for n in fit.fit.parameters) for fit in fits]
    if len(fits) > 1:
        lists = [f"# {_named(fit)}\n{numbers}" for fit, numbers in zip(fits, lists, strict=True)]
    return HandOver(
        "\n\n".join(lists),
        _learned(fitted),
        (
            _PASTE_INTO_ANKI if len(fits) == 1 else f"{_PASTE_INTO_ANKI}. {_EACH_PRESET}",
            *_about_the_fit(fitted),
            *versions[0].differences,
            "desired retention is what you set beside it in Anki; a run has none. Anki rounds "
            "intervals to days, blurs them, and has learning steps",
        ),
    )


def for_py_fsrs(fitted: Fitted) -> HandOver:
    """Return what ``Scheduler.from_json`` of py-fsrs 6 reads.

    Where groups have parameters of their own, it is an object with a scheduler for each.
    """
    fits = fitted.standalone()
    schedulers = [_py_fsrs_scheduler(fit) for fit in fits]
    names = [fit.part.name if fit.part else "" for fit in fits]
    content = schedulers[0] if len(fits) == 1 else dict(zip(names, schedulers, strict=True))
    return HandOver(
        json.dumps(content, indent=2),
        _learned(fitted),
        (
            *_about_the_fit(fitted),
            *_read_by_apps(fits[0], "py_fsrs").differences,
            "py-fsrs counts spans of 24 hours where the model counts days: a review 20 hours "
            "after the last is a same-day review there, even on the next day",
            "a run has no desired retention, learning steps or fuzzing: the file has py-fsrs's "
            "defaults (0.9; 1 and 10 minutes; on), which are yours to change",
        ),
        _READ_BY_PY_FSRS if len(fits) == 1 else _READ_EACH_BY_PY_FSRS,
    )


def _py_fsrs_scheduler(fitted: Fitted) -> dict[str, Any]:
    version = _read_by_apps(fitted, "py_fsrs")
    if version.as_fsrs6 is None:
        raise ConfigError(
            f"to=py_fsrs: py-fsrs 6 reads FSRS-6, of which {version.name} is no special case; "
            "fit algo=fsrs6 or fsrs5, or take to=anki or to=json"
        )
    parameters = (*fitted.fit.parameters, *version.as_fsrs6)
    problems = outside_bounds(parameters)
    if problems:
        raise ConfigError("to=py_fsrs: py-fsrs would refuse it: " + "; ".join(problems))
    return {"parameters": list(parameters), **_PY_FSRS}


def for_anyone(fitted: Fitted) -> HandOver:
    """Return the fit as plain JSON, whatever the algorithm is."""
    _require_parameters(fitted)
    for one in fitted.standalone():
        _require_number_of_parameters(one, "json")
    fit, known = fitted.fit, fitted.version
    parts = [_part_as_json(fitted.of_part(part), part) for part in fit.parts]
    content = {
        "algorithm": fitted.algorithm,
        "version": known.name if known else None,
        "user": fit.user,
        "fold": fit.fold,
        "status": fit.status,
        "parameters": fit.parameters,
        "standard_errors": fit.standard_errors,
        **_first_intervals(fitted),
        **({"parts": parts} if parts else {}),
        "trained_on_reviews": fit.n_train,
        "log_loss": fitted.log_loss,
        "scored_reviews": fitted.scored,
        "protocol": fitted.protocol,
        "data": fitted.data,
        "options": dict(fitted.options),
        "srs_eval_version": fitted.package_version,
        "notes": [_learned(fitted), *_about_the_fit(fitted)],
    }
    is_read = [fit.version is not None and fit.version.read_by_apps for fit in fitted.standalone()]
    unread = () if all(is_read) else (_no_app(fitted),)
    return HandOver(
        json_text(content),
        _learned(fitted),
        (*_about_the_fit(fitted), *unread),
    )


FORMATS: Mapping[str, Callable[[Fitted], HandOver]] = {
    "anki": for_anki,
    "py_fsrs": for_py_fsrs,
    "json": for_anyone,
}


def exported(fits: RunFits, to: str, user: User | None, fold: int | None = None) -> HandOver:
    """Return the parameters of a user as an app reads them, by default of the only user."""
    if to not in FORMATS:
        raise ConfigError(f"to={to}: there are {', '.join(FORMATS)}")
    return FORMATS[to](fits.fitted(fits.user(None if user is None else str(user)), fold))


def _part_as_json(fitted: Fitted, part: Part) -> dict[str, Any]:
    version = fitted.version
    return {
        "name": part.name,
        "title": part.title,
        "algorithm": part.option,
        "version": version.name if version else None,
        "standalone": part.standalone,
        "parameters": part.parameters,
        "standard_errors": part.standard_errors,
        **_first_intervals(fitted),
        "trained_on_reviews": part.n_train,
    }


def _named(fitted: Fitted) -> str:
    """Format the name of a part and its number of training reviews."""
    part = fitted.part
    assert part is not None
    title = part.title if part.title.isprintable() else ascii(part.title)
    about = f" ({title})" if title else ""
    return f"{part.name}{about}: learned from {part.n_train:,} reviews"


def _read_by_apps(fitted: Fitted, to: str) -> FsrsVersion:
    """Return the version of FSRS, if apps read it."""
    _require_parameters(fitted)
    version = fitted.version
    if version is None or not version.read_by_apps:
        raise ConfigError(f"to={to}: {_no_app(fitted)}; to=json has its numbers")
    _require_number_of_parameters(fitted, to)
    if not all(map(math.isfinite, fitted.fit.parameters)):
        raise ConfigError(f"to={to}: not all of the parameters are finite")
    return version


def _require_parameters(fitted: Fitted) -> None:
    if not (fitted.fit.parameters or any(part.parameters for part in fitted.fit.parts)):
        raise ConfigError(f"{fitted.algorithm} keeps no parameters that could be handed over")


def _require_number_of_parameters(fitted: Fitted, to: str) -> None:
    known, found = fitted.version, len(fitted.fit.parameters)
    if known is not None and found and found != known.numbers:
        raise ConfigError(
            f"to={to}: {known.name} has {known.numbers} parameters, and this fit has {found}: it "
            "is of another version"
        )


def _first_intervals(fitted: Fitted) -> dict[str, Any]:
    """Return the days to 90 % after a first review, by rating, if FSRS is what was fitted."""
    known, parameters = fitted.version, fitted.fit.parameters
    if known is None or not parameters or not all(map(math.isfinite, parameters)):
        return {}
    return {"first_s90": first_intervals(known.equations, parameters, _S90)}


def _no_app(fitted: Fitted) -> str:
    if fitted.version is not None:
        return f"{fitted.version.name} is read by forks of Anki alone (docs/export.md)"
    return f"{fitted.algorithm} is no version of FSRS, and no scheduler reads it"


def _learned(fitted: Fitted) -> str:
    fit = fitted.fit
    if not fit.n_test:
        return f"learned from {fit.n_train:,} reviews"
    return (
        f"learned from {fit.n_train:,} reviews; the {fit.n_test:,} after them, which it was "
        "tested on, it has not seen"
    )


def _about_the_fit(fitted: Fitted) -> Iterator[str]:
    """Return the notes on a fit that hold for every format."""
    fit = fitted.fit
    if fit.status == "fallback":
        yield f"the fit of user {fit.user}, fold {fit.fold} is a fallback: {fit.reason}"
    if fitted.options.get("fit") == "default":
        yield "nothing was fitted (fit=default): these are the numbers that were given"
    if fitted.version is not None and not fitted.version.s_is_s90:
        yield (
            f"the long stability of {fitted.version.name} is not the interval at which recall is "
            "90 %: first_s90 has that interval after a first review"
        )
    if fit.fold != fitted.last_fold:
        yield f"fold {fitted.last_fold} has learned from more reviews than fold {fit.fold}"
    if fitted.options.get("binary"):
        yield "fitted with Hard and Easy taken for Good (binary=true), which apps do not do"
    if fitted.protocol.startswith(_FRACTIONAL):
        yield (
            f"learned on fractions of days ({fitted.protocol}), where apps count whole ones: "
            "fit under protocol=srs_benchmark for them"
        )
