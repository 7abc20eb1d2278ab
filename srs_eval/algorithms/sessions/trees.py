"""Gradient-boosted trees as numbers: grown from given log-odds, checked, and evaluated."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numba
import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from srs_eval.algorithms.recurrent.weights import Weights
from srs_eval.errors import ConfigError
from srs_eval.nouns import BoolArray, FloatArray, IntArray

# [trees, nodes, 3]: the input that a node asks for, or -1 for a leaf; the number up to which its
# rows go left, or the value of the leaf; the node to the left. That to the right is the next one,
# and both come after their parent, so that no path is longer than there are nodes.
Nodes = NDArray[np.float32]
_LEAF = -1
_COLUMNS = 3
_MOST_TREES, _MOST_NODES = 2_000, 1_023
# Of the information of a review, so that no target is infinite.
_LEAST_INFORMATION = 1e-6
# Inputs are replaced by the number of the quantile that they are in, of 255.
_SHARES = np.arange(1, 255) / 255


# A path has no vector form: each step depends on the one before.
@numba.njit()
def values(nodes: Nodes, inputs: NDArray[np.float32]) -> FloatArray:
    """Return for each row of `inputs` the sum of the leaves that it ends in."""
    found = np.zeros(len(inputs))
    for row in range(len(inputs)):
        for tree in range(len(nodes)):
            node = 0
            while nodes[tree, node, 0] >= 0:
                goes_right = inputs[row, int(nodes[tree, node, 0])] > nodes[tree, node, 1]
                node = int(nodes[tree, node, 2]) + goes_right
            found[row] += nodes[tree, node, 1]
    return found


def as_nodes(weights: Weights, inputs: tuple[str, ...]) -> Nodes:
    """Return the trees that weights hold, if they are trees that read just these inputs.

    Raise `ConfigError` with all that is wrong with them.
    """
    if problems := [*_of_inputs(weights.settings.get("inputs"), inputs)]:
        raise ConfigError(*problems)
    if problems := [*_of_shape(weights)]:
        raise ConfigError(*problems)
    nodes = np.array(weights.parameters, np.float32).reshape(-1, int(weights.sizes[1]), _COLUMNS)
    if problems := [*_of_nodes(nodes, len(inputs))]:
        raise ConfigError(*problems)
    return nodes


def _of_inputs(found: object, expected: tuple[str, ...]) -> Iterator[str]:
    """Compare what trees were grown on with what they would be shown."""
    if not isinstance(found, list | tuple) or not all(isinstance(name, str) for name in found):
        yield f"population: settings.inputs={found!r} of the weights must be a list of names"
    elif tuple(found) != expected:
        more = [name for name in found if name not in expected]
        fewer = [name for name in expected if name not in found]
        differences = [
            f"they read {', '.join(more)}, which this base does not give" if more else "",
            f"they know nothing of its {', '.join(fewer)}" if fewer else "",
        ]
        told = "; ".join(filter(None, differences)) or "they read the same in another order"
        yield (
            "population: these trees were grown for another base, or for other features of it: "
            f"{told}. Set algo.base to that base, or make trees for this one with srs_eval.pretrain"
        )


def _of_shape(weights: Weights) -> Iterator[str]:
    sizes = weights.sizes
    limits = (_MOST_TREES, _MOST_NODES)
    whole = len(sizes) == len(limits) and all(
        isinstance(size, int) and 1 <= size <= most
        for size, most in zip(sizes, limits, strict=True)
    )
    if not whole:
        yield (
            f"population: sizes={sizes} of the weights must be two whole numbers, of trees up to "
            f"{_MOST_TREES:,} and of nodes of a tree up to {_MOST_NODES:,}"
        )
    elif len(weights.parameters) != (expected := int(sizes[0] * sizes[1] * _COLUMNS)):
        yield (
            f"population: found {len(weights.parameters):,} numbers in the weights, expected "
            f"{expected:,}: {_COLUMNS} for each of {sizes[1]} nodes of {sizes[0]} trees"
        )


def _of_nodes(nodes: Nodes, inputs: int) -> Iterator[str]:
    """Find nodes that would read what is not there, or lead back or out of the tree."""
    asked, number, left = np.moveaxis(nodes, 2, 0)
    node = np.arange(nodes.shape[1])
    split = asked != _LEAF
    wrong_input = ~((asked == np.floor(asked)) & (asked >= _LEAF) & (asked < inputs))
    wrong_child = split & ~((left == np.floor(left)) & (left > node) & (left + 1 <= node[-1]))
    for wrong, column, what in (
        (
            wrong_input,
            asked,
            f"the number of an input: expected -1 for a leaf, or 0 to {inputs - 1}",
        ),
        (~np.isfinite(number), number, "a threshold or value: expected a finite number"),
        (wrong_child, left, "a child: expected a later node of the same tree"),
    ):
        if wrong.any():
            tree, first = np.argwhere(wrong)[0].tolist()
            yield (
                f"population: tree {tree}, node {first} of the weights: found "
                f"{column[tree, first]:g} as {what} ({wrong.sum():,} nodes are wrong in this way)"
            )


@dataclass(frozen=True, slots=True)
class Recipe:
    """How trees are grown."""

    trees: int
    leaves: int = 15
    smallest_leaf: int = 200  # Reviews in a leaf, at least
    learning_rate: float = 0.03
    l2: float = 20.0  # What draws the values of leaves to 0
    share_of_inputs: float = 0.5  # Of the inputs, what a tree may read
    share_of_reviews: float = 0.7  # Of the reviews, what a tree is grown on


def grown(
    inputs: NDArray[np.float32],
    start: FloatArray,
    recalled: BoolArray,
    weight: FloatArray,
    recipe: Recipe,
    rng: np.random.Generator,
) -> Nodes:
    """Grow trees that lower the weighted log loss of log-odds `start`, each by a Newton step.

    Each is a regression tree on the gradient over the information of a review, weighted by that
    information; its leaves are then given the step that all their reviews take together.
    """
    # Only here, because few runs grow trees.
    from sklearn.ensemble import HistGradientBoostingRegressor
    from threadpoolctl import threadpool_limits

    z = start.copy()
    # Once for all trees: the library would find quantiles anew for each.
    cuts = [np.unique(np.quantile(column, _SHARES, method="higher")) for column in inputs.T]
    codes = np.stack(
        [np.searchsorted(cut, column) for cut, column in zip(cuts, inputs.T, strict=True)], axis=1
    ).astype(np.float32)
    nodes = np.zeros((recipe.trees, 2 * recipe.leaves - 1, _COLUMNS), np.float32)
    nodes[:, :, 0] = _LEAF
    n_inputs = max(1, round(inputs.shape[1] * recipe.share_of_inputs))
    for number, tree in enumerate(nodes):
        p = expit(z)
        gradient = weight * (recalled - p)
        information = weight * np.maximum(p * (1 - p), _LEAST_INFORMATION)
        some = np.flatnonzero(rng.random(len(z)) < recipe.share_of_reviews)
        read = np.sort(rng.permutation(inputs.shape[1])[:n_inputs])
        if not len(some):
            continue
        one = HistGradientBoostingRegressor(
            max_iter=1,
            learning_rate=1.0,
            max_leaf_nodes=recipe.leaves,
            min_samples_leaf=recipe.smallest_leaf,
            l2_regularization=recipe.l2,
            early_stopping=False,
            random_state=number,
        )
        # One after the other: beside other processes, threads wait for each other.
        with threadpool_limits(limits=1, user_api="openmp"):
            found = one.fit(
                codes[np.ix_(some, read)],
                (gradient / information)[some],
                sample_weight=information[some],
            )
        # Private, but as old as the class, and what all programs read that translate its trees.
        _write(tree, found._predictors[0][0].nodes, read, cuts)
        leaf = values(tree[np.newaxis], inputs).astype(np.int64)
        step = _newton_steps(leaf[some], gradient[some], information[some], len(tree), recipe)
        is_leaf = tree[:, 0] == _LEAF
        tree[is_leaf, 1] = step[is_leaf]
        z += step[leaf]
    return nodes


def _newton_steps(
    leaf: IntArray, gradient: FloatArray, information: FloatArray, size: int, recipe: Recipe
) -> FloatArray:
    """Return the step of each leaf."""
    total = np.bincount(leaf, gradient, size)
    return recipe.learning_rate * total / (np.bincount(leaf, information, size) + recipe.l2)


def _write(
    tree: Nodes, found: NDArray[np.void], read: IntArray, cuts: list[NDArray[np.float32]]
) -> None:
    """Copy a tree that reads codes of the inputs `read`; the value of each leaf is its own place.

    Nodes are numbered anew, so that children stand together, after their parent.
    """
    order = [0]
    for place, number in enumerate(order):
        node = found[number]
        if node["is_leaf"]:
            tree[place] = _LEAF, place, 0
        else:
            own = read[node["feature_idx"]]
            # Codes up to k are those of inputs up to cut k.
            tree[place] = own, cuts[own][int(node["num_threshold"])], len(order)
            order += [node["left"], node["right"]]
    tree[len(order) :, 1] = 0
