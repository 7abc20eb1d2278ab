"""`experiments/seed_table/reproduce.py`: altered rows come out, and equal ones are called equal."""

import json

import pytest
from commands import run_here as run
from seed_table.reproduce import main

from srs_eval.runs.commands import COMMANDS
from srs_eval.runs.words import status

MODELS = {
    "DASH": ["algo=dash", "algo.fit=reference"],
    "AVG-short-secs": ["algo=avg", "protocol=srs_benchmark_secs", "protocol.answer_time=true"],
    "MOVING-AVG": ["algo=moving_avg"],
}


@pytest.mark.nightly
def test_altered_rows_are_told_from_equal_ones(tmp_path, real_logs):
    mit = real_logs / "anki-mit"
    logs = ["data=revlogs_10k", f"data.path={mit}"]
    for name, words in MODELS.items():
        quiet = ("tracking=none", "figures=false", f"hydra.run.dir={tmp_path / 'runs' / name}")
        assert run([*words, *logs, *quiet]) == 0
    result = tmp_path / "result"
    words = f"{tmp_path / 'runs'} to=srs_benchmark out={result}/"
    assert status(*COMMANDS["export"], words.split()) == 0
    for name in ("DASH", "AVG-short-secs"):
        file = result / f"{name}.jsonl"
        lines = [json.loads(line) for line in file.read_text().splitlines()]
        lines[0]["size"] += name == "DASH"
        lines[0]["metrics"]["AUC"] -= 1e-4
        lines.append({**lines[0], "user": 99})  # whose log is not here
        file.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    (result / "LSTM-short-secs.jsonl").write_text(file.read_text())
    out = f"out={tmp_path / 'reproduced.csv'}"
    table = main([f"data={mit}", f"published={result}", out, "workers=1"])
    assert table["verdict"].to_dict() == {
        "DASH": "other reviews",
        "AVG-short-secs": "within 0.0005",
        "MOVING-AVG": "equal",
    }
    assert (table["users"] == 2).all()
