"""Equations as fast functions over all cards of a log."""

from __future__ import annotations

from collections.abc import Hashable
from functools import cache, cached_property, lru_cache
from typing import NamedTuple, cast

import numpy as np

from srs_eval.engine.assembly import Precision
from srs_eval.engine.equations import Equations
from srs_eval.engine.fisher_kernel import fisher_kernel
from srs_eval.engine.gradient_kernel import gradient_kernel
from srs_eval.engine.kernel_writer import walk_kernel
from srs_eval.engine.layout import LANES, Packed, aligned
from srs_eval.engine.machine import CompiledKernel
from srs_eval.engine.tracing import Traced, trace
from srs_eval.nouns import FloatArray, IntArray

_TILE = 3  # the fastest of 2, 3 and 4, by a little, on a processor with AVX-512
_MODELS_KEPT = 64
_ROUNDING = {dtype: np.finfo(dtype).eps for dtype in (np.float32, np.float64)}


class Gradient(NamedTuple):
    """Loss and its derivatives by the parameters, float64 [parameters]."""

    loss: float
    gradient: FloatArray


class Fisher(NamedTuple):
    """Loss, gradient, and Fisher information, float64 [parameters, parameters]."""

    loss: float
    gradient: FloatArray
    information: FloatArray


def compiled(equations: Equations) -> CompiledModel:
    """Return the fast functions of a model, made when they are first called.

    Equal equations share them, and so do instances of a class that has no attributes.
    """
    kind = type(equations)
    if kind.__hash__ is not object.__hash__ and kind.__hash__ is not None:
        return _compiled(cast(Hashable, equations), kind)
    slots = [name for base in kind.__mro__ for name in getattr(base, "__slots__", ())]
    if kind.__hash__ is None or slots or getattr(equations, "__dict__", None):
        raise TypeError(
            f"{kind.__name__} has attributes, and equal ones cannot be told to be equal: "
            "make it a frozen dataclass, @dataclass(frozen=True)"
        )
    return _compiled(None, kind)


@lru_cache(maxsize=_MODELS_KEPT)
def _compiled(equations: Hashable | None, kind: type[Equations]) -> CompiledModel:
    return CompiledModel(kind() if equations is None else cast(Equations, equations))


class CompiledModel:
    """The fast functions of a model.

    Predictions are computed in double precision; loss and derivatives in that of the packed
    reviews: single precision is twice as fast and enough to fit by.
    """

    def __init__(self, equations: Equations) -> None:
        self.equations = equations
        self.states = len(equations.state_names)
        self.size = len(equations.parameters)
        self._gradient = cache(self._compiled_gradient)
        self._fisher = cache(self._compiled_fisher)

    @cached_property
    def _traced(self) -> Traced:
        return trace(self.equations)

    @cached_property
    def _walk(self) -> CompiledKernel:
        return CompiledKernel(walk_kernel(self._traced, "double"))

    def _compiled_gradient(self, precision: Precision, *, public: bool) -> CompiledKernel:
        traced = trace(self.equations, public=True) if public else self._traced
        return CompiledKernel(gradient_kernel(traced, precision))

    def _compiled_fisher(self, precision: Precision) -> tuple[CompiledKernel, int, IntArray]:
        code = fisher_kernel(self._traced, precision, tile=_TILE)
        # All derivatives and the residual, without what fills the last tile.
        places = _places_in_tiles(code.columns)[: code.quantities + 1, : code.quantities]
        first = 1 + code.quantities * self.size
        return CompiledKernel(code.kernel), code.quantities, first + places

    def walk(self, w: FloatArray, packed: Packed) -> tuple[FloatArray, FloatArray]:
        """Predict every review, packed in double precision, and trace the state.

        Returns p [places, LANES], NaN at first reviews, and states after each review [places,
        states, LANES].
        """
        width = 1 + self.states
        places = len(packed.reviews)
        out = aligned(places * width * LANES, np.float64)
        self._walk(np.ascontiguousarray(w, np.float64), packed, out)
        columns = out.reshape(places, width, LANES).astype(np.float64, copy=False)
        return columns[:, 0], columns[:, 1:]

    def gradient(self, w: FloatArray, packed: Packed, *, public: bool = False) -> Gradient:
        """Sum the weighted log loss and its gradient over the packed reviews.

        With `public`, the loss is that of the public trainer; see `trace`.
        """
        kernel = self._gradient(_precision(packed), public=public)
        out = np.zeros(kernel.code.outputs)
        kernel(np.ascontiguousarray(w, np.float64), packed, out)
        return Gradient(float(out[0]), out[1:])

    def fisher(self, w: FloatArray, packed: Packed) -> Fisher:
        """Sum the weighted log loss, its gradient and the Fisher information."""
        kernel, quantities, places = self._fisher(_precision(packed))
        out = np.zeros(kernel.code.outputs)
        kernel(np.ascontiguousarray(w, np.float64), packed, out)
        chain = out[1 : 1 + quantities * self.size].reshape(quantities, self.size)
        products = out.take(places)
        with np.errstate(over="ignore", invalid="ignore"):  # who fits looks at the numbers
            by_w = products @ chain
            information = chain.T @ by_w[:quantities]
            # Where a parameter acts in ways that nearly cancel, what is left is rounding error.
            noise = _ROUNDING[kernel.dtype] * (chain**2).T @ products.diagonal()
        on_diagonal = information.reshape(-1)[:: self.size + 1]
        np.maximum(on_diagonal, noise, out=on_diagonal)
        return Fisher(float(out[0]), by_w[quantities], information)


def _precision(packed: Packed) -> Precision:
    return "float" if packed.reviews.dtype == np.float32 else "double"


def _places_in_tiles(columns: int) -> IntArray:
    """Find the entries of a symmetric matrix among the tiles of its lower triangle.

    The tiles stand one after the other, row by row, and so do the numbers in each.
    """
    i, j = np.indices((columns, columns))
    low, high = np.maximum(i, j), np.minimum(i, j)
    down, across = low // _TILE, high // _TILE
    tile = down * (down + 1) // 2 + across
    places: IntArray = (tile * _TILE + low % _TILE) * _TILE + high % _TILE
    return places
