"""What README and docs show runs as it stands there, and each link leads somewhere."""

import ast
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from unittest.mock import patch

import pytest
from installed_packages import install_package
from transcripts import SAMPLES

import cutbank
from cutbank import Block, CompactionOptions, Settings, load_settings
from cutbank.adapters.interfaces.command_line.cli import main
from cutbank.adapters.settings import policy_catalog
from cutbank.adapters.settings.compaction_settings import CompactionSettings

ROOT = Path(__file__).parents[1]
LAYERS = ("domain", "projections", "adapters")
PAGES = {
    str(path.relative_to(ROOT)): path.read_text(encoding="utf-8")
    for path in [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(ROOT.glob("docs/**/*.md"))]
}
KEY = "7b1e2c3d-4f5a-4b6c-8d7e-9f0a1b2c3d4e"


def shown(page: str, language: str) -> list[str]:
    """Return the fenced pieces of a page that are in one language."""
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGES[page], re.MULTILINE | re.DOTALL)


def run_code(code: str, page: str) -> None:
    exec(compile(code, page, "exec"), {"__name__": "page"})  # noqa: S102 - as a reader would


def talk(database: Path, key: str, other: str = "what-if") -> None:
    """Store a session of 70 turns, with two compactions and one of another lineage."""
    keep = {"keep_tokens": 1_000}
    with cutbank.open(database) as store:
        session = store.session(key)
        for turn in range(70):
            asked = f"Question {turn}: why was the connection refused? A missing semicolon? "
            session.append(Block.user(asked), Block.assistant("silt, sediment. " * 150))
            if turn in (20, 30):
                session.compact(options=CompactionOptions(settings=keep))
        session.compact(options=CompactionOptions(settings=keep, lineage=other))


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, own_renderers: None) -> Path:
    """Make the working folder a home in which Claude Code left a session."""
    projects = tmp_path / ".claude" / "projects"
    projects.mkdir(parents=True)
    (projects / f"{KEY}.jsonl").write_bytes((SAMPLES / "claude-code" / f"{KEY}.jsonl").read_bytes())
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("CUTBANK_DB", str(tmp_path / "log.db"))
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path


RUN_ON_THEIR_OWN = {
    *("docs/policies.md", "docs/settings.md", "docs/telemetry.md"),
    "docs/frameworks.md",  # tests/frameworks runs it where the frameworks are
}
"""The code of these pages is a module, a hook and a program of its own; the tests below run it."""


@pytest.mark.parametrize(
    "page", [page for page in PAGES if shown(page, "python") and page not in RUN_ON_THEIR_OWN]
)
def test_the_code_of_a_page_runs_from_top_to_bottom(page: str, home: Path) -> None:
    talk(home / "sessions.db", "fix-login")
    for name, code in re.findall(r"```python file=(\S+)\n(.*?)```", PAGES[page], re.DOTALL):
        (home / name).write_text(code, encoding="utf-8")

    run_code("\n".join(shown(page, "python")), page)


def test_pages_import_only_from_the_package_itself() -> None:
    codes = [code for page in PAGES for code in shown(page, r"python\b[^\n]*")]
    codes.append((ROOT / "scripts/example_agent.py").read_text(encoding="utf-8"))
    modules: set[str] = set()
    for node in (node for code in codes for node in ast.walk(ast.parse(code))):
        if isinstance(node, ast.ImportFrom):
            modules.add(node.module or "")
        elif isinstance(node, ast.Import):
            modules |= {alias.name for alias in node.names}
    named = {
        (page, name)
        for page, text in PAGES.items()
        for name in re.findall(r"\bcutbank\.(?:domain|projections|adapters)\b\.?\w*", text)
    }

    ours = {name for name in modules if name.split(".")[0] == "cutbank"}
    assert {name for name in ours if not name.startswith("cutbank.frameworks.")} == {"cutbank"}
    # Where a layer begins is told to those who change cutbank.
    assert named == {("CONTRIBUTING.md", "cutbank.domain")}


