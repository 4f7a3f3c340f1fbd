"""Reads and writes Claude Code's session files, with sub-agents, rewinds and compactions."""

from ..format import make_line_format
from .claude_code_reader import begin_reading, recognizes
from .claude_code_writer import write

FORMAT = make_line_format(
    "claude-code",
    "sessions of Claude Code",
    recognizes,
    begin_reading,
    write,
    home_patterns=("~/.claude/projects",),
)
