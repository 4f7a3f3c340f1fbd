"""Implements `formats`: lists the transcript formats that can be read and written."""

from typing import Any

from ...runtime.archive import archive_writer as archive
from ...transcripts.formats.catalog import FORMATS
from ...transcripts.formats.format import Format
from .invocation import Invocation
from .printing import print_json, print_table

_YES = "yes"


def formats(call: Invocation) -> None:
    """List the formats of transcripts, and what each is good for."""
    told = [_format_to_json(one) for one in FORMATS.values()]
    told.append(
        {
            "name": archive.ARCHIVE_FORMAT,
            "what": "sessions whole, of cutbank itself",
            "read": True,
            "write": True,
            "follow": False,
            "folder": False,
            "homes": [],
        }
    )
    if call.as_json:
        print_json(told)
        return
    headings = ("format", "read", "write", "follow", "what", "where its agent keeps them")
    print_table(headings, [_format_row(one) for one in told])


def _format_to_json(one: Format) -> dict[str, Any]:
    return {
        "name": one.name,
        "what": one.description,
        "read": True,
        "write": bool(one.write or one.write_folder),
        "follow": one.begin_reading is not None,
        "folder": one.write_folder is not None,
        "homes": list(one.home_patterns),
    }


def _format_row(one: dict[str, Any]) -> tuple[str, ...]:
    can = tuple(_YES if one[name] else "" for name in ("read", "write", "follow"))
    return (one["name"], *can, one["what"], ", ".join(one["homes"]))
