"""What docs/agent_loop.md shows is run as it stands there."""

import re
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[1] / "docs" / "agent_loop.md"
CODE = re.findall(
    r"^```python\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL
)


@pytest.mark.parametrize("code", CODE, ids=lambda code: code.splitlines()[-2])
def test_the_code_on_the_page_runs(code: str) -> None:
    exec(compile(code, str(PAGE), "exec"), {"__name__": "page"})  # noqa: S102 - as a reader would


def test_the_page_has_code() -> None:
    assert len(CODE) == 2
