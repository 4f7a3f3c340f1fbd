"""Lists all transcript formats, recognizes them, and finds transcripts."""

import os
from collections.abc import Iterator
from pathlib import Path

from ..formats import (
    aider,
    atif,
    claude_code,
    codex,
    copilot_cli,
    gemini_cli,
    gemini_cli_lines,
    gemini_history,
    mini_swe_agent,
    opencode,
    openhands,
    pi,
    swe_agent,
)
from .format import Format
from .messages import anthropic, openai_chat, openai_responses
from .source import TranscriptSource

FORMATS: dict[str, Format] = {
    one.name: one
    for one in (
        claude_code.FORMAT,
        codex.FORMAT,
        pi.FORMAT,
        pi.OH_MY_PI_FORMAT,
        copilot_cli.FORMAT,
        gemini_cli_lines.FORMAT,
        openhands.V1,
        openhands.V0,
        mini_swe_agent.FORMAT,
        swe_agent.FORMAT,
        opencode.FORMAT,
        gemini_cli.FORMAT,
        gemini_history.FORMAT,
        openai_chat.TAU_FORMAT,
        openai_chat.FORMAT,
        openai_responses.FORMAT,
        anthropic.FORMAT,
        atif.FORMAT,
        aider.FORMAT,
    )
}
"""Line formats come first: recognizing the others may need the whole file."""

ARCHIVE_FORMAT = "cutbank-archive"
"""Sessions whole, as a database of cutbank's own."""

TRANSCRIPT_SUFFIXES = (".jsonl", ".json", ".traj", ".md", ".cutbank")
"""The file name suffixes that transcripts may have."""


def recognize_format(source: TranscriptSource) -> Format | None:
    return next((one for one in FORMATS.values() if one.recognizes(source)), None)


def find_transcripts(path: Path) -> Iterator[Path]:
    """Yield all files below a folder that may be transcripts, and transcript folders, sorted.

    A directory's own files precede those below it, so that a session precedes its sub-agents. Links
    are followed, except in circles.
    """
    entered: set[tuple[int, int]] = set()
    for folder, below, files in os.walk(path, followlinks=True):
        status = Path(folder).stat()
        if (status.st_dev, status.st_ino) in entered:
            below.clear()
            continue
        entered.add((status.st_dev, status.st_ino))
        if any(Path(folder, "events").glob("event-*.json")):  # a transcript itself
            below.clear()
            yield Path(folder)
            continue
        below.sort()
        # The prefix of sub-agent files next to their session.
        for name in sorted(files, key=lambda name: (name.startswith("agent-"), name)):
            if name.endswith(TRANSCRIPT_SUFFIXES) and (file := Path(folder, name)).is_file():
                yield file
