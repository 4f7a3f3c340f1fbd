"""What the README says runs."""

import re
from pathlib import Path

import pytest

README = Path(__file__).parent.parent / "README.md"


def test_the_code_in_the_readme_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    code = "\n".join(re.findall(r"```python\n(.*?)```", README.read_text("utf-8"), re.DOTALL))
    monkeypatch.chdir(tmp_path)

    exec(compile(code, str(README), "exec"), {})  # noqa: S102

    assert (tmp_path / "sessions.db").exists()
    assert code.count("session.compact(") == 1
