import warnings

import pytest
from mlflow_store import store as store
from mlflow_store import uri as uri

from srs_eval.tracking.quiet import quiet_mlflow

with warnings.catch_warnings(), quiet_mlflow():
    # MLflow's own classes warn when they are first imported
    warnings.simplefilter("ignore")
    import mlflow.pyfunc
    import mlflow.sklearn


@pytest.fixture
def global_uri(uri):
    """Let MLflow's own functions use the store."""
    mlflow.set_tracking_uri(uri)
    mlflow.set_experiment("elsewhere")
    yield uri
    mlflow.set_tracking_uri(None)
