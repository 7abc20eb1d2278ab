"""Equations as fast functions over all cards of a log."""

from __future__ import annotations

from collections.abc import Hashable
from functools import cache, cached_property, lru_cache
from typing import NamedTuple, cast

import numpy as np

from srs_eval.engine.equations import Equations
from srs_eval.engine.kernels import KernelCode, fisher_kernel, gradient_kernel, walk_kernel
from srs_eval.engine.machine import compiled_function
from srs_eval.engine.packing import LANES, Packed, aligned
from srs_eval.engine.tracing import Traced, trace
from srs_eval.engine.writer import Precision
from srs_eval.nouns import FloatArray

_CACHED_MODELS = 64


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

    Equal equations share them.
    """
    kind = type(equations)
    if kind.__hash__ in (None, object.__hash__):  # equal ones cannot be told to be equal
        raise TypeError(f"{kind.__name__}: make it a frozen dataclass, @dataclass(frozen=True)")
    return _compiled(cast(Hashable, equations))


@lru_cache(maxsize=_CACHED_MODELS)
def _compiled(equations: Hashable) -> CompiledModel:
    return CompiledModel(cast(Equations, equations))


class Kernel:
    """A kernel ready to be called."""

    def __init__(self, code: KernelCode) -> None:
        self.code = code
        self._function = compiled_function(code.function)

    def __call__(self, w: FloatArray, packed: Packed, out: FloatArray) -> FloatArray:
        """Run the kernel on reviews in its own precision; write to `out`, and return it."""
        assert packed.precision == self.code.precision
        w = np.ascontiguousarray(w, np.float64)
        vectors = packed.longest * self.code.scratch + self.code.more_scratch
        scratch = aligned(vectors * LANES, packed.precision)
        self._function(w.ctypes.data, *packed.addresses, scratch.ctypes.data, out.ctypes.data)
        return out

    def numbers(self, w: FloatArray, packed: Packed) -> FloatArray:
        """Run a kernel that writes numbers; return them."""
        return self(w, packed, np.zeros(self.code.outputs))


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
    def _walk(self) -> Kernel:
        return Kernel(walk_kernel(self._traced, "float64"))

    def _compiled_gradient(self, precision: Precision, *, public: bool) -> Kernel:
        traced = trace(self.equations, public=True) if public else self._traced
        return Kernel(gradient_kernel(traced, precision))

    def _compiled_fisher(self, precision: Precision) -> Kernel:
        return Kernel(fisher_kernel(self._traced, precision))

    def walk(self, w: FloatArray, packed: Packed) -> tuple[FloatArray, FloatArray]:
        """Predict every review, packed in double precision, and trace the state.

        Returns p [places, LANES], NaN at first reviews, and states after each review [places,
        states, LANES].
        """
        places, width = len(packed.reviews), 1 + self.states
        out = self._walk(w, packed, aligned(places * width * LANES, "float64"))
        columns = out.reshape(places, width, LANES)
        return columns[:, 0], columns[:, 1:]

    def gradient(self, w: FloatArray, packed: Packed, *, public: bool = False) -> Gradient:
        """Sum the weighted log loss and its gradient over the packed reviews.

        With `public`, the loss is that of the public trainer; see `trace`.
        """
        out = self._gradient(packed.precision, public=public).numbers(w, packed)
        return Gradient(float(out[0]), out[1:])

    def fisher(self, w: FloatArray, packed: Packed) -> Fisher:
        """Sum the weighted log loss, its gradient and the Fisher information."""
        kernel = self._fisher(packed.precision)
        out, count = kernel.numbers(w, packed), kernel.code.quantities
        first = 1 + count * self.size
        chain = out[1:first].reshape(count, self.size)
        # All derivatives and the residual, without what fills the last tile.
        products = out[first:].reshape(kernel.code.scratch, -1)
        products = products[: count + 1, :count].copy()
        with np.errstate(over="ignore", invalid="ignore"):  # who fits looks at the numbers
            by_w = products @ chain
            information = chain.T @ by_w[:count]
            # Where a parameter acts in ways that nearly cancel, what is left is rounding error.
            rounding = np.finfo(packed.precision).eps
            noise = rounding * (chain**2).T @ products.diagonal()
        on_diagonal = information.reshape(-1)[:: self.size + 1]
        np.maximum(on_diagonal, noise, out=on_diagonal)
        return Fisher(float(out[0]), by_w[count], information)
