from mlflow_store import store as store
from mlflow_store import uri as uri
