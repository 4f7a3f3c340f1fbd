"""Sessions to backtest, and policies of a package that every process finds."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest
from pebble import ProcessFuture, ProcessPool

import cutbank
from cutbank import Block, SessionStore, ToolCall, ToolResult
from cutbank.adapters.analysis.backtest import backtest_pool
from cutbank.adapters.analysis.backtest.backtest_pool import start_pool
from cutbank.adapters.settings import policy_catalog

POLICY = '''
    """Keeps the newest blocks, or does what it is named for."""
    import os, signal, time
    from dataclasses import dataclass
    from typing import ClassVar
    from cutbank.domain.settings import setting
    from cutbank.domain.policies.policy import check_settings
    from cutbank.domain.window import Plan, Window

    @dataclass(frozen=True)
    class Policy:
        name: ClassVar[str] = "{name}"
        keep: int = setting(4, unit="blocks", least=1, help="stay word for word")

        def __post_init__(self) -> None:
            check_settings(self)

        def plan(self, window: Window) -> Plan | None:
            items = window.open_to_cut
            {does}
            if len(items) <= 3 * self.keep:
                return None
            return Plan(items[-self.keep].position, "so many blocks", 200)
'''

Bring = Callable[[str, str], None]
POOLS: list[ProcessPool] = []
"""Those that no backtest needs now: a process takes longer to start than most tests."""


class SharedPool:
    """A pool that another backtest goes on with, unless this one left it something to do."""

    def __init__(self) -> None:
        self.pool = POOLS.pop() if POOLS else start_pool()
        self.futures: list[ProcessFuture[Any]] = []

    def schedule(self, *args: Any, **how: Any) -> ProcessFuture[Any]:
        self.futures.append(self.pool.schedule(*args, **how))
        return self.futures[-1]

    def stop(self) -> None:
        if not all(future.done() for future in self.futures):
            self.pool.stop()  # type: ignore[no-untyped-call]

    def join(self) -> None:
        if self.pool.active:
            POOLS.append(self.pool)
        else:
            self.pool.join()


@pytest.fixture(scope="session", autouse=True)
def _pools() -> Iterator[None]:
    yield
    for pool in POOLS:
        pool.stop()  # type: ignore[no-untyped-call]
        pool.join()


@pytest.fixture(autouse=True)
def _shared_pools(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Backtests share processes where they may: one that is running finds no new package."""
    if "bring" not in request.fixturenames:
        monkeypatch.setattr(backtest_pool, "start_pool", SharedPool)


@pytest.fixture
def store(database: str) -> Iterator[SessionStore]:
    """As other processes can open it: on the machine's own clock."""
    with cutbank.open(database) as opened:
        yield opened


@pytest.fixture
def talks(store: SessionStore) -> SessionStore:
    """Three sessions of 8, 5 and 2 turns, of about 330 tokens each, and one of a single block."""
    for key, turns in (("a", 8), ("b", 5), ("c", 2)):
        talk(store, key, turns)
    store.session("mute").append(Block.user("Is anybody there?"))
    return store


def talk(store: SessionStore, key: str, turns: int) -> None:
    """Turns in each of which a file is read, and named again two turns later."""
    session = store.session(key)
    for turn in range(turns):
        before = f"src/part_{max(0, turn - 2)}/file.py"
        session.append(
            Block.user(f"Question {turn}: what is in src/part_{turn}/file.py?"),
            ToolCall(
                tool_call_id=f"{key}-{turn}",
                name="read",
                arguments={"path": f"src/part_{turn}/file.py"},
            ),
            ToolResult(tool_call_id=f"{key}-{turn}", content="silt and sand\n" * 60),
            Block.assistant(f"It holds silt, as {before} does. " + "Much silt. " * 30),
        )


@pytest.fixture
def bring(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bring]:
    """Install a package with a policy, where this process finds it and those that it starts."""
    site = tmp_path / "site"
    site.mkdir()
    monkeypatch.syspath_prepend(str(site))
    paths = filter(None, (str(site), os.environ.get("PYTHONPATH")))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(paths))
    policy_catalog.list_package_policies.cache_clear()

    def bringing(name: str, does: str) -> None:
        package = f"brings_{name}"
        code = dedent(POLICY).format(name=name, does=does)
        (site / f"{package}.py").write_text(code, encoding="utf-8")
        info = site / f"{package}-1.0.dist-info"
        info.mkdir(exist_ok=True)
        (info / "METADATA").write_text(
            f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n", encoding="utf-8"
        )
        (info / "entry_points.txt").write_text(
            f"[cutbank.policies]\n{name} = {package}:Policy\n", encoding="utf-8"
        )
        policy_catalog.list_package_policies.cache_clear()

    yield bringing
    policy_catalog.list_package_policies.cache_clear()
