"""One experiment from its configuration to its tracked run."""
