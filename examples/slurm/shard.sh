#!/bin/sh
# One job of the array. On Kubernetes, an indexed job takes shard=$((JOB_COMPLETION_INDEX + 1))/N.
set -eu
jobs=$1 run=$2
shift 2
exec python -m srs_eval "$@" compute=processes "compute.workers=${SLURM_CPUS_PER_TASK:-1}" \
    "shard=$SLURM_ARRAY_TASK_ID/$jobs" "hydra.run.dir=$run"
