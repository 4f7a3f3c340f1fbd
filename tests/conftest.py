"""Fixtures that many tests share: stores on both databases, a clock that is told the time."""

import gc
import os
from collections.abc import Generator, Iterator
from pathlib import Path

import pytest
from clock import Clock
from databases import new_schema, postgres_address
from hypothesis import HealthCheck, settings
from processes import Killed, Processes, processes
from unpinned import UNPINNED

import cutbank
from cutbank.projections.rendering.catalog import RENDERERS, RENDERERS_BY_LABEL

settings.register_profile(
    "default", deadline=None, max_examples=25, suppress_health_check=[HealthCheck.too_slow]
)
# In CI the examples depend on the tests alone, so that a failure comes from the change.
settings.register_profile(
    "ci", settings.get_profile("default"), derandomize=True, database=None, print_blob=True
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))


# Modules and tests stay until the end: garbage is not searched for among them.
gc.disable()


def pytest_collection_finish() -> None:
    gc.freeze()
    gc.enable()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, None, None]:
    before = Killed.count
    yield
    item.user_properties.append(("kills", Killed.count - before))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say how many processes were killed, and how many plans repaired: there have to be many."""
    noted = [
        (name, value)
        for reports in terminalreporter.stats.values()
        for report in reports
        if getattr(report, "when", None) == "call"
        for name, value in report.user_properties
    ]
    if kills := sum(int(value) for name, value in noted if name == "kills"):
        terminalreporter.write_line(f"{kills} processes were killed")
    for _, value in (pair for pair in noted if pair[0] == "repaired"):
        terminalreporter.write_line(f"repaired: {value}")


@pytest.fixture(scope="session", autouse=True)
def _no_settings_of_ours(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Whoever runs the tests may have settings of their own, which are not a test's business."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CONFIG_HOME", str(tmp_path_factory.mktemp("config")))
        for name in [name for name in os.environ if name.startswith("CUTBANK_")]:
            if name not in {"CUTBANK_SESSIONS", "CUTBANK_VECTORS"}:
                patch.delenv(name)
        yield


@pytest.fixture
def own_renderers() -> Iterator[None]:
    """Let a test register renderers, which others do not see."""
    before = dict(RENDERERS), dict(RENDERERS_BY_LABEL)
    yield
    for catalog, known in zip((RENDERERS, RENDERERS_BY_LABEL), before, strict=True):
        catalog.clear()
        catalog.update(known)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture(scope="session")
def run() -> Iterator[Processes]:
    """Processes that do what `victims` can do, alone or together, and may be killed."""
    if not hasattr(os, "fork"):
        pytest.skip("copies of processes are POSIX's")
    with processes() as run:
        yield run


@pytest.fixture(scope="session")
def postgres(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The address of the run's PostgreSQL server."""
    root = tmp_path_factory.getbasetemp()
    # The processes of pytest-xdist have a folder each, in the folder of the run.
    return postgres_address(root.parent if "PYTEST_XDIST_WORKER" in os.environ else root)


@pytest.fixture
def postgres_database(postgres: str) -> Iterator[str]:
    """The address of a schema of the test's own on PostgreSQL; not made yet."""
    with new_schema(postgres) as address:
        yield address


@pytest.fixture
def engine() -> str:
    """Return the database of a test: SQLite, or each where it is marked `each_database`."""
    return "sqlite"


@pytest.fixture
def database(engine: str, request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The address of a database that is not made yet."""
    if engine == "sqlite":
        return str(tmp_path / "test.db")
    address: str = request.getfixturevalue("postgres_database")
    return address


@pytest.fixture
def store(database: str, clock: Clock) -> Iterator[cutbank.SessionStore]:
    with cutbank.open(database, clock=clock, settings=UNPINNED) as store:
        yield store


@pytest.fixture
def session(store: cutbank.SessionStore) -> cutbank.StoredSession:
    return store.session("a session")


@pytest.fixture
def told(store: cutbank.SessionStore) -> list[cutbank.CompactionEvent]:
    """The events of compactions that the store's listeners were sent."""
    heard: list[cutbank.CompactionEvent] = []
    store.listeners.append(heard.append)
    return heard


def _shared_folder(variable: str) -> Path:
    if not (folder := os.environ.get(variable)):
        pytest.skip(f"{variable} is not set: it names the folder of shared data to test with")
    return Path(folder)


@pytest.fixture(scope="session")
def shared_sessions() -> Path:
    """Real transcripts; tests must pass on any folder of that shape."""
    return _shared_folder("CUTBANK_SESSIONS")
