#!/bin/sh
# After the array: the run ends as one that was not shared, or names the shards that are missing.
exec python -m srs_eval.merge "$1"