def test_every_public_name_and_file_that_a_page_names_exists() -> None:
    text = "\n".join(PAGES.values())
    names = set(re.findall(r"`cutbank\.([A-Z]\w+|\w+(?=\())", text))
    folders = "|".join((*LAYERS, "tests", "scripts", "docs"))
    files = set(re.findall(rf"`((?:{folders})/[a-z_/.]+)`", text))

    assert len(names) > 10
    assert len(files) > 10
    assert not [name for name in names if not hasattr(cutbank, name)]
    assert not [file for file in files if not (ROOT / file).exists()]


def test_every_member_in_the_tables_of_the_page_on_python_exists(home: Path) -> None:
    page = PAGES["docs/python.md"]
    sections = dict(re.findall(r"^## (\w+)\n(.*?)(?=^## |\Z)", page, re.MULTILINE | re.DOTALL))
    with cutbank.open(home / "log.db") as store:
        session = store.session("s")
        owners = {
            "Store": store,
            "Session": session,
            "Records": session.records,
            "Functions": cutbank,
        }
        for section, owner in owners.items():
            cells = re.findall(r"^\| (`.*?`) \| ", sections[section], re.MULTILINE)
            names = [name for cell in cells for name in re.findall(r"`(\w+)[(`]", cell)]
            assert len(names) > (4 if section == "Records" else 10)
            assert not [name for name in names if not hasattr(owner, name)], section


