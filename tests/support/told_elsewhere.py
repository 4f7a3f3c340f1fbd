"""A session that cutbank made itself, and what is left of it in another format."""

from dataclasses import dataclass
from pathlib import Path

from cutbank import CompactionOptions, SessionStore, StoredSession
from cutbank.adapters.runtime.exporting.exporter import export
from cutbank.adapters.runtime.importing.importer import import_path
from cutbank.adapters.transcripts.formats.catalog import FORMATS
from cutbank.adapters.transcripts.formats.source import TranscriptSource
from cutbank.adapters.transcripts.reports import FileReport
from cutbank.domain.blocks import AnyBlock, Block, Kind, Media, Text, ToolCall, ToolResult
from cutbank.domain.policies.reserve_headroom import ReserveHeadroom
from cutbank.domain.session_events import Usage
from cutbank.domain.summaries.summarizer import Draft, Material

PNG = Media(type="image", mime="image/png", data=b"\x89PNG-a-small-picture")

Said = list[tuple[str, str, str | None]]
"""Of each block its kind, its text, and the call that it is or answers."""


def talk(session: StoredSession) -> None:
    """A prompt with an image, two calls at once (one fails), an answer, and an open call."""
    session.append(
        Block.user("which boats leave?", message_id="p1"),
        Block(kind=Kind.IMAGE, media=PNG, message_id="p1"),
    )
    view = session.view()
    session.append(
        Block.thinking("two lists could say so", message_id="m1"),
        Block.assistant("I look", message_id="m1"),
        ToolCall(tool_call_id="c1", name="read", arguments={"path": "a"}, message_id="m1"),
        ToolCall(tool_call_id="c2", name="read", arguments={"path": "b"}, message_id="m1"),
    )
    usage = Usage(input=20, cache_read=100, output=12, reasoning=4)
    session.record_call(view, call_id="m1", model="acme-1", usage=usage, stop_reason="tool_use")
    session.append(
        ToolResult(tool_call_id="c2", content="no such file", is_error=True),
        ToolResult(tool_call_id="c1", content=(Text(text="Petrel"), PNG)),
    )
    session.append(Block.assistant("the Petrel", message_id="m2"))
    session.append(Block.user("and later?"))
    session.append(ToolCall(tool_call_id="c3", name="wait", arguments={}, message_id="m3"))


def said(session: StoredSession) -> Said:
    """What was said in a session, notes left out."""
    blocks = [entry.block for entry in session.view().entries]
    return [(str(block.kind), block.text, _call_of(block)) for block in blocks]


def paired(told: Said) -> Said:
    """The same, each result right after its call: some formats keep both in one place."""
    results = {call: one for one in told if one[0] == "tool_result" and (call := one[2])}
    in_pairs: Said = []
    for one in told:
        if one[0] == "tool_call":
            in_pairs += [one, results[one[2]]] if one[2] in results else [one]
        elif one[0] != "tool_result":
            in_pairs.append(one)
    return in_pairs


def again(store: SessionStore, path: Path) -> tuple[StoredSession, FileReport]:
    """The only session of a file, imported under a name of its own."""
    (report,) = import_path(store, path, namespace=str(path))
    (key,) = report.sessions
    return store.session(key, namespace=str(path), create=False), report


def told(session: StoredSession, name: str, folder: Path, *, view: bool = False) -> Path:
    """The session, exported in the format of that name."""
    path = folder / f"{name}{FORMATS[name].suffix}"
    export(session, name, path, view=view)
    (found,) = [one.name for one in FORMATS.values() if one.recognizes(TranscriptSource(path))]
    assert found == name
    return path


@dataclass(frozen=True)
class Short:
    """A summariser of few words."""

    name: str = "short"

    def summarize(self, _: Material) -> Draft:
        return Draft("Two boats leave.")


def long_talk(session: StoredSession, turns: int = 12) -> None:
    """Many turns, so that there is something to compact."""
    for turn in range(turns):
        session.append(Block.user(f"question {turn} " + "q" * 400))
        session.append(Block.assistant(f"answer {turn} " + "a" * 400))


def compact(session: StoredSession) -> None:
    """Leave the newest turns, and a summary of the others."""
    policy = ReserveHeadroom(reserve_tokens=500, keep_tokens=500)
    assert session.compact(
        policy, limit=2_000, options=CompactionOptions(summarizers=[Short()])
    ).compacted


def _call_of(block: AnyBlock) -> str | None:
    return getattr(block, "tool_call_id", None)
