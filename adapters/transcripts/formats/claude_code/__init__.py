"""Claude Code's session files, with sub-agents, rewinds and its own compactions."""

from ..format import Format, read_lines
from .reader import begin, recognises
from .writer import write

FORMAT = Format(
    name="claude-code",
    what="sessions of Claude Code",
    recognises=recognises,
    read=read_lines(begin),
    begin=begin,
    write=write,
    homes=("~/.claude/projects",),
)
