"""Models of a line or two, and random ones of everything that authors may write."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from hypothesis import strategies as st

from srs_eval.engine.compiled import CompiledModel
from srs_eval.engine.parameters import ParameterSpace


@dataclass(frozen=True)
class SmallEquations:
    """Equations that are handed over as functions; by default a state that stays 1."""

    curve_of: Callable[..., Any] = lambda m, w, state, elapsed: 0.9
    step_of: Callable[..., Any] = lambda m, w, state, elapsed, rating, p: state
    init_of: Callable[..., Any] = lambda m, w, rating: (1.0,)
    space: ParameterSpace = field(default=ParameterSpace((0.5,), (0.0,), (1.0,)))
    state_names: tuple[str, ...] = ("state",)

    @property
    def parameters(self):
        return self.space

    def init(self, m, w, rating):
        return self.init_of(m, w, rating)

    def curve(self, m, w, state, elapsed):
        return self.curve_of(m, w, state, elapsed)

    def step(self, m, w, state, elapsed, rating, p):
        return self.step_of(m, w, state, elapsed, rating, p)


def small_model(**given):
    """Make the functions of a small model."""
    return CompiledModel(SmallEquations(**given))


def space_of(defaults, lower=-10.0, upper=10.0, ordered=()):
    """Make a space with the same bounds for all."""
    n = len(defaults)
    return ParameterSpace(defaults, (lower,) * n, (upper,) * n, ordered=ordered)


def _positive(m, x):
    """Keep away from 0, where single precision means nothing after a division or a logarithm."""
    return 0.3 + x * x / (1 + m.maximum(x, -x))


def _small(m, x):
    """Bring between -2 and 2."""
    return 2 * x / (1 + m.maximum(x, -x))


def _choice(m, a, b, c, d):
    notice = getattr(m, "notice", None)  # the oracle wants to know of near ties
    if notice is not None:
        notice(a, b)
    return m.where(a < b, c, d)


_OPERATIONS = {
    "add": (2, lambda m, a, b: a + b),
    "subtract": (2, lambda m, a, b: a - b),
    "multiply": (2, lambda m, a, b: a * _small(m, b)),
    "divide": (2, lambda m, a, b: a / _positive(m, b)),
    "negate": (1, lambda m, a: -a),
    "square": (1, lambda m, a: _small(m, a) ** 2),
    "root": (1, lambda m, a: _positive(m, a) ** 0.5),
    "power": (2, lambda m, a, b: _positive(m, _small(m, a)) ** _small(m, b)),
    "inverse": (1, lambda m, a: _positive(m, a) ** -1),
    "power of two": (1, lambda m, a: 2 ** _small(m, a)),
    "exp": (1, lambda m, a: m.exp(_small(m, a))),
    "log": (1, lambda m, a: m.log(_positive(m, a))),
    "minimum": (2, lambda m, a, b: m.minimum(a, b)),
    "maximum": (2, lambda m, a, b: m.maximum(a, b)),
    "clip": (1, lambda m, a: m.clip(a, -1.3, 1.7)),
    "less": (4, _choice),
}
_RATINGS = {
    "failed": lambda rating: rating <= 1,
    "passed": lambda rating: rating > 1,
    "hard": lambda rating: rating == 2,
    "not easy": lambda rating: rating != 4,
    "good or easy": lambda rating: rating >= 3,
}


def _value(m, tree, facts):
    kind, *rest = tree
    if kind == "number":
        return rest[0]
    if kind == "fact":
        return facts[rest[0]]
    if kind == "rounded":
        return m.rint(facts["rating"] * 0.7) - 1
    branches = (_value(m, branch, facts) for branch in rest)
    if kind in _RATINGS:
        return m.where(_RATINGS[kind](facts["rating"]), *branches)
    return _OPERATIONS[kind][1](m, *branches)


def _facts(m, w, size, state=(), elapsed=0):
    facts = {f"w{index}": w[index] for index in range(size)}
    facts |= {f"s{index}": value for index, value in enumerate(state)}
    return facts | {"elapsed": elapsed / (3 + elapsed), "log elapsed": m.log(1 + elapsed) / 4}


def _trees(names):
    numbers = st.tuples(st.just("number"), st.floats(-2, 2, width=16))
    leaves = st.tuples(st.just("fact"), st.sampled_from(names)) | numbers
    inner = {name: arity for name, (arity, _) in _OPERATIONS.items()}
    if "rating" in names:
        leaves |= st.just(("rounded",))
        inner |= dict.fromkeys(_RATINGS, 2)
    return st.recursive(
        leaves,
        lambda tree: st.one_of(
            [st.tuples(st.just(name), *[tree] * arity) for name, arity in inner.items()]
        ),
        max_leaves=12,
    )


@st.composite
def random_models(draw):
    """Draw formulas with 1 to 3 states, from 0.05 to 20, and 1 to 6 parameters, of no use.

    A plain number at the start is handed on as it is, as authors do.
    """
    size, states = draw(st.integers(1, 6)), draw(st.integers(1, 3))
    parameters = [f"w{index}" for index in range(size)]
    before = [*parameters, *(f"s{index}" for index in range(states)), "elapsed", "log elapsed"]
    first, further = _trees([*parameters, "rating"]), _trees([*before, "rating", "p"])
    starts, updates = ([draw(tree) for _ in range(states)] for tree in (first, further))
    recall = draw(_trees(before))

    def between(m, trees, facts):
        return tuple(m.clip(_value(m, tree, facts), 0.05, 20.0) for tree in trees)

    def init(m, w, rating):
        facts = {"rating": rating, **_facts(m, w, size)}
        return tuple(
            tree[1] if tree[0] == "number" else between(m, [tree], facts)[0] for tree in starts
        )

    def curve(m, w, state, elapsed):
        score = _value(m, recall, _facts(m, w, size, state, elapsed))
        return 0.02 + 0.96 / (1 + m.exp(-_small(m, score)))

    def step(m, w, state, t, rating, p):
        return between(m, updates, {"rating": rating, "p": p, **_facts(m, w, size, state, t)})

    space = ParameterSpace((0.5,) * size, (-2.0,) * size, (2.0,) * size)
    return SmallEquations(curve, step, init, space, tuple(f"state {k}" for k in range(states)))
