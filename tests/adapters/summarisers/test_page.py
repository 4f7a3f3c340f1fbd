"""What the page on summarisers says runs."""

import re
import shutil
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[3] / "docs" / "summarisers.md"


@pytest.mark.skipif(shutil.which("python3") is None, reason="the page runs a program by python3")
def test_the_code_on_the_page_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    page = PAGE.read_text("utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    for name, code in re.findall(r"```python file=(\S+)\n(.*?)```", page, re.DOTALL):
        (tmp_path / name).write_text(code)

    code = "\n".join(re.findall(r"```python\n(.*?)```", page, re.DOTALL))
    exec(compile(code, str(PAGE), "exec"), {})  # noqa: S102

    first, argv, *others = capsys.readouterr().out.splitlines()
    assert first.startswith("extractive (")
    said = re.search(r"`(anthropic:\S+ needs.*?)`", page, re.DOTALL)
    assert said
    assert " ".join(said[1].split()) in first
    assert argv == "('python3', 'notes.py')"
    assert others == ["command", "newest"]
