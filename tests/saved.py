"""Results from evaluations of single users, and predictions: made, kept, and compared."""

from dataclasses import fields

import numpy as np
from invented import Logs

from srs_eval.algorithms.baselines import Average
from srs_eval.evaluation.scoring import score_user
from srs_eval.nouns import Curves
from srs_eval.nouns.predictions import concatenate
from srs_eval.protocol.srs_benchmark import SrsBenchmark
from srs_eval.results.files import CURVES, PREDICTIONS, write_reviews
from srs_eval.results.predicted import Predicted, SavedPredictions
from srs_eval.results.tables import curves_table, predictions_table
from srs_eval.results.user_rows import of_all_users, users_table
from srs_eval.run.evaluate import result_of
from srs_eval.run.experiment import Experiment


def result_from(evaluations, panel, algorithm=None):
    """Score and summarise evaluations of users."""
    experiment = Experiment(algorithm or Average(), Logs({}), SrsBenchmark(), panel)
    scored = [score_user(e, panel) for e in evaluations]
    kept = {e.user: e.predictions for e in evaluations if e.predictions is not None}
    fits = tuple(fit for e in evaluations for fit in e.fits)
    users = of_all_users([users_table(scored)], panel.names)
    return result_of(experiment, users, fits, InMemory(kept))


class InMemory(Predicted):
    """Predictions of users that are all in memory."""

    def __init__(self, predictions):
        self._of_users = dict(predictions)

    @property
    def users(self):
        return tuple(self._of_users)

    def read(self, user, *, curves=True):
        return self._of_users.get(user)


def load_predictions(folder):
    """Read the predictions of all users of a run."""
    return concatenate(list(SavedPredictions(folder)))


def write_predictions(folder, predictions):
    """Write predictions of any users as a run does."""
    tables = {PREDICTIONS: predictions_table, CURVES: curves_table}
    for name, table_of in tables.items():
        table = table_of(predictions)
        if table is not None:
            write_reviews(folder / name, table.schema, [table])


def assert_same(found, expected):
    """Compare predictions or curves column by column: values, and their types."""
    for f in fields(expected):
        here, there = getattr(found, f.name), getattr(expected, f.name)
        if isinstance(there, Curves):
            assert_same(here, there)
        elif isinstance(there, np.ndarray):
            np.testing.assert_array_equal(here, there)
            assert here.dtype == there.dtype
        else:
            assert here == there
