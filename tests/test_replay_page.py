"""What docs/replay.md shows is run as it stands there."""

import re
import tomllib
from pathlib import Path

import pytest

from cutbank.adapters.settings.settings import Settings

PAGE = (Path(__file__).parents[1] / "docs" / "replay.md").read_text(encoding="utf-8")


def shown(language: str) -> str:
    (code,) = re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    return str(code)


def test_the_code_on_the_page_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)

    exec(compile(shown("python"), "docs/replay.md", "exec"), {})  # noqa: S102 - as a reader would

    assert "would have been compacted" in capsys.readouterr().out


def test_the_settings_on_the_page_are_settings() -> None:
    settings = Settings.model_validate(tomllib.loads(shown("toml")))

    assert settings.shadow.policies == ("pi", "retention-window")
