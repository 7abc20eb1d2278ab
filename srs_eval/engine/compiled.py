"""Equations as fast functions over all cards of a log."""

from __future__ import annotations

import gc
from collections.abc import Callable
from functools import cache, lru_cache
from typing import NamedTuple

import numpy as np

from srs_eval.data.reviews import FloatArray
from srs_eval.engine.equations import Equations
from srs_eval.engine.kernels import Kernel, fisher_kernel, gradient_kernel, walk_kernel
from srs_eval.engine.packing import LANES, Packed, aligned
from srs_eval.engine.tracing import Traced, trace
from srs_eval.engine.writer import Precision

_ROUNDING = {name: np.finfo(name).eps for name in ("float32", "float64")}


class Gradient(NamedTuple):
    """Loss and its derivatives by the parameters, float64 [parameters]."""

    loss: float
    gradient: FloatArray


class Fisher(NamedTuple):
    """Loss, gradient, and Fisher information, float64 [parameters, parameters]."""

    loss: float
    gradient: FloatArray
    information: FloatArray


@lru_cache(maxsize=64)
def compiled(equations: Equations) -> CompiledModel:
    """Return the fast functions of a model, made when they are first called.

    Equal equations share them.
    """
    kind = type(equations)
    if kind.__hash__ is object.__hash__:  # equal ones cannot be told to be equal
        raise TypeError(f"{kind.__name__}: make it a frozen dataclass, @dataclass(frozen=True)")
    return CompiledModel(equations)


class CompiledModel:
    """The fast functions of a model.

    Predictions are computed in double precision; loss and derivatives in that of the packed
    reviews: single precision is twice as fast and enough to fit by.
    """

    def __init__(self, equations: Equations) -> None:
        self.equations = equations
        self.size = len(equations.parameters)
        self._kernel = cache(self._written)

    def _written(
        self, write: Callable[[Traced, Precision], Kernel], precision: Precision, *, public: bool
    ) -> Kernel:
        collects = gc.isenabled()
        gc.disable()  # a kernel is many small objects; to look for garbage among them takes long
        try:
            return write(trace(self.equations, public=public), precision)
        finally:
            if collects:
                gc.enable()

    def walk(self, w: FloatArray, packed: Packed) -> tuple[FloatArray, FloatArray]:
        """Predict every review, packed in double precision, and trace the state.

        Returns p [places, LANES], NaN at first reviews, and states after each review [places,
        states, LANES].
        """
        places, width = len(packed.reviews), 1 + len(self.equations.state_names)
        out = aligned(places * width * LANES, "float64")
        self._kernel(walk_kernel, "float64", public=False)(w, packed, out)
        columns = out.reshape(places, width, LANES)
        return columns[:, 0], columns[:, 1:]

    def gradient(self, w: FloatArray, packed: Packed, *, public: bool = False) -> Gradient:
        """Sum the weighted log loss and its gradient over the packed reviews.

        With `public`, the loss is that of the public trainer; see `trace`.
        """
        out = self._kernel(gradient_kernel, packed.precision, public=public)(w, packed)
        return Gradient(float(out[0]), out[1:])

    def fisher(self, w: FloatArray, packed: Packed) -> Fisher:
        """Sum the weighted log loss, its gradient and the Fisher information."""
        kernel = self._kernel(fisher_kernel, packed.precision, public=False)
        out, count = kernel(w, packed), kernel.quantities
        first = 1 + count * self.size
        chain = out[1:first].reshape(count, self.size)
        # All derivatives and the residual, without what fills the last tile.
        products = out[first:].reshape(kernel.scratch, -1)[: count + 1, :count].copy()
        with np.errstate(over="ignore", invalid="ignore"):  # who fits looks at the numbers
            by_w = products @ chain
            information = chain.T @ by_w[:count]
            # Where a parameter acts in ways that nearly cancel, what is left is rounding error.
            noise = _ROUNDING[packed.precision] * (chain**2).T @ products.diagonal()
        on_diagonal = information.reshape(-1)[:: self.size + 1]
        np.maximum(on_diagonal, noise, out=on_diagonal)
        return Fisher(float(out[0]), by_w[count], information)
