"""No password reaches the files or the messages of a run."""

from __future__ import annotations

from pathlib import Path

import pytest
from commands import Here

SECRET = "S3CRETpw"
QUICK = ("algo=avg", "data.users=1", "data.size_scale=0.02", "figures=false", "panel=quick")


def files_with(folder: Path, text: str) -> list[str]:
    files = [path for path in folder.rglob("*") if path.is_file()]
    return [path.name for path in files if text.encode() in path.read_bytes()]


@pytest.mark.parametrize(
    "word",
    [
        f"tracking.uri=http://bob:{SECRET}@127.0.0.1:1",
        f"tracking.uri=http://{SECRET}@127.0.0.1:1",
        f"tracking.artifacts=s3://key:{SECRET}@bucket/x",
        f"parts=s3://key:{SECRET}@bucket/x",
        f"'notes=\"see https://bob:{SECRET}@host/x\"'",
        f"+tags.link=https://host/x?token={SECRET}",
    ],
)
def test_a_password_on_the_command_line_is_refused_before_anything_is_saved(
    here: Here, word: str
) -> None:
    done = here(*QUICK, word.strip("'"), "hydra.run.dir=out")
    assert done.status == 2
    assert "environment" in done.err
    assert SECRET not in done.text
    assert not (here.folder / "out").exists()


@pytest.mark.parametrize(
    ("content", "key"),
    [
        (f"tracking: {{uri: 'http://bob:{SECRET}@127.0.0.1:1'}}", "tracking.uri"),
        ("tracking: {uri: 'http://bob:${oc.env:PASSWORD}@127.0.0.1:1'}", "tracking.uri"),
        (f"hydra: {{sweeper: {{params: {{parts: 's3://a:{SECRET}@b/c'}}}}}}", "parts"),
    ],
)
def test_a_password_in_an_option_file_is_refused_too(
    here: Here, content: str, key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PASSWORD", SECRET)
    (here.folder / "c" / "experiment").mkdir(parents=True)
    file = here.folder / "c" / "experiment" / "x.yaml"
    file.write_text(f"# @package _global_\n{content}\n", encoding="utf-8")
    done = here(*QUICK, "--config-dir", "c", "experiment=x", "hydra.run.dir=out")
    assert done.status == 2
    assert key in done.err
    assert SECRET not in done.text
    assert not (here.folder / "out").exists()


@pytest.mark.parametrize("user", [f"bob:{SECRET}", SECRET, f"bob:{SECRET}/b", f"bob:a@{SECRET}"])
@pytest.mark.slow
def test_a_password_in_the_environment_is_neither_printed_nor_saved(
    here: Here, user: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"http://{user}@127.0.0.1:1")
    done = here(*QUICK, "tracking.timeout=2", "hydra.run.dir=out")
    assert done.status == 1
    assert "***" in done.err
    assert SECRET not in done.text
    assert files_with(here.folder / "out", SECRET) == []
