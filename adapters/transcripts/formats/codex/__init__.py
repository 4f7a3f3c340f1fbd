"""Codex's rollouts, with resumed threads, sub-agents, rollbacks and its own compactions."""

from ..format import Format, read_lines
from .reader import begin, recognises
from .writer import write

FORMAT = Format(
    name="codex",
    what="sessions of Codex",
    recognises=recognises,
    read=read_lines(begin),
    begin=begin,
    write=write,
    homes=("~/.codex/sessions", "~/.codex/archived_sessions"),
)
