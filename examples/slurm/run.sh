#!/bin/sh
# Evaluate an algorithm with a SLURM job array, then add up what the jobs have done.
#
#   sh run.sh 64 runs/fsrs6 algo=fsrs6 data=revlogs_10k data.path=/data/revlogs
#
# 64 jobs share the users, and all write into runs/fsrs6, which all of them must see.
# A job that was lost is repeated with sbatch --array=17 …, or everything with the same command:
# users who are done are not evaluated again.
set -eu
jobs=$1 run=$2
shift 2
here=$(dirname "$0")
mkdir -p "$run"
array=$(sbatch --parsable --array="1-$jobs" --cpus-per-task="${CPUS:-1}" --time="${TIME:-24:00:00}" \
    --output="$run/slurm-%a.txt" "$here/shard.sh" "$jobs" "$run" "$@")
sbatch --dependency="afterany:$array" --output="$run/slurm-sum.txt" "$here/sum.sh" "$run" "$@"
