"""The fits of a finished run, read back from its folder."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from srs_eval.algorithms.algorithm import Part
from srs_eval.comparison.words import counted, listed
from srs_eval.data.reviews import User
from srs_eval.errors import ConfigError, FitError
from srs_eval.evaluation.fits import Fit
from srs_eval.evaluation.scoring import Scores
from srs_eval.exports.versions import FsrsVersion, version_of
from srs_eval.runs.folder import Run
from srs_eval.runs.summary import Summary

_few = partial(listed, most=3)


@dataclass(frozen=True, slots=True)
class Fitted:
    """One fit, and what should be known of the run it comes from."""

    fit: Fit  # Its parameters, and how it went
    last_fold: int  # The last fold of the user, which has learned from most
    # What was run
    algorithm: str
    protocol: str
    data: str
    # The algorithm's resolved configuration
    options: Mapping[str, Any] = field(default_factory=dict)
    # Of all scored reviews of the user, over all folds; None where the run did not keep it
    log_loss: float | None = None
    scored: int = 0  # Number of those
    package_version: str = ""  # Of srs_eval, when the run was made
    part: Part | None = None  # The part of the fit that this is, such as that of a preset

    @property
    def version(self) -> FsrsVersion | None:
        """The version of FSRS that the algorithm is, if it is one that is known."""
        return version_of(self.options)

    def standalone(self) -> tuple[Fitted, ...]:
        """Return what schedulers can use by itself: the fit of each group, or else the fit."""
        parts = [part for part in self.fit.parts if part.standalone and part.parameters]
        return tuple(self.of_part(part) for part in parts) or (self,)

    def of_part(self, part: Part) -> Fitted:
        """Return a part as a fit by its own algorithm."""
        options: Any = self.options
        for name in part.option.split("."):
            options = options.get(name, {})
        fit = replace(
            self.fit,
            parameters=part.parameters,
            standard_errors=part.standard_errors,
            n_train=part.n_train,
            parts=(),
        )
        return replace(self, fit=fit, options=options, part=part)


class RunFits:
    """The fits of a run, at least one, and what should be known of them.

    `place` is the run's folder or label, for messages; `options` are the algorithm's resolved
    configuration.
    """

    def __init__(
        self,
        place: str,
        fits: Sequence[Fit],
        facts: Summary,
        options: Mapping[str, Any],
        scores: Scores | None = None,
    ) -> None:
        if not fits:
            raise ConfigError(f"{place}: the run has fitted nothing")
        self.place, self._facts, self._options = place, facts, options
        self._scores = {} if scores is None else _log_losses(scores)
        self._fits: dict[User, dict[int, Fit]] = {}
        for fit in fits:
            self._fits.setdefault(fit.user, {})[fit.fold] = fit

    @classmethod
    def read(cls, folder: Path) -> RunFits:
        """Read the fits of a finished run from its folder, configuration included."""
        run = Run.read(folder)
        return cls(str(folder), [*run.fits()], run.facts, run.config()["algo"], run.by_user)

    @property
    def users(self) -> tuple[User, ...]:
        """Users of the run, in its order."""
        return tuple(self._fits)

    def user(self, wanted: str | None) -> User:
        """Find the user who was asked for, or the only one."""
        users = {str(user): user for user in self.users}
        if wanted is None and len(users) == 1:
            return self.users[0]
        if wanted in users:
            return users[wanted]
        unknown = f"user={wanted}: no such user; " * (wanted is not None)
        raise ConfigError(
            f"{unknown}{self.place} has {counted(len(users), 'user')} ({_few(self.users)}): say "
            f"which, as in user={self.users[0]}"
        )

    def fitted(self, user: User, fold: int | None = None) -> Fitted:
        """Return the fit of a user's fold, by default of the last one."""
        fits = self._fits[user]
        last = max(fits)
        if fold is not None and fold not in fits:
            has = f"fold{'s' * (len(fits) > 1)} {_few(sorted(fits))}" if last >= 0 else "no fold"
            raise ConfigError(f"fold={fold}: user {user} has {has}")
        fit = fits[last if fold is None else fold]
        if not fit.predicts:
            raise FitError(_unusable(fit, fits))
        log_loss, scored = self._scores.get(user, (None, 0))
        return Fitted(
            fit,
            last,
            algorithm=self._facts.algo or str(self._options.get("_target_")),
            protocol=self._facts.protocol,
            data=self._facts.data,
            options=self._options,
            log_loss=log_loss,
            scored=scored,
            package_version=self._facts.tags.get("version", ""),
        )


def _log_losses(scores: Scores) -> dict[User, tuple[float, int]]:
    """Return the log loss and the number of scored reviews of each user, if they are known."""
    if "log_loss" not in scores.names:
        return {}
    column = scores.values[:, scores.names.index("log_loss")].tolist()
    return dict(zip(scores.users, zip(column, scores.reviews.tolist(), strict=True), strict=True))


def _unusable(fit: Fit, fits: Mapping[int, Fit]) -> str:
    what = f"user {fit.user}" + (f", fold {fit.fold}" if fit.fold >= 0 else "")
    worked = sorted(fold for fold, other in fits.items() if other.predicts)
    other = f"; fits that worked: fold={', '.join(map(str, worked))}" if worked else ""
    reason = fit.reason.removeprefix(f"user {fit.user}: ")
    return f"{what}: the fit {_WENT.get(fit.status, fit.status)}: {reason}{other}"


_WENT = {"failed": "failed", "skipped": "was skipped"}
