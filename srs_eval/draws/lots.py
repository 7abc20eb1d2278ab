"""The intervals that an answer could have been given, and how probable each was."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from srs_eval.nouns import BoolArray, FloatArray, IntArray

_DIGITS = 9


@dataclass(frozen=True, slots=True)
class Lots:
    """Possible intervals of n answers; those of an answer are together, in ascending order."""

    begins: IntArray  # [n + 1]: Where those of each answer begin, and the end
    days: IntArray  # [m]
    probability: FloatArray  # [m]: Positive; sums to 1 for each answer

    @classmethod
    def uniform(cls, low: IntArray, high: IntArray) -> Self:
        """Return the lots of whole days from `low` to `high`, which are equally probable.

        >>> Lots.uniform(np.array([2, 7]), np.array([4, 7])).days.tolist()
        [2, 3, 4, 7]
        """
        count = high - low + 1
        begins = np.concatenate([[0], np.cumsum(count)])
        days = np.repeat(low - begins[:-1], count) + np.arange(begins[-1])
        return cls(begins, days, np.repeat(1 / count, count))

    @classmethod
    def collected(cls, answer: IntArray, days: IntArray, weight: FloatArray, n: int) -> Self:
        """Return the lots of n answers from weights, adding those of the same answer and days."""
        base = 1 + int(days.max(initial=0))
        pairs, place = np.unique(answer * base + days, return_inverse=True)
        total = np.bincount(place, weight)
        answers, distinct = np.divmod(pairs, base)
        begins = np.searchsorted(answers, np.arange(n + 1))
        return cls(begins, distinct, total / np.add.reduceat(total, begins[:-1])[answers])

    def __len__(self) -> int:
        """Count the answers."""
        return len(self.begins) - 1

    @property
    def count(self) -> IntArray:
        """Number of possible intervals, [n]."""
        return np.diff(self.begins)

    @property
    def answer(self) -> IntArray:
        """Answer of each possible interval, [m]."""
        return np.repeat(np.arange(len(self)), self.count)

    @property
    def low(self) -> IntArray:
        """Shortest possible interval, [n]."""
        return self.days[self.begins[:-1]]

    @property
    def high(self) -> IntArray:
        """Longest possible interval, [n]."""
        return self.days[self.begins[1:] - 1]

    @property
    def mean_log(self) -> FloatArray:
        """Mean of the logarithm of the interval, [n]."""
        return self.mean(np.log(self.days))

    def mean(self, values: FloatArray) -> FloatArray:
        """Return the mean for each answer, [n], of values of the possible intervals, [m]."""
        return np.add.reduceat(self.probability * values, self.begins[:-1])

    def take(self, answers: IntArray | BoolArray) -> Lots:
        """Select answers, by number or by mask, in the given order."""
        chosen = np.arange(len(self))[answers]
        count = self.count[chosen]
        begins = np.concatenate([[0], np.cumsum(count)])
        kept = np.repeat(self.begins[chosen] - begins[:-1], count) + np.arange(begins[-1])
        return Lots(begins, self.days[kept], self.probability[kept])

    def below(self, drawn: IntArray) -> tuple[FloatArray, FloatArray]:
        """Return the probability of less than was drawn, and of exactly that, both [n]."""
        mark = drawn[self.answer]
        return self.mean((self.days < mark).astype(float)), self.mean(
            (self.days == mark).astype(float)
        )

    def cells(self, *groups: IntArray) -> IntArray:
        """Give a number to the answers whose groups and lots are the same, [n]."""
        spread = self.mean(np.log(self.days) ** 2)
        keys = [*groups, self.low, self.high, self.mean_log.round(_DIGITS), spread.round(_DIGITS)]
        _, cell = np.unique(np.stack(keys), axis=1, return_inverse=True)
        return cell.ravel()


def joined(parts: list[Lots]) -> Lots:
    """Return the lots of all answers of several parts, in their order."""
    ends = np.cumsum([0, *(len(part.days) for part in parts)])
    begins = [part.begins[:-1] + end for part, end in zip(parts, ends, strict=False)]
    return Lots(
        np.concatenate([*begins, ends[-1:]]),
        np.concatenate([part.days for part in parts]),
        np.concatenate([part.probability for part in parts]),
    )
