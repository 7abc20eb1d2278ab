from __future__ import annotations

from mlflow_store import _no_settings_from_outside as _no_settings_from_outside
from mlflow_store import store as store
from mlflow_store import uri as uri
