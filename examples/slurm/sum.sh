#!/bin/sh
# Add up the shards of a run: the same command without shard=.
run=$1
shift
exec python -m srs_eval "$@" hydra.run.dir="$run"
