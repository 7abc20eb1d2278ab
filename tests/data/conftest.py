import pytest
from saved import assert_same


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path_factory, monkeypatch):
    """Write lists of bad rows, rows.csv, into a folder of their own."""
    monkeypatch.chdir(tmp_path_factory.mktemp("here"))


@pytest.fixture(scope="session")
def assert_same_logs():
    """Compare all that two sources hold, to the types of columns."""

    def compare(one, other):
        assert tuple(one.users()) == tuple(other.users())
        for user in one.users():
            assert_same(one.read(user), other.read(user))

    return compare


@pytest.fixture
def csv(tmp_path):
    """Write the lines of a table; return its path."""

    def write(*lines, name="log.csv"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
        return path

    return write
