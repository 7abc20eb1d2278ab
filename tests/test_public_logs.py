"""The logs that travel with the tests are those that were published, under their licence."""

from hashlib import sha256
from pathlib import Path

import pytest
from public_logs import JOSH, JOSH_AS_BENCHMARK, LOGS


@pytest.mark.parametrize(
    ("file", "digest"),
    [
        (JOSH, "1cebb655825974579538877d018b5ffc8cc324bb6bb6fda9cbd5da85cfe9e445"),
        (JOSH_AS_BENCHMARK, "e78a1b7eeb00314f467dbecc3dace209c3d3720330a54e48400e8c0f35c8b085"),
    ],
)
def test_the_files_are_those_that_were_published(real_logs: Path, file: str, digest: str) -> None:
    assert sha256((real_logs / file).read_bytes()).hexdigest() == digest


def test_each_log_has_its_owners_licence_beside_it() -> None:
    folders = [folder for folder in LOGS.iterdir() if folder.is_dir()]
    assert len(folders) == 2
    for folder in folders:
        text = (folder / "LICENSE").read_text(encoding="utf-8")
        assert text.startswith("MIT License\n\nCopyright (c) 20")
