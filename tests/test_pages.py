"""What README and docs show as code, settings and commands runs as it stands there."""

import re
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from textwrap import dedent

import pytest
from transcripts import SAMPLES

import cutbank
from cutbank import Block, CompactionOptions
from cutbank.adapters.interfaces.command_line.cli import main
from cutbank.adapters.settings import policy_catalog
from cutbank.adapters.settings.compaction_settings import CompactionSettings
from cutbank.adapters.settings.load_settings import load_settings
from cutbank.adapters.settings.settings import Settings

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
KEY = "7b1e2c3d-4f5a-4b6c-8d7e-9f0a1b2c3d4e"


def shown(page: str, language: str) -> list[str]:
    """Return the fenced pieces of a page that are in one language."""
    text = (ROOT / page).read_text(encoding="utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def run_code(code: str, page: str) -> None:
    exec(compile(code, page, "exec"), {"__name__": "page"})  # noqa: S102 - as a reader would


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make the working folder a home in which Claude Code left a session."""
    projects = tmp_path / ".claude" / "projects"
    projects.mkdir(parents=True)
    (projects / f"{KEY}.jsonl").write_bytes((SAMPLES / "claude-code" / f"{KEY}.jsonl").read_bytes())
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("CUTBANK_DB", str(tmp_path / "log.db"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


# Code


def test_the_code_of_the_readme_runs(home: Path) -> None:
    code = "\n".join(shown("README.md", "python"))

    run_code(code, "README.md")

    assert (home / "sessions.db").exists()
    assert code.count("session.compact(") == 1


@pytest.mark.parametrize("page", ["agent_loop", "chores", "replay"])
def test_the_code_of_a_page_runs(page: str) -> None:
    pieces = shown(f"docs/{page}.md", "python")
    assert pieces
    for code in pieces:
        run_code(code, page)


def test_the_code_on_backtests_prints_what_the_page_says(
    capsys: pytest.CaptureFixture[str],
) -> None:
    printed = re.search(r"prints\n\n((?:    .*\n)+)", (DOCS / "backtest.md").read_text("utf-8"))
    assert printed is not None

    run_code("\n".join(shown("docs/backtest.md", "python")), "backtest.md")

    assert capsys.readouterr().out.split() == printed[1].split()


def test_the_code_on_fidelity_prints_what_the_page_says(
    capsys: pytest.CaptureFixture[str],
) -> None:
    (code,) = shown("docs/fidelity.md", "python")

    run_code(code, "fidelity.md")

    printed = capsys.readouterr().out.splitlines()
    assert printed == re.findall(r"\)\S*  # (.*)$", code, re.MULTILINE)


def test_the_code_on_prices_runs(capsys: pytest.CaptureFixture[str]) -> None:
    run_code("\n".join(shown("docs/pricing.md", "python")), "pricing.md")

    # 30 calls read 88,000 tokens less at $0.50 a million; 22,000 are written at $6.25 for once.
    prices, cost = capsys.readouterr().out.splitlines()
    saves, breaks, pays_after, is_worthwhile = prices.split()
    assert float(saves) == pytest.approx(1.32)
    assert float(breaks) == pytest.approx(0.1265)
    assert (pays_after, is_worthwhile) == ("3", "True")
    assert float(cost) == pytest.approx(0.0048)


def test_the_code_on_telemetry_prints_nested_spans(tmp_path: Path) -> None:
    (code,) = shown("docs/telemetry.md", "python")

    # A process of its own: its providers can be set once.
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, check=True, text=True
    )

    pattern = (
        r'^    "name": "(.*?)",\n    "context": \{.*?"span_id": "(\w+)".*?"parent_id": (.*?),$'
    )
    found = re.findall(pattern, done.stdout, re.MULTILINE | re.DOTALL)
    spans = {name: (span, parent) for name, span, parent in found}
    assert spans["a turn"][1] == "null"
    assert spans["cutbank.compact"][1] == f'"{spans["a turn"][0]}"'
    assert spans["cutbank.summarise"][1] == f'"{spans["cutbank.compact"][0]}"'
    assert '"name": "cutbank.compaction.tokens_saved"' in done.stdout


def test_the_code_on_exports_runs(home: Path) -> None:
    page = (DOCS / "exporting.md").read_text("utf-8")
    code = re.findall(r"In Python:\n\n((?:    .*\n)+)", page)
    with cutbank.open("sessions.db") as store:
        session = store.session("s")
        session.append(Block.user("Is the bank cut?"))
        exec(dedent(code[0]), {"session": session})  # noqa: S102

    assert (home / "view.json").exists()


@pytest.fixture
def installed(home: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Install the example of a policy as the page says."""
    site = home / "site"
    info = site / "newest_turns-1.0.dist-info"
    info.mkdir(parents=True)
    (site / "newest_turns.py").write_text(shown("docs/policies.md", "python")[0], encoding="utf-8")
    (info / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: newest-turns\nVersion: 1.0\n", encoding="utf-8"
    )
    groups = tomllib.loads(shown("docs/policies.md", "toml")[1])["project"]["entry-points"]
    lines = [
        line
        for group, points in groups.items()
        for line in (f"[{group}]", *(f"{name} = {value}" for name, value in points.items()))
    ]
    (info / "entry_points.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    monkeypatch.syspath_prepend(str(site))
    policy_catalog.list_package_policies.cache_clear()
    yield
    policy_catalog.list_package_policies.cache_clear()


@pytest.mark.usefixtures("installed")
def test_the_example_of_a_policy_keeps_the_contract_and_is_found(
    session: cutbank.StoredSession,
) -> None:
    page: dict[str, object] = {}
    exec(compile(shown("docs/policies.md", "python")[1], "policies.md", "exec"), page)  # noqa: S102
    check = page["test_it_keeps_the_contract"]
    assert callable(check)
    check()
    for turn in range(9):
        session.append(Block.user(f"Question {turn}?"), Block.assistant("silt " * 900))

    outcome = session.compact("newest-turns", options=CompactionOptions(settings={"turns": "2"}))

    chosen = Settings(compaction=CompactionSettings(policy="newest-turns")).policy
    assert chosen.name == outcome.policy == "newest-turns"
    assert len(session.view().entries) == 4


# Settings


def test_the_settings_on_all_pages_load_and_change_something(tmp_path: Path) -> None:
    file = tmp_path / "page.toml"
    pages = [str(path.relative_to(ROOT)) for path in sorted(DOCS.rglob("*.md"))]
    pieces = [(page, text) for page in pages for text in shown(page, "toml")]
    pieces = [(page, text) for page, text in pieces if "entry-points" not in text]
    assert len(pieces) >= 7
    for page, text in pieces:
        file.write_text(text, encoding="utf-8")
        assert load_settings(file, {}) != Settings(), page


# Commands


def run_command(command: str) -> int:
    """Run a command of a page as if in a shell, without its redirection; return the exit code."""
    named = {"PATH": str(Path.home() / ".claude" / "projects")}
    words = shlex.split(command.partition(" > ")[0])
    with pytest.raises(SystemExit) as exited:
        main([named.get(word, word) for word in words[1:]])
    assert isinstance(exited.value.code, int)
    return exited.value.code


def test_the_commands_on_diffs_and_lineages_run(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fences = [*shown("docs/diff.md", "sh"), *shown("docs/lineage.md", "sh")]
    commands = [
        line.partition("   #")[0].strip() for fence in fences for line in fence.splitlines()
    ]
    assert len(commands) > 5
    with cutbank.open(home / "log.db") as store:
        session = store.session("SESSION")
        for turn in range(20):
            session.append(Block.user(f"Question {turn}"), Block.assistant("silt " * 500))
        session.compact(options=CompactionOptions(settings={"keep_tokens": 1_000}))
        session.compact(
            options=CompactionOptions(settings={"keep_tokens": 1_000}, lineage="what-if")
        )

    assert not [command for command in commands if run_command(command)], capsys.readouterr().err


def test_the_commands_on_transcripts_run(capsys: pytest.CaptureFixture[str]) -> None:
    commands = [
        command.strip()
        for page in ("importing.md", "exporting.md")
        for command in re.findall(r"(?m)^    (cutbank [^#\n]*)", (DOCS / page).read_text("utf-8"))
        # Following goes on until it is stopped.
        if "--follow" not in command
    ]
    verbs = {command.split()[1] for command in commands}
    assert verbs == {"import", "export"}
    run_command("cutbank import PATH")
    for command in commands:
        code = run_command(command.replace("SESSION", KEY))

        said = capsys.readouterr()
        assert said.out or said.err
        asks = command == "cutbank import"  # and nobody is there to be asked
        assert code == (1 if asks else 0), (command, said.err)
