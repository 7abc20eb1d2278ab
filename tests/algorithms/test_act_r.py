"""ACT-R: activation that depends on activation at every earlier review."""

import dataclasses

import numpy as np
import pytest

from srs_eval.algorithms import history
from srs_eval.algorithms.features import act_r
from srs_eval.algorithms.features.act_r import ActivationEquations, ActR
from srs_eval.algorithms.history import history_of
from srs_eval.checks.toy_log import trial_task

torch = pytest.importorskip("torch", reason="PyTorch is the oracle of the derivatives")

TASK = trial_task(same_day=True)
FOLD = TASK.folds[0]
SECONDS = dataclasses.replace(
    TASK.reviews,
    elapsed=np.maximum(TASK.reviews.elapsed_seconds, 0.0) / 86400,
    whole_days=False,
)
LOGS = {"days": TASK.reviews, "seconds": SECONDS}
OTHER = (0.5, 0.9, 0.4, -1.3, 0.7)


def by_pytorch(reviews, row, w):
    """Log-odds at one review, as the paper has it."""
    a, c, noise, threshold, h = w
    rows = np.flatnonzero(reviews.card[: row + 1] == reviews.card[row])
    when = np.cumsum(np.where(np.arange(len(rows)) == 0, 0.0, reviews.elapsed[rows]))
    activations = [torch.tensor(-torch.inf, dtype=torch.float64)]
    for k in range(1, len(rows)):
        total = torch.zeros((), dtype=torch.float64)
        for j in range(k):
            decay = (c * torch.exp(activations[j]) if j else 0.0) + a
            seconds = 86400 * h * (when[k] - when[j])
            total = total + torch.clamp(seconds, min=1.0) ** -decay
        activations.append(torch.log(total))
    return (activations[-1] - threshold) / noise


@pytest.mark.parametrize("clock", LOGS)
@pytest.mark.parametrize("w", [ActivationEquations.parameters.defaults, OTHER])
def test_activation_and_its_derivatives_are_those_of_pytorch(clock, w):
    reviews = LOGS[clock]
    rows = np.flatnonzero(reviews.elapsed_days >= 0)[::-11]
    at = ActivationEquations().at(history_of(reviews), rows, reviews.elapsed[rows])
    found, slopes = at(np.array(w))
    for number, row in enumerate(rows):
        parameters = torch.tensor(w, dtype=torch.float64, requires_grad=True)
        expected = by_pytorch(reviews, row, parameters)
        (gradient,) = torch.autograd.grad(expected, parameters)
        assert found[number] == pytest.approx(expected.item(), rel=1e-10)
        np.testing.assert_allclose(slopes[number], gradient, rtol=1e-8, atol=1e-10)


def test_memory_is_bounded_and_changes_nothing(monkeypatch):
    rows = np.flatnonzero(SECONDS.elapsed_days >= 0)
    w = np.array(OTHER)
    equations = ActivationEquations()
    found, slopes = equations.at(history_of(SECONDS), rows, SECONDS.elapsed[rows])(w)
    monkeypatch.setattr(history, "HELD", 25)
    monkeypatch.setattr(act_r, "HELD", 25)
    again, slopes_again = equations.at(history_of(SECONDS), rows, SECONDS.elapsed[rows])(w)
    np.testing.assert_allclose(again, found, rtol=1e-13)
    np.testing.assert_allclose(slopes_again, slopes, rtol=1e-11)


def test_a_fit_stays_in_bounds_and_ends_where_both_methods_agree():
    newton, lbfgs = (
        ActR(fit=method).fit(TASK.reviews, FOLD.train, None) for method in ("newton", "lbfgs")
    )
    algorithm, equations = ActR(), ActivationEquations()
    centre = np.array(equations.parameters.defaults)
    loss = algorithm.loss(equations, history_of(TASK.reviews), FOLD.train, centre)
    found, other = (loss.gradient(np.array(end.parameters)).loss for end in (newton, lbfgs))
    assert found == pytest.approx(other, rel=1e-5)
    assert found < loss.gradient(centre).loss
    assert equations.parameters.checked(newton.parameters, "act_r") == newton.parameters