def test_the_code_on_summarizers_prints_what_the_page_says(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    test_the_code_of_a_page_runs_from_top_to_bottom("docs/summarizers.md", home)

    first, argv, *others = capsys.readouterr().out.splitlines()
    assert first.startswith("extractive (")
    said = re.search(r"`(anthropic:\S+ needs.*?)`", PAGES["docs/summarizers.md"], re.DOTALL)
    assert said
    assert " ".join(said[1].split()) in first
    assert argv == "('python3', 'notes.py')"
    assert others == ["command", "newest"]


def test_the_code_on_telemetry_prints_nested_spans(home: Path) -> None:
    (code,) = shown("docs/telemetry.md", "python")

    # A process of its own: its providers can be set once.
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=home, capture_output=True, check=True, text=True
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


@pytest.mark.skipif(shutil.which("python3") is None, reason="the page runs a program by python3")
def test_the_hook_on_the_page_on_settings_forbids_and_instructs(home: Path) -> None:
    hook = home / "before_compaction.py"
    hook.write_text(shown("docs/settings.md", "python")[0], encoding="utf-8")
    (table,) = [text for text in shown("docs/settings.md", "toml") if "hooks.commands" in text]
    settings = home / "settings.toml"
    settings.write_text(table.replace("/home/me/hooks/before_compaction.py", str(hook)), "utf-8")

    with cutbank.open("hooked.db", settings=load_settings(settings, {})) as store:
        session = store.session("s")
        session.append(*(Block.user(f"Question {n}. " + "silt " * 90) for n in range(60)))
        loop = session.loop(limit=8_000)
        small = loop.prepare()
        outcome = session.compact(limit=8_000)

    assert small.boundary is None  # vetoed: it was set off by the threshold, and is small
    assert outcome.compacted
    request = json.dumps({"trigger": "auto", "before": {"tokens": 20_000}})
    said = subprocess.run(
        [sys.executable, str(hook)], input=request, capture_output=True, check=True, text=True
    )
    assert json.loads(said.stdout) == {"instructions": "Keep the names of all rivers."}


@pytest.fixture
def installed(home: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Install the example of a policy as the page says."""
    (table,) = [text for text in shown("docs/policies.md", "toml") if "entry-points" in text]
    lines = table.replace("project.entry-points.", "").replace('"', "")
    install_package(home, "newest_turns", lines, shown("docs/policies.md", "python")[0])
    monkeypatch.syspath_prepend(str(home))
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


def test_the_settings_on_all_pages_load_and_change_something(tmp_path: Path) -> None:
    file = tmp_path / "page.toml"
    texts = [text for page in PAGES for text in shown(page, "toml")]
    points = [tomllib.loads(text).get("project", {}).get("entry-points") for text in texts]

    groups = [list(group) for group in points if group]
    assert groups == [["cutbank.policies"], ["cutbank.summarizers"]]
    assert len(texts) >= 9 + len(groups)
    for text, group in zip(texts, points, strict=True):
        if not group:
            file.write_text(text, encoding="utf-8")
            assert load_settings(file, {}) != Settings(), text


def anchors(page: str) -> set[str]:
    """Return the anchors of a page's headings, as GitHub makes them."""
    text = re.sub(r"^```.*?^```$", "", PAGES[page], flags=re.MULTILINE | re.DOTALL)
    headings = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    plain = [re.sub(r"\[(.*?)\]\(.*?\)", r"\1", heading).lower() for heading in headings]
    return {re.sub(r"[^\w\- ]", "", heading).replace(" ", "-") for heading in plain}


def leads_somewhere(page: str, link: str) -> bool:
    path, _, anchor = link.partition("#")
    target = ((ROOT / page).parent / path).resolve() if path else ROOT / page
    return target.is_file() and (not anchor or anchor in anchors(str(target.relative_to(ROOT))))


def test_every_link_leads_to_a_file_and_a_heading() -> None:
    links = {(page, link) for page in PAGES for link in re.findall(r"\]\(([^)\s]+)\)", PAGES[page])}
    inner = {pair for pair in links if not pair[1].startswith("https://")}

    assert len(inner) > 50
    assert not [pair for pair in inner if not leads_somewhere(*pair)]


def test_every_page_is_linked_and_none_that_is_gone_is_named() -> None:
    linked = {Path(link).name for text in PAGES.values() for link in re.findall(r"(\w+\.md)", text)}
    pages = {Path(page).name for page in PAGES}
    by_agents = {"AGENTS.md", "CHANGELOG.md", "history.md"}  # files, and no pages of ours
    code = [*ROOT.glob("*.py"), *ROOT.glob("scripts/**/*")]
    code += [path for layer in LAYERS for path in (ROOT / layer).rglob("*.py")]
    in_code = {
        name
        for path in code
        if path.is_file()
        for name in re.findall(r"\bdocs/([a-z_]+\.md)", path.read_text("utf-8", "replace"))
    }

    assert linked - by_agents == pages
    assert in_code <= pages
    assert len(pages) == 24


def commands(page: str) -> list[str]:
    """Return the commands of a page that end by themselves, and soon.

    A search for settings takes minutes, and more sessions; `test_tuning` has one.
    """
    found = re.findall(r"(?m)^(?:    )?(cutbank [a-z].*)$", PAGES[page].replace("\\\n", " "))
    found = [re.split(r"  +#| # ", line)[0].strip() for line in found]
    return [
        line
        for line in found
        if not re.search(r"--follow|^cutbank tune|^cutbank idle( --db \S+)?$", line)
    ]


def run_command(command: str, capsys: pytest.CaptureFixture[str]) -> str:
    """Run a command of a page as if in a shell; return what it complained about, if it failed."""
    line, _, file = command.partition(" > ")
    words = shlex.split(line.replace(" ...", "").replace("~", str(Path.home())))
    with patch.dict(os.environ), pytest.raises(SystemExit) as exited:
        main([str(Path.home() / ".claude") if word == "PATH" else word for word in words[1:]])
    said = capsys.readouterr()
    if file:
        Path(file).write_text(said.out, encoding="utf-8")
    assert said.out or said.err, command
    return f"{command}: {said.err or said.out}" if exited.value.code else ""


@pytest.mark.parametrize(
    "page",
    [
        "README.md",
        pytest.param("docs/backtest.md", marks=pytest.mark.slow),
        *("docs/audit.md", "docs/exporting.md", "docs/formats.md", "docs/importing.md"),
        *("docs/operations.md", "docs/policies.md", "docs/read_models.md", "docs/replay.md"),
        "docs/settings.md",
    ],
)
def test_the_commands_of_a_page_run(
    page: str, home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # The page on replays makes the lineage itself.
    talk(home / "log.db", "SESSION", "other" if page == "docs/replay.md" else "what-if")
    shutil.copytree(home / ".claude", home / "transcripts")
    found = commands(page)
    assert found

    failed = [complaint for command in found if (complaint := run_command(command, capsys))]

    # Without anybody there to be asked, an import that asks ends.
    assert not [complaint for complaint in failed if not complaint.startswith("cutbank import: ")]
