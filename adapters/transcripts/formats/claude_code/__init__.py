"""Reads and writes Claude Code's session files, with sub-agents, rewinds and compactions."""

from ..format import Format, make_line_read
from .claude_code_reader import begin_reading, recognizes
from .claude_code_writer import write

FORMAT = Format(
    name="claude-code",
    description="sessions of Claude Code",
    recognizes=recognizes,
    read=make_line_read(begin_reading),
    begin_reading=begin_reading,
    write=write,
    home_patterns=("~/.claude/projects",),
)
