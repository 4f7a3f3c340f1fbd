"""What the page about reading backtests says runs, and comes to what it says."""

import re
from pathlib import Path

import pytest

from cutbank.adapters.analysis.backtest.report.report_files import write_report
from cutbank.domain.backtest.comparison import FEWEST
from cutbank.domain.backtest.resampling import RESAMPLES
from cutbank.domain.backtest.result import Measured

PAGE = (Path(__file__).parents[1] / "docs" / "backtest.md").read_text("utf-8")


def test_the_code_on_the_page_comes_to_what_the_page_prints(
    capsys: pytest.CaptureFixture[str],
) -> None:
    code = "\n".join(re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL))
    printed = re.search(r"prints\n\n((?:    .*\n)+)", PAGE)
    assert printed is not None

    exec(compile(code, "backtest.md", "exec"), {})  # noqa: S102

    assert capsys.readouterr().out.split() == printed[1].split()


def test_the_page_names_each_file_of_a_report(tmp_path: Path) -> None:
    for path in write_report(Measured(setups=(), cells=()), tmp_path):
        assert f"| `{path.name}` |" in PAGE


def test_the_page_names_the_numbers_that_verdicts_rest_on() -> None:
    assert f"{RESAMPLES:,} times" in PAGE
    assert FEWEST == 6
    assert "fewer than six sessions" in PAGE
