"""Sessions of GitHub Copilot CLI: a file of events, each naming the one before it."""

from ..format import Format, read_lines
from .events import NAME
from .reader import begin, recognises
from .writer import write

FORMAT = Format(
    name=NAME,
    what="sessions of GitHub Copilot CLI",
    recognises=recognises,
    read=read_lines(begin),
    begin=begin,
    write=write,
    homes=("~/.copilot/session-state", "~/.copilot/history-session-state"),
)
