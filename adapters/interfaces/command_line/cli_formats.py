"""The verb that tells which transcript formats are read and written."""

from typing import Any

from ...runtime.archive import writer as archive
from ...transcripts.formats.catalog import FORMATS
from ...transcripts.formats.format import Format
from .invocation import Invocation
from .printing import say_json, say_table

_YES = "yes"


def formats(call: Invocation) -> None:
    """List the formats of transcripts, and what each is good for."""
    told = [_told(one) for one in FORMATS.values()]
    told.append(
        {
            "name": archive.NAME,
            "what": "sessions whole, of cutbank itself",
            "read": True,
            "write": True,
            "follow": False,
            "folder": False,
            "homes": [],
        }
    )
    if call.as_json:
        say_json(told)
        return
    headings = ("format", "read", "write", "follow", "what", "where its agent keeps them")
    say_table(headings, [_row(one) for one in told])


def _told(one: Format) -> dict[str, Any]:
    return {
        "name": one.name,
        "what": one.what,
        "read": True,
        "write": bool(one.write or one.write_folder),
        "follow": one.begin is not None,
        "folder": one.write_folder is not None,
        "homes": list(one.homes),
    }


def _row(one: dict[str, Any]) -> tuple[str, ...]:
    can = tuple(_YES if one[name] else "" for name in ("read", "write", "follow"))
    return (one["name"], *can, one["what"], ", ".join(one["homes"]))
