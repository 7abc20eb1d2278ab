#!/bin/sh
# Runs what is submitted, at once and here.
for word; do
    case $word in
        --array=1-*) last=${word#--array=1-} ;;
        --*) ;;
        *) break ;;
    esac
    shift
done
if [ -n "${last:-}" ]; then
    for task in $(seq "$last"); do
        SLURM_ARRAY_TASK_ID=$task SLURM_CPUS_PER_TASK=1 sh "$@" >&2 &
    done
    wait
    echo 1
else
    sh "$@"
fi
