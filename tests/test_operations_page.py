"""What docs/operations.md says of settings, notices and files is so."""

import json
import re
from pathlib import Path

from cutbank.adapters.runtime.idle.health import HealthFile
from cutbank.adapters.runtime.idle.notice_counts import Tally
from cutbank.adapters.runtime.idle.notices import About
from cutbank.adapters.runtime.idle.worker_log import LEVELS
from cutbank.adapters.settings.load_settings import load

PAGE = (Path(__file__).parents[1] / "docs" / "operations.md").read_text(encoding="utf-8")


def section(title: str) -> str:
    (found,) = [
        part for part in re.split(r"^## ", PAGE, flags=re.MULTILINE) if part.startswith(title)
    ]
    return found


def test_the_settings_of_the_page_are_settings(tmp_path: Path) -> None:
    (example,) = re.findall(r"```toml\n(.*?)```", section("Tune"), re.DOTALL)
    file = tmp_path / "settings.toml"
    file.write_text(example, encoding="utf-8")

    idle = load(file, {}).idle

    assert idle.rules() != load(None, {}).idle.rules()
    assert idle.quiet() is not None
    assert idle.namespaces == ("support", "research")


def test_the_page_explains_every_notice_and_says_which_are_told_with_v_only() -> None:
    rows = [
        row
        for row in section("What workers say").splitlines()
        if row.startswith("| `") and "| means |" not in row
    ]
    first = [row.split("|")[1] for row in rows]
    explained = {name for cell in first for name in re.findall(r"`([a-z_]+)`", cell)}
    starred = {re.findall(r"`([a-z_]+)`", cell)[0] for cell in first if "*" in cell}

    assert explained == {about.value for about in About}
    assert starred == {about.value for about, level in LEVELS.items() if level == 10}


def test_the_page_names_what_the_health_file_counts(tmp_path: Path) -> None:
    file = HealthFile(tmp_path / "health.json")
    file.write(dict(Tally().counts))

    counted = json.loads(file.path.read_text(encoding="utf-8"))

    assert set(counted) <= set(re.findall(r"`([a-z_]+)`", section("Watch")))
