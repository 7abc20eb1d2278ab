"""Networks as memory models, one pass per card; the only part of srs_eval that needs PyTorch."""

from importlib import import_module

from srs_eval.errors import ConfigError

try:
    import_module("torch")
except ImportError as error:
    raise ConfigError(
        f"the neural networks need PyTorch, which cannot be imported ({error}): "
        "install it with pip install 'srs-eval[neural]', or choose another algo"
    ) from error
