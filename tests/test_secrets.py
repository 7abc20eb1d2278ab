"""No password reaches the files or the messages of a run."""

import pytest

SECRET = "S3CRETpw"
QUICK = ("algo=avg", "data.users=1", "data.size_scale=0.02", "figures=false", "panel=quick")


def files_with(folder, text):
    files = [path for path in folder.rglob("*") if path.is_file()]
    return [path.name for path in files if text.encode() in path.read_bytes()]


WORDS = (
    f"tracking.uri=http://bob:{SECRET}@127.0.0.1:1",
    f"tracking.uri=http://{SECRET}@127.0.0.1:1",
    f"tracking.artifacts=s3://key:{SECRET}@bucket/x",
    f"parts=s3://key:{SECRET}@bucket/x",
    f'notes="see https://bob:{SECRET}@host/x"',
    f"+tags.link=https://host/x?token={SECRET}",
)
FILES = (
    f"tracking: {{uri: 'http://bob:{SECRET}@127.0.0.1:1'}}",
    "tracking: {uri: 'http://bob:${oc.env:PASSWORD}@127.0.0.1:1'}",
    "tracking: {uri: '${oc.env:ADDRESS}'}",
    f"hydra: {{sweeper: {{params: {{parts: 's3://a:{SECRET}@b/c'}}}}}}",
)


def test_a_password_in_an_option_is_refused_before_anything_is_saved(
    here, monkeypatch, golden_text
):
    monkeypatch.setenv("PASSWORD", SECRET)
    monkeypatch.setenv("ADDRESS", f"http://bob:{SECRET}@127.0.0.1:1")
    (here.folder / "c" / "experiment").mkdir(parents=True)
    text = ""
    for word in (*WORDS, *FILES):
        words = [word]
        if word in FILES:
            file = here.folder / "c" / "experiment" / "x.yaml"
            file.write_text(f"# @package _global_\n{word}\n", encoding="utf-8")
            words = ["--config-dir", "c", "experiment=x"]
        done = here(*QUICK, *words, "hydra.run.dir=out")
        assert (done.status, SECRET in done.text) == (2, False)
        assert not (here.folder / "out").exists()
        text += f"{word.replace(SECRET, '***')}\n{done.err}\n"
    golden_text("secrets", text)


@pytest.mark.parametrize("user", [f"bob:{SECRET}", SECRET, f"bob:{SECRET}/b", f"bob:a@{SECRET}"])
@pytest.mark.slow
def test_a_password_in_the_environment_is_neither_printed_nor_saved(here, user, monkeypatch):
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"http://{user}@127.0.0.1:1")
    done = here(*QUICK, "tracking.timeout=2", "hydra.run.dir=out")
    assert done.status == 1
    assert "***" in done.err
    assert SECRET not in done.text
    assert files_with(here.folder / "out", SECRET) == []
