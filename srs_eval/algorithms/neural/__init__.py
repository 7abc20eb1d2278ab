"""Networks as memory models, one pass per card; the only part of srs_eval that needs PyTorch."""

from __future__ import annotations

from importlib import import_module

from srs_eval.errors import ConfigError

for _name, _module in (("PyTorch", "torch"), ("safetensors", "safetensors")):
    try:
        import_module(_module)
    except ImportError as error:
        # Here rather than in each network, so that whichever is asked for first says it.
        raise ConfigError(
            f"the neural networks need {_name}, which cannot be imported ({error}): "
            "install it with pip install 'srs-eval[neural]', or choose another algo"
        ) from error
