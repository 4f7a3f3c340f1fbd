"""Reads sessions of GitHub Copilot CLI: event files in which each event names its parent."""

from ..format import Format, make_line_read
from .copilot_cli_reader import FORMAT_NAME, begin_reading, recognizes

FORMAT = Format(
    name=FORMAT_NAME,
    description="sessions of GitHub Copilot CLI",
    recognizes=recognizes,
    read=make_line_read(begin_reading),
    begin_reading=begin_reading,
    home_patterns=("~/.copilot/session-state", "~/.copilot/history-session-state"),
)
