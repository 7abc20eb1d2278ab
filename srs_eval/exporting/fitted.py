"""The fits of a finished run, read back from its folder."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import yaml

from srs_eval.errors import ConfigError, FitError
from srs_eval.exporting.versions import FsrsVersion, version_of
from srs_eval.nouns import Fit, Part, User
from srs_eval.results.files import FITS, SCORES, SUMMARY, load_fits, read_json

_CONFIG = Path(".hydra") / "config.yaml"
_NAMED_AT_MOST = 10
# What readers of files raise where a file is damaged.
_UNREADABLE = (
    *(pa.ArrowException, yaml.YAMLError, OSError, ValueError, TypeError, LookupError),
    *(ArithmeticError, RecursionError),
)


@dataclass(frozen=True, slots=True)
class Fitted:
    """One fit, and what should be known of the run it comes from.

    Attributes
    ----------
    fit : Fit
        Its parameters, and how it went.
    last_fold : int
        The last fold of the user, which has learned from most.
    algorithm, protocol, data : str
        What was run.
    options : mapping
        The algorithm's resolved configuration.
    log_loss : float, optional
        Of all scored reviews of the user, over all folds; None where the run did not keep it.
    scored : int
        Number of those.
    package_version : str
        Of srs_eval, when the run was made.
    part : Part, optional
        The part of the fit that this is, such as that of a preset.
    """

    fit: Fit
    last_fold: int
    algorithm: str
    protocol: str
    data: str
    options: Mapping[str, Any] = field(default_factory=dict)
    log_loss: float | None = None
    scored: int = 0
    package_version: str = ""
    part: Part | None = None

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


class RunFolder:
    """The folder of a finished run.

    Parameters
    ----------
    folder : Path
        Holds ``fits.parquet``, ``summary.json`` and the run's configuration.

    Raises
    ------
    ConfigError
        If it is not such a folder, saying what was found instead.
    """

    def __init__(self, folder: Path) -> None:
        self._require_fits(folder)
        self.folder = folder
        try:
            self._fits = _by_user(load_fits(folder))
            there = (folder / SUMMARY).is_file()
            self._summary = dict(read_json(folder / SUMMARY)) if there else {}
            self._version = str(dict(self._summary.get("tags", {})).get("version.srs-eval", ""))
            config = yaml.safe_load((folder / _CONFIG).read_text("utf-8"))
            self._options: dict[str, Any] = dict(config["algo"])
            self._scores = _log_losses(folder / SCORES)
        except FileNotFoundError as error:
            raise ConfigError(
                f"{folder}: there is no {_CONFIG}, which tells what was fitted; was the run made "
                "with hydra.output_subdir=null?"
            ) from error
        except _UNREADABLE as error:
            reason = str(error).partition("\n")[0]
            raise ConfigError(
                f"{folder}: cannot be read ({type(error).__name__}: {reason})"
            ) from error
        if not self._fits:
            raise ConfigError(f"{folder}: the run has fitted nothing")

    @property
    def users(self) -> tuple[User, ...]:
        """Users of the run, in its order."""
        return tuple(self._fits)

    def user(self, wanted: str | None) -> User:
        """Find the user who was asked for, or the only one.

        Raises
        ------
        ConfigError
            If there is no such user, or several and none was asked for.
        """
        users = self.users
        if wanted is None and len(users) == 1:
            return users[0]
        if wanted is None:
            raise ConfigError(
                f"{self.folder} has {len(users)} users ({_some(users)}): say which, as in "
                f"user={users[0]}, or give a folder for a file of each, as in out=parameters/"
            )
        found = [user for user in users if str(user) == wanted]
        if not found:
            raise ConfigError(f"user={wanted}: no such user in {self.folder}; has {_some(users)}")
        return found[0]

    def fitted(self, user: User, fold: int | None = None) -> Fitted:
        """Take the fit of a user's fold: the last one, unless said.

        Raises
        ------
        ConfigError
            If there is no such fold.
        FitError
            If the fit failed or was skipped.
        """
        fits = self._fits[user]
        last = max(fits)
        if fold is not None and fold not in fits:
            raise ConfigError(f"fold={fold}: user {user} has {_folds(sorted(fits))}")
        fit = fits[last if fold is None else fold]
        if not fit.predicts:
            raise FitError(_unusable(fit, fits))
        log_loss, scored = self._scores.get(str(user), (None, 0))
        return Fitted(
            fit,
            last,
            algorithm=str(self._summary.get("algo", self._options.get("_target_"))),
            protocol=str(self._summary.get("protocol", "")),
            data=str(self._summary.get("data", "")),
            options=self._options,
            log_loss=log_loss,
            scored=scored,
            package_version=self._version,
        )

    @staticmethod
    def _require_fits(folder: Path) -> None:
        if not folder.exists():
            raise ConfigError(f"{folder}: there is no such folder")
        if not folder.is_dir():
            raise ConfigError(f"{folder}: is a file; name the folder of the run it is in")
        if (folder / FITS).is_file():
            return
        runs = sorted(path.parent.name for path in folder.glob(f"*/{FITS}"))
        if runs:
            raise ConfigError(f"{folder} holds several runs: name one of {_some(runs)}")
        raise ConfigError(f"{folder}: there is no {FITS}; is it the folder of a finished run?")


def _by_user(fits: Sequence[Fit]) -> dict[User, dict[int, Fit]]:
    found: dict[User, dict[int, Fit]] = {}
    for fit in fits:
        found.setdefault(fit.user, {})[fit.fold] = fit
    return found


def _log_losses(path: Path) -> dict[str, tuple[float | None, int]]:
    """Log loss and number of scored reviews of each user, if the run kept them."""
    if not path.is_file() or "log_loss" not in pq.read_schema(path).names:
        return {}
    names = ["user", "reviews", "log_loss"]
    rows = pq.read_table(path, columns=names, page_checksum_verification=True).to_pylist()
    return {str(row["user"]): (row["log_loss"], int(row["reviews"])) for row in rows}


def _unusable(fit: Fit, fits: Mapping[int, Fit]) -> str:
    what = f"user {fit.user}" + (f", fold {fit.fold}" if fit.fold >= 0 else "")
    worked = sorted(fold for fold, other in fits.items() if other.predicts)
    other = f"; fits that worked: fold={', '.join(map(str, worked))}" if worked else ""
    return f"{what}: the fit {_WENT.get(fit.status, fit.status)}: {fit.reason}{other}"


_WENT = {"failed": "failed", "skipped": "was skipped"}


def _folds(folds: Sequence[int]) -> str:
    return f"fold{'s' * (len(folds) > 1)} {_some(folds)}" if max(folds) >= 0 else "no fold"


def _some(names: Sequence[object]) -> str:
    told = ", ".join(map(str, names[:_NAMED_AT_MOST]))
    more = len(names) - _NAMED_AT_MOST
    return f"{told} and {more} more" if more > 0 else told
