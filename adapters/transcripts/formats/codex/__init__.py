"""Reads and writes Codex rollouts, with resumed threads, sub-agents, rollbacks and compactions."""

from ..format import make_line_format
from .codex_reader import CodexTranscriptReader, recognizes
from .codex_writer import write

FORMAT = make_line_format(
    "codex",
    "sessions of Codex",
    recognizes,
    CodexTranscriptReader,
    write,
    home_patterns=("~/.codex/sessions", "~/.codex/archived_sessions"),
)
