"""The page on formats says of each what is so, and there is a page for each."""

import re
from pathlib import Path

from cutbank.adapters.transcripts.formats.catalog import FORMATS

PAGE = Path(__file__).parents[1] / "docs" / "formats.md"
ROW = re.compile(r"^\| \[`([^`]+)`\]\(([^)]+)\) \|(.*)\|$", re.MULTILINE)
ARCHIVE = "cutbank-archive"
"""No format of messages: it is read and written by ways of its own."""


def rows() -> dict[str, tuple[str, list[str]]]:
    """The table: each format's page, and what else is said of it."""
    return {
        name: (page, [cell.strip() for cell in cells.split("|")])
        for name, page, cells in ROW.findall(PAGE.read_text("utf-8"))
    }


def test_every_format_is_in_the_table_and_what_can_be_done_with_it() -> None:
    expected = {
        name: ["yes", "yes" if one.write or one.write_folder else "", "yes" if one.begin else ""]
        for name, one in FORMATS.items()
    }

    assert {name: cells[1:4] for name, (_, cells) in rows().items()} == {
        **expected,
        ARCHIVE: ["yes", "yes", ""],
    }


def test_every_format_has_a_page_that_names_it() -> None:
    for name, (page, cells) in rows().items():
        assert name in (PAGE.parent / page).read_text("utf-8"), name
        assert all(cells[4:]), name
