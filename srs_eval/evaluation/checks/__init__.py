"""Honesty checks: what every algorithm must pass before its numbers mean anything."""

from srs_eval.evaluation.checks.edge_cases import (
    check_empty_folds as check_empty_folds,
    check_goes_to_a_worker as check_goes_to_a_worker,
    check_parameters_rebuild_the_model as check_parameters_rebuild_the_model,
    check_short_and_long_histories as check_short_and_long_histories,
)
from srs_eval.evaluation.checks.lookahead import (
    check_blind_to_the_future as check_blind_to_the_future,
    check_time_of_prediction as check_time_of_prediction,
)
from srs_eval.evaluation.checks.suite import (
    check_algorithm as check_algorithm,
    check_inputs_not_mutated as check_inputs_not_mutated,
    check_predict_at_equals_predict as check_predict_at_equals_predict,
    check_probabilities_in_range as check_probabilities_in_range,
    check_truth_is_not_read as check_truth_is_not_read,
)
from srs_eval.evaluation.checks.training import (
    check_deterministic as check_deterministic,
    check_fit_ignores_test_rows as check_fit_ignores_test_rows,
    check_last_step_is_the_fit as check_last_step_is_the_fit,
    check_nothing_outlives_a_fit as check_nothing_outlives_a_fit,
    check_pretraining_users_are_refused as check_pretraining_users_are_refused,
)
from srs_eval.evaluation.checks.trial import (
    CheckFailed as CheckFailed,
)
