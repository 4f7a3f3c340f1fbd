"""What the page about prices says runs, and comes to what it says."""

import re
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[1] / "docs" / "pricing.md"


def test_the_code_on_the_page_about_prices_runs(capsys: pytest.CaptureFixture[str]) -> None:
    code = "\n".join(re.findall(r"```python\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL))

    exec(compile(code, str(PAGE), "exec"), {})  # noqa: S102

    # 30 calls read 88,000 tokens less at $0.50 a million; 22,000 are written at $6.25 for once.
    prices, cost = capsys.readouterr().out.splitlines()
    saves, breaks, pays_after, is_worthwhile = prices.split()
    assert float(saves) == pytest.approx(1.32)
    assert float(breaks) == pytest.approx(0.1265)
    assert (pays_after, is_worthwhile) == ("3", "True")
    assert float(cost) == pytest.approx(0.0048)
