"""The configuration: options, overrides, and the objects they name."""
