"""What algorithms of srs_eval declare, against what a submission says of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import MISSING, fields, is_dataclass
from typing import Any

from srs_eval.config.targets import TARGET
from srs_eval.errors import ConfigError
from srs_eval.nouns import Algorithm
from srs_eval.submit.logs_check import build_problem, is_own, own_builder
from srs_eval.submit.problems import Problem, shown
from srs_eval.submit.submission import ABOUT, Submission

# Facts of a submission that its algorithm declares.
DECLARED = ("when", "sees_truth")


def declared_problems(submission: Submission) -> Iterator[Problem]:
    """Yield facts in which a submission differs from its algorithm, if that is one of srs_eval.

    The algorithm is not started: only its class, and those of the algorithms it is made of, are
    asked, so that no option of a stranger reads a file or takes memory.
    """
    options, file = submission.about["algorithm"], submission.folder / ABOUT
    if not is_own(options):
        return
    try:
        own_builder().find(str(options[TARGET]), Algorithm)
        yield from contradicted(submission, _unstarted(options))
    except ConfigError as error:
        yield build_problem(submission, error)
    except (AttributeError, TypeError, ValueError) as error:
        found = shown(f"{type(error).__name__}: {error}")
        yield Problem("code", file, "algorithm", found, "write the options as the run has them")


def contradicted(submission: Submission, algorithm: Any) -> Iterator[Problem]:
    """Yield facts in which a submission differs from an algorithm."""
    for key in DECLARED:
        stated, found = submission.about[key], getattr(algorithm, key)
        if stated != found:
            advice = f"the algorithm says {found}"
            yield Problem("facts", submission.folder / ABOUT, key, shown(stated), advice)


def _unstarted(value: Any) -> Any:
    """Return options in which instances that were not initialised stand for classes of srs_eval."""
    if isinstance(value, list):
        return [_unstarted(each) for each in value]
    if not isinstance(value, Mapping):
        return value
    given = {name: _unstarted(each) for name, each in value.items() if name != TARGET}
    if TARGET not in value:
        return given
    found = own_builder().find(str(value[TARGET]))
    made = object.__new__(found)
    for each in fields(found) if is_dataclass(found) else ():
        usual = each.default if each.default_factory is MISSING else each.default_factory()
        if (option := given.get(each.name, usual)) is not MISSING:
            object.__setattr__(made, each.name, option)
    return made
