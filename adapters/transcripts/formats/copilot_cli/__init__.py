"""Reads and writes sessions of GitHub Copilot CLI: event files in which each event names its
parent.
"""

from ..format import Format, make_line_read
from .copilot_cli_reader import begin_reading, recognizes
from .copilot_cli_writer import write
from .event_content import FORMAT_NAME

FORMAT = Format(
    name=FORMAT_NAME,
    description="sessions of GitHub Copilot CLI",
    recognizes=recognizes,
    read=make_line_read(begin_reading),
    begin_reading=begin_reading,
    write=write,
    home_patterns=("~/.copilot/session-state", "~/.copilot/history-session-state"),
)
