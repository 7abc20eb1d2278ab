"""Models of no use to anyone: random formulas of everything that authors may write.

Their values stay in a range where single precision means something: what is divided by,
raised to a power, or taken the logarithm of is kept away from 0, and states are brought back
between 0.05 and 20.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

from srs_eval.engine.equations import Maths, State, Value
from srs_eval.engine.parameters import ParameterSpace

Tree = tuple[Any, ...]

_LOW, _HIGH = 0.05, 20.0


def _positive(m: Maths, x: Value) -> Value:
    return 0.3 + x * x / (1 + m.maximum(x, -x))


def _small(m: Maths, x: Value) -> Value:
    """Bring between -2 and 2."""
    return 2 * x / (1 + m.maximum(x, -x))


def _choice(m: Maths, a: Value, b: Value, c: Value, d: Value) -> Value:
    notice = getattr(m, "notice", None)  # the oracle wants to know of near ties
    if notice is not None:
        notice(a, b)
    return m.where(a < b, c, d)


_OPERATIONS: Mapping[str, tuple[int, Callable[..., Value]]] = {
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
_RATINGS: Mapping[str, Callable[[Value], Value]] = {
    "failed": lambda rating: rating <= 1,
    "passed": lambda rating: rating > 1,
    "hard": lambda rating: rating == 2,
    "not easy": lambda rating: rating != 4,
    "good or easy": lambda rating: rating >= 3,
}


def _value(m: Maths, tree: Tree, facts: Mapping[str, Value]) -> Value:
    kind, *rest = tree
    if kind == "number":
        return rest[0]
    if kind == "fact":
        return facts[rest[0]]
    if kind == "rounded":
        return m.rint(facts["rating"] * 0.7) - 1
    if kind in _RATINGS:
        yes, no = (_value(m, branch, facts) for branch in rest)
        return m.where(_RATINGS[kind](facts["rating"]), yes, no)
    return _OPERATIONS[kind][1](m, *(_value(m, branch, facts) for branch in rest))


@dataclass(frozen=True, slots=True)
class RandomEquations:
    """A model made of trees of operations.

    Attributes
    ----------
    size : int
        Number of parameters.
    first, further : tuple of trees
        For each state: its start and its update. A plain number in `first` is handed on as
        it is, as authors do.
    recall : tree
        What decides on recall.
    """

    size: int
    first: tuple[Tree, ...]
    further: tuple[Tree, ...]
    recall: Tree

    @property
    def state_names(self) -> tuple[str, ...]:
        return tuple(f"state {index}" for index in range(len(self.first)))

    @property
    def parameters(self) -> ParameterSpace:
        return ParameterSpace((0.5,) * self.size, (-2.0,) * self.size, (2.0,) * self.size)

    def init(self, m: Maths, w: Value, rating: Value) -> State:
        facts = self._facts(w) | {"rating": rating}
        return tuple(_start(m, tree, facts) for tree in self.first)

    def curve(self, m: Maths, w: Value, state: State, elapsed: Value) -> Value:
        facts = self._facts(w) | _of_state(state) | _of_elapsed(m, elapsed)
        return 0.02 + 0.96 / (1 + m.exp(-_small(m, _value(m, self.recall, facts))))

    def step(
        self, m: Maths, w: Value, state: State, elapsed: Value, rating: Value, p: Value
    ) -> State:
        facts = self._facts(w) | _of_state(state) | _of_elapsed(m, elapsed)
        facts |= {"rating": rating, "p": p}
        return tuple(m.clip(_value(m, tree, facts), _LOW, _HIGH) for tree in self.further)

    def _facts(self, w: Value) -> dict[str, Value]:
        return {f"w{index}": w[index] for index in range(self.size)}


def _start(m: Maths, tree: Tree, facts: Mapping[str, Value]) -> Value:
    if tree[0] == "number":
        return tree[1]
    return m.clip(_value(m, tree, facts), _LOW, _HIGH)


def _of_state(state: State) -> dict[str, Value]:
    return {f"s{index}": value for index, value in enumerate(state)}


def _of_elapsed(m: Maths, elapsed: Value) -> dict[str, Value]:
    return {"elapsed": elapsed / (3 + elapsed), "log elapsed": m.log(1 + elapsed) / 4}


def _trees(names: list[str]) -> st.SearchStrategy[Tree]:
    numbers = st.tuples(st.just("number"), st.floats(-2, 2, width=16))
    leaves = st.tuples(st.just("fact"), st.sampled_from(names)) | numbers
    if "rating" in names:
        leaves |= st.just(("rounded",))

    def larger(inner: st.SearchStrategy[Tree]) -> st.SearchStrategy[Tree]:
        made = [
            st.tuples(st.just(name), *[inner] * arity) for name, (arity, _) in _OPERATIONS.items()
        ]
        if "rating" in names:
            made += [st.tuples(st.just(name), inner, inner) for name in _RATINGS]
        return st.one_of(made)

    return st.recursive(leaves, larger, max_leaves=12)


@st.composite
def random_models(draw: st.DrawFn) -> RandomEquations:
    """Models of 1 to 3 states and 1 to 6 parameters."""
    size, states = draw(st.integers(1, 6)), draw(st.integers(1, 3))
    parameters = [f"w{index}" for index in range(size)]
    before = [*parameters, *(f"s{index}" for index in range(states)), "elapsed", "log elapsed"]
    first, further = _trees([*parameters, "rating"]), _trees([*before, "rating", "p"])
    return RandomEquations(
        size,
        tuple(draw(first) for _ in range(states)),
        tuple(draw(further) for _ in range(states)),
        draw(_trees(before)),
    )
