"""Any algorithm, corrected by trees that were grown on the reviews of other users."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import ClassVar, Self, cast

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit

from srs_eval.algorithms.combined.wrapping import Wrapper, require_algorithm
from srs_eval.algorithms.options import require_whole
from srs_eval.algorithms.recurrent.weights import TrainingLog, Weights, read_weights
from srs_eval.algorithms.sessions.answers import Answers
from srs_eval.algorithms.sessions.session_filter import SessionFilter, SessionModel
from srs_eval.algorithms.sessions.trees import Nodes, Recipe, as_nodes, grown, values
from srs_eval.algorithms.sessions.walk import Walk
from srs_eval.engine.probability import uncertain
from srs_eval.errors import ConfigError, FitSkipped
from srs_eval.nouns import Algorithm, FloatArray, IntArray, Learned, Reviews, When

# Learned from simulated users by the command that the class names.
_SIMULATED = "simulated"
_SHIPPED = Path(__file__).with_name("population_start.safetensors")
_LEAST_DAYS = 1e-3
# What is known of a review beside the features of the session, and what is made of these.
_FACTS = ("elapsed", "earlier_reviews", "lapses", "last_rating", "last_elapsed", "last_seconds")
_FILTERED = ("filtered_log_odds", "filtered_less_base", "weighted_sum")


def _facts(answers: Answers, rows: IntArray) -> list[FloatArray]:
    reviews = answers.reviews
    columns = (
        np.log(np.maximum(reviews.elapsed, _LEAST_DAYS)),
        answers.cards.nth,
        answers.cards.earlier(~reviews.recalled),
        answers.of_previous(reviews.rating),
        np.log1p(answers.of_previous(np.maximum(reviews.elapsed, 0))),
        answers.of_previous(answers.log_seconds),
    )
    return [column[rows].astype(np.float64) for column in columns]


def _names(base: SessionFilter) -> tuple[str, ...]:
    """Return the names of what trees read, in the order of `_inputs`."""
    own = base.names
    return (*own, *_FACTS, "base_log_odds", *(_FILTERED if own else ()))


def _inputs(
    base: SessionFilter, model: SessionModel, walked: Walk, p: FloatArray, some: IntArray
) -> NDArray[np.float32]:
    """Gather what trees read at some of the later-day reviews, [some, inputs].

    Features that a log lacks, such as those of siblings, are 0 as where there is nothing to tell.
    """
    features, rows, z = walked.features[some], walked.rows[some], walked.z[some]
    found = dict(zip(model.prior.features, features.T, strict=True))
    columns = [found.get(name, np.zeros(len(some))) for name in base.names]
    columns += [*_facts(walked.answers, rows), z]
    if base.names:
        filtered = logit(p[rows])
        weighted = np.einsum("ij,ij->i", features, walked.live[some])
        columns += [filtered, filtered - z, weighted]
    return np.stack(columns, axis=1, dtype=np.float32, casting="same_kind")


@dataclass(frozen=True, slots=True)
class PopulationModel:
    """A fitted base, and the trees that correct it at later-day reviews."""

    base: SessionFilter
    filtered: SessionModel
    trees: Nodes | None

    @property
    def parameters(self) -> tuple[float, ...]:
        """Weights of the base; those of the trees belong to everybody."""
        return self.filtered.parameters

    @property
    def learned(self) -> Learned:
        """What the fit of the base recorded, and whether there are no trees."""
        learned = self.filtered.learned
        if self.trees is not None:
            return learned
        notes = ("no trees were learned from other users: the base is not corrected", learned.note)
        return replace(learned, note="; ".join(filter(None, notes)))

    def predict(self, reviews: Reviews, rows: IntArray) -> FloatArray:
        """Predict each of `rows`, having learned from all answers before it.

        Reviews on the day of the card's previous review are predicted as by the base.
        """
        if not len(rows):
            return np.empty(0)
        walked = self.filtered.walked(reviews, rows)
        p = uncertain(self.filtered.probabilities(walked))
        if self.trees is not None:
            some = np.flatnonzero(np.isin(walked.rows, rows))
            moved = values(self.trees, _inputs(self.base, self.filtered, walked, p, some))
            p[walked.rows[some]] = expit(logit(p[walked.rows[some]]) + moved)
        return uncertain(p[rows])


def _session_filter() -> Algorithm:
    # Its declarations are properties, which mypy takes for less than attributes.
    return cast(Algorithm, SessionFilter())


@dataclass(frozen=True)
class Population(Wrapper):
    r"""Another algorithm, corrected by gradient-boosted trees that were grown on other users.

    Fitted to a user is the base, by default `SessionFilter`. Trees that other people's reviews
    taught what such a fit leaves over start from its log-odds and move them:

        logit(p) = logit(p_base) + sum of the leaves that the review ends in.

    Reads elapsed time, ratings, answer times, and what the base reads. Trees see the features of
    the session, six facts of the review (elapsed time, number of earlier reviews and of lapses,
    last rating, interval and answer time), the log-odds of what the filter corrects, and what it
    made of them. On another base than `SessionFilter`, such as
    ``fsrs7``, they read the facts and its log-odds alone: residual boosting on a memory model.
    Only later-day reviews are corrected. Number of parameters: those of the base. Predictions
    are of no use to plan a review, because they are made when it comes. No published row.

    Trees are grown as in Friedman (2001), *Greedy Function Approximation: A Gradient Boosting
    Machine*, https://doi.org/10.1214/aos/1013203451, with Newton steps in the leaves and
    scikit-learn's regression trees on histograms: 15 leaves of 200 reviews or more, learning rate
    0.03, L2 penalty 20, half of the inputs and 70 % of the reviews for each. A review of a user
    who has n counts 1/sqrt(n), so that long logs count more, and none decides. What they learn
    from was predicted by fits to earlier reviews. They are kept as numbers in a safetensors file,
    which is checked when it is read and holds no code.

    With ``data=synthetic data.users=200 data.max_reviews=1500 protocol.user_folds=2``, simulated
    users teach each other, in fractional days: log loss 0.3016 where the filter has 0.3116 (99 %
    interval of the difference -0.0113 to -0.0085, 189 of 200 users better). What they teach does
    not carry over to the real logs at hand. With ``weights=simulated`` (50 trees) the public log
    of a real user has 0.4303 where the filter has 0.4259 (+0.0044, 99 % interval +0.0008 to
    +0.0082), a public collection 0.0902 where it has 0.0892 (+0.0010, -0.0027 to +0.0044), and
    two short logs 0.0679 where it has 0.0581. So that is not the default: learn from people, if
    you have the logs of some. Its command::

        python -m srs_eval.pretrain algo=population algo.trees=50 data=synthetic \
            data.users=200 data.seed=777 data.max_reviews=2000 \
            protocol=srs_benchmark_equalised weights=population_start.safetensors

    Parameters
    ----------
    base : Algorithm
        What is fitted to each user, and corrected.
    weights : "simulated", str, Path, Weights or None
        The trees: a file that ``srs_eval.pretrain`` made; "simulated" for those that come with
        srs_eval, of the base `SessionFilter` with all features; or None for none, so that
        predictions are those of the base. With ``protocol.user_folds=2`` and None, trees are
        grown for each fold.
    trees : int
        How many `pretrain` grows.
    """

    same_day: ClassVar[bool] = True
    when: ClassVar[When] = "at_review"
    name: ClassVar[str] = "population"

    base: Algorithm = field(default_factory=_session_filter)
    weights: str | Path | Weights | None = None
    trees: int = 100
    start: Weights | None = field(init=False, repr=False, compare=False)
    nodes: Nodes | None = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Read the trees, and refuse options out of range."""
        require_algorithm(self.name, "base", self.base)
        require_whole(self.name, "trees", self.trees, least=1, most=2_000)
        start, nodes = self._start(), None
        if start is not None:
            if start.network != self.name:
                raise ConfigError(f"population: these weights are those of {start.network}")
            nodes = as_nodes(start, _names(self._filter))
        object.__setattr__(self, "start", start)
        object.__setattr__(self, "nodes", nodes)

    def _start(self) -> Weights | None:
        if self.weights is None or isinstance(self.weights, Weights):
            return self.weights
        shipped = self.weights == _SIMULATED
        return read_weights(_SHIPPED if shipped else Path(self.weights).expanduser())

    @property
    def _filter(self) -> SessionFilter:
        """The base, as a filter without features where it is none."""
        base: object = self.base
        if isinstance(base, SessionFilter):
            return base
        return SessionFilter(self.base, features="none")

    @property
    def pretrained(self) -> bool:
        """Whether it, or its base, starts from what was learned from other users."""
        return self.start is not None or bool(getattr(self.base, "pretrained", False))

    def fit(self, reviews: Reviews, rows: IntArray, rng: np.random.Generator) -> PopulationModel:
        """Fit the base; raise `FitSkipped` if the trees were learned from this user."""
        if self.start is not None:
            self.start.refuse(self.name, reviews)
        base = self._filter
        return PopulationModel(base, base.fit(reviews, rows, rng), self.nodes)

    def pretrain(self, users: Iterable[TrainingLog], rng: np.random.Generator) -> Self:
        """Grow trees on what fits of the base leave over at the given rows of many users."""
        base = self._filter
        logs, shown, starts, outcomes, weight = [], [], [], [], []
        for reviews, rows in users:
            try:
                model = base.fit(reviews, np.sort(rows), rng)
            except FitSkipped:
                continue
            walked = model.walked(reviews, rows)
            some = np.flatnonzero(np.isin(walked.rows, rows))
            some = some[some >= walked.first]
            if not len(some):
                continue
            p = uncertain(model.probabilities(walked))
            row = walked.rows[some]
            shown.append(_inputs(base, model, walked, p, some))
            starts.append(logit(p[row]))
            outcomes.append(reviews.recalled[row])
            weight.append(np.full(len(row), len(row) ** -0.5))
            logs.append((reviews, row))
        if not logs:
            raise ConfigError("population: the given users have no reviews to learn from")
        recipe, together = Recipe(self.trees), np.concatenate(weight)
        together *= len(together) / together.sum()
        nodes = grown(
            np.concatenate(shown),
            np.concatenate(starts),
            np.concatenate(outcomes),
            together,
            recipe,
            rng,
        )
        inputs, sizes = list(_names(base)), nodes.shape[:2]
        learned = Weights.learned(
            self.name, sizes, nodes.ravel(), logs, inputs=inputs, **asdict(recipe)
        )
        return replace(self, weights=learned)
