"""Implements `formats`: lists the transcript formats that can be read and written."""

from typing import Any

from ...runtime.archive import archive_writer as archive
from ...transcripts.formats.catalog import FORMATS
from ..command_line.printing import print_json, print_table
from ..command_line.verbs import Invocation


def formats(call: Invocation) -> None:
    """List the formats of transcripts, and what each is good for."""
    listed: list[dict[str, Any]] = [
        {
            "name": one.name,
            "what": one.description,
            "read": True,
            "write": bool(one.write or one.write_folder),
            "follow": one.begin_reading is not None,
            "folder": one.write_folder is not None,
            "homes": list(one.home_patterns),
        }
        for one in FORMATS.values()
    ]
    own = {"name": archive.ARCHIVE_FORMAT, "what": "sessions whole, of cutbank itself"}
    can = {"read": True, "write": True, "follow": False, "folder": False}
    listed.append(own | can | {"homes": []})
    if call.as_json:
        print_json(listed)
        return
    rows = []
    for one in listed:
        marks = ("yes" if one[name] else "" for name in ("read", "write", "follow"))
        rows.append((one["name"], *marks, one["what"], ", ".join(one["homes"])))
    print_table(("format", "read", "write", "follow", "what", "where its agent keeps them"), rows)
