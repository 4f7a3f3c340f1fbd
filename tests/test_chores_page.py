"""What docs/chores.md shows is run as it stands there, and names every setting."""

import re
import tomllib
from pathlib import Path

import pytest

from cutbank.adapters.settings.maintenance_settings import ChoreSettings

PAGE = (Path(__file__).parents[1] / "docs" / "chores.md").read_text(encoding="utf-8")


def shown(language: str) -> str:
    (code,) = re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    return str(code)


def test_the_code_on_the_page_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)

    exec(compile(shown("python"), "docs/chores.md", "exec"), {})  # noqa: S102 - as a reader would


def test_the_settings_on_the_page_are_all_there_are_with_their_defaults() -> None:
    settings = tomllib.loads(shown("toml"))["chores"]

    assert settings.keys() | {"enabled"} == ChoreSettings.model_fields.keys()
    folder = settings.pop("backup_folder")
    assert ChoreSettings.model_validate(settings) == ChoreSettings()
    assert ChoreSettings(backup_folder=folder).backup_folder == folder
