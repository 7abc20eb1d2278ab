"""Honesty checks: what every algorithm must pass before its numbers mean anything."""

from srs_eval.checks.assertions import CheckFailed
from srs_eval.checks.edge_cases import (
    check_empty_folds,
    check_goes_to_a_worker,
    check_parameters_rebuild_the_model,
    check_short_and_long_histories,
)
from srs_eval.checks.lookahead import (
    check_blind_to_the_future,
    check_time_of_prediction,
)
from srs_eval.checks.stepwise import check_last_step_is_the_fit
from srs_eval.checks.suite import (
    check_algorithm,
    check_capability_names,
    check_inputs_not_mutated,
    check_predict_at_equals_predict,
    check_probabilities_in_range,
    check_truth_is_not_read,
)
from srs_eval.checks.training import (
    check_deterministic,
    check_fit_ignores_test_rows,
    check_nothing_outlives_a_fit,
    check_pretraining_users_are_refused,
)

__all__ = [
    "CheckFailed",
    "check_algorithm",
    "check_blind_to_the_future",
    "check_capability_names",
    "check_deterministic",
    "check_empty_folds",
    "check_fit_ignores_test_rows",
    "check_goes_to_a_worker",
    "check_inputs_not_mutated",
    "check_last_step_is_the_fit",
    "check_nothing_outlives_a_fit",
    "check_parameters_rebuild_the_model",
    "check_predict_at_equals_predict",
    "check_pretraining_users_are_refused",
    "check_probabilities_in_range",
    "check_short_and_long_histories",
    "check_time_of_prediction",
    "check_truth_is_not_read",
]
