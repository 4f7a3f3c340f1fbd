"""What docs/fidelity.md shows is run as it stands there, and its numbers are those of the code."""

import re
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path

from cutbank.domain.fidelity.anchors import LINE, AnchorKind
from cutbank.domain.fidelity.canonical_boundaries import FRAMING, KEPT, RESERVE
from cutbank.domain.fidelity.generic_keys import GENERIC_KEYS
from cutbank.domain.fidelity.patterns import LONGEST

PAGE = (Path(__file__).parents[1] / "docs" / "fidelity.md").read_text(encoding="utf-8")
(CODE,) = re.findall(r"^```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


def test_the_code_on_the_page_prints_what_it_says() -> None:
    said = StringIO()
    with redirect_stdout(said):
        exec(compile(CODE, "docs/fidelity.md", "exec"), {})  # noqa: S102 - our own page

    assert said.getvalue().splitlines() == re.findall(r"\)\S*  # (.*)$", CODE, re.MULTILINE)


def test_the_page_tells_the_numbers_that_the_code_goes_by() -> None:
    for told in (
        f"{LONGEST} characters",
        f"pieces of {LINE:,}",
        f"{RESERVE:,} tokens",
        f"{FRAMING} tokens a row",
        f"{KEPT} x limit",
        f"*generic* facts: {len(GENERIC_KEYS)} ",
    ):
        assert told in PAGE.replace("\n", " ")


def test_the_page_lists_every_kind_of_fact() -> None:
    kinds = set(re.findall(r"^\| (\w+) \| .* \| .* \|$", PAGE, re.MULTILINE))

    assert set(AnchorKind) <= kinds
