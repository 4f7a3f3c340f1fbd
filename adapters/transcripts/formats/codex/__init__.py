"""Reads and writes Codex rollouts, with resumed threads, sub-agents, rollbacks and compactions."""

from ..format import Format, make_line_read
from .codex_reader import begin_reading, recognizes
from .codex_writer import write

FORMAT = Format(
    name="codex",
    description="sessions of Codex",
    recognizes=recognizes,
    read=make_line_read(begin_reading),
    begin_reading=begin_reading,
    write=write,
    home_patterns=("~/.codex/sessions", "~/.codex/archived_sessions"),
)
