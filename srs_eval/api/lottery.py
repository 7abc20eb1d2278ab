"""`srs_eval.lottery`: what an interval does to recall, and what models say it does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pandas as pd

from srs_eval.api.evaluating import bar
from srs_eval.api.inputs import AlgorithmLike, DataLike, algorithm, source
from srs_eval.api.show import Shown
from srs_eval.draws.report import answer, figure, model_records, sentences
from srs_eval.draws.result import Lottery, found_in
from srs_eval.draws.study import collect
from srs_eval.errors import ConfigError
from srs_eval.nouns import Source
from srs_eval.text.table import Table

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class LotteryResult(Shown):
    """What a causal study has found.

    Attributes
    ----------
    found : Lottery
        Every number.
    """

    found: Lottery

    @property
    def table(self) -> pd.DataFrame:
        """One row per model: ratio with its standard error, log loss, slopes and verdict."""
        return pd.DataFrame(model_records(self.found))

    def plot(self, title: str = "") -> Figure:
        """Draw recall against the draw, and the ratios of the models.

        Returns
        -------
        Figure

        Raises
        ------
        ConfigError
            If there was no draw to study.
        """
        if self.found.draws is None:
            raise ConfigError(answer(self.found))
        return figure(self.found, title=title)

    def _shown(self) -> tuple[str, list[str], Table]:
        records = model_records(self.found)
        table = Table.of_records(records, align="l") if records else Table([], [])
        return answer(self.found), sentences(self.found), table


def lottery(
    algorithms: AlgorithmLike | Sequence[AlgorithmLike] | Mapping[str, AlgorithmLike],
    data: DataLike | Sequence[DataLike],
    *,
    only_v3: bool = False,
    seed: int = 2026,
    progress: bool = True,
) -> LotteryResult:
    """Test whether models know what an interval does, by intervals that were drawn by lot.

    Anki adds a random part to every interval. Where the draw can be reconstructed, it is an
    experiment: how much does recall change when a card comes back later by chance, over how much
    a model says that it changes? Models learn from the other half of each user's cards.

    Parameters
    ----------
    algorithms : str, Algorithm, or a sequence or mapping of these
        Names of options such as ``fsrs6``, or objects of your own; those of a mapping go by its
        keys.
    data : str, Path, Source, or a sequence of these
        Collections of Anki or exported packages, or ``synthetic``.
    only_v3 : bool
        Whether to use only draws that can be computed again, those of version 3 of Anki's
        scheduler.
    seed : int
        Seeds how cards are halved, and the fits.
    progress : bool
        Whether to show a progress bar.

    Returns
    -------
    LotteryResult

    Raises
    ------
    ConfigError
        If an option cannot be used, saying what was probably meant.

    Examples
    --------
    >>> import srs_eval as se
    >>> found = se.lottery("fsrs6", "my.colpkg")  # doctest: +SKIP
    >>> found.table  # doctest: +SKIP
    """
    built = {
        name: algorithm(each) if isinstance(each, str) else each
        for name, each in _named(algorithms).items()
    }
    listed: Sequence[Any] = data if isinstance(data, list | tuple) else [data]
    sources: list[Source] = [source(each) for each in listed]
    users = sum(len(each.users()) for each in sources)
    with bar("users", "user", on=progress)(total=users) as shown:
        collected = collect(
            sources, built, only_v3=only_v3, seed=seed, each=lambda _: shown.update()
        )
    return LotteryResult(found_in(collected))


def _named(given: Any) -> Mapping[str, AlgorithmLike]:
    """Return algorithms by name: of the option, or of the class of an object."""
    if isinstance(given, Mapping):
        return given
    listed = [given] if isinstance(given, str) or hasattr(given, "fit") else given
    return {each if isinstance(each, str) else type(each).__name__: each for each in listed}
