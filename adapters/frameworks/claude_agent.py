"""Keeps the transcripts of the Claude Agent SDK in a log, where they are searched and recalled.

    import asyncio
    from claude_agent_sdk import ClaudeAgentOptions, query
    from cutbank.frameworks.claude_agent import CutbankSessionStore

    async def main():
        options = ClaudeAgentOptions(session_store=CutbankSessionStore("sessions.db"))
        async for message in query(prompt="Hello", options=options):
            print(message)

    asyncio.run(main())

`log(key)` is the stored session of a transcript.
"""

from collections.abc import Sequence
from pathlib import Path
from threading import Lock
from time import time
from typing import Any, cast
from uuid import UUID, uuid4, uuid5

from claude_agent_sdk import (
    SessionKey,
    SessionListSubkeysKey,
    SessionStoreEntry,
    SessionStoreListEntry,
    SessionSummaryEntry,
    fold_session_summary,
)

from cutbank import (
    Block,
    HistoryView,
    Item,
    NotFoundError,
    Parent,
    Policy,
    SessionStore,
    StoredSession,
    ToolResult,
    ViewItem,
    list_items,
    read_call_reports,
    read_message,
    run_async,
)

from .framework_adapter import FrameworkAdapter, append_items, repeat_overtaken

PROVIDER_NAME = "claude-code"
SUMMARY_RECORD = "claude-agent/summary"
"""Where a session keeps when it was written, and what the SDK lists of it."""
_SPOKEN = {"user", "assistant"}


class CutbankSessionStore(FrameworkAdapter):
    """A `SessionStore` of the Agent SDK: entries come back as they were; their words are blocks.

    `store` is an open store, or the address of a database that this one opens and closes. Projects
    are namespaces, `claude/PROJECT`; what a sub-agent wrote is a session of its own, with the
    other as its parent. With a `limit`, an agent resumes from the view, compacted before if the
    policy asks for it; without one, from all entries. `policy` and `limit` are those of
    `session.loop()`.
    """

    def __init__(
        self,
        store: SessionStore | str | Path = "sessions.db",
        *,
        policy: str | Policy | None = None,
        limit: int | None = None,
    ) -> None:
        super().__init__(store, policy=policy, limit=limit)
        self._clock, self._newest = Lock(), 0

    def log(self, key: SessionKey) -> StoredSession:
        """Return the stored session of a transcript. Raises NotFoundError if there is none."""
        return self.store.session(_name(key), namespace=_namespace(key), create=False)

    async def append(self, key: SessionKey, entries: list[SessionStoreEntry]) -> None:
        """Store entries in one transaction; one whose `uuid` was stored before is left out."""
        if entries:
            await run_async(self._append, key, entries)

    async def load(self, key: SessionKey) -> list[SessionStoreEntry] | None:
        """Return all entries in order, with a limit those of the view; None if there are none."""
        return await run_async(self._load, key)

    async def list_sessions(self, project_key: str) -> list[SessionStoreListEntry]:
        """List the sessions of a project, and when each was written, in ms."""
        summaries = await run_async(self._list_summaries, project_key)
        return [{"session_id": one["session_id"], "mtime": one["mtime"]} for one in summaries]

    async def list_session_summaries(self, project_key: str) -> list[SessionSummaryEntry]:
        """List what the SDK shows of the sessions of a project."""
        return await run_async(self._list_summaries, project_key)

    async def delete(self, key: SessionKey) -> None:
        """Delete a transcript, and those of its sub-agents; `store.erase` removes their content."""
        await run_async(self._delete, key)

    async def list_subkeys(self, key: SessionListSubkeysKey) -> list[str]:
        """List the paths of the transcripts of a session's sub-agents."""
        return await run_async(self._list_subpaths, key)

    def _append(self, key: SessionKey, entries: Sequence[SessionStoreEntry]) -> None:
        items: dict[str, Item] = {}
        for entry in entries:
            items.setdefault(str(entry.get("uuid") or uuid4()), _read_entry(entry))
        repeat_overtaken(lambda: self._append_once(key, entries, items))

    def _append_once(
        self, key: SessionKey, entries: Sequence[SessionStoreEntry], items: dict[str, Item]
    ) -> None:
        subpath = key.get("subpath")
        with self.store.batch():
            session = self.store.session(
                _name(key),
                namespace=_namespace(key),
                parent=Parent(namespace=_namespace(key), key=key["session_id"])
                if subpath
                else None,
            )
            newest = session.position
            append_items(self.store, session, list(items.values()), list(items))
            _record_calls(session, after=newest)
            if subpath:
                return
            # After the append, for which other writers of the session wait.
            before = session.records.get(SUMMARY_RECORD)
            summary = cast(SessionSummaryEntry, before.value) if before else None
            folded = fold_session_summary(summary, key, list(entries))
            folded["mtime"] = self._make_time(summary["mtime"] if summary else 0)
            position = before.position if before else 0
            session.records.put(SUMMARY_RECORD, cast(Any, folded), expect=position)

    def _make_time(self, before: int) -> int:
        """Return the time in ms, later than the session's last one and all given here."""
        with self._clock:
            self._newest = max(int(time() * 1000), self._newest + 1, before + 1)
            return self._newest

    def _load(self, key: SessionKey) -> list[SessionStoreEntry] | None:
        try:
            session = self.log(key)
        except NotFoundError:
            return None
        if self._compaction["limit"] is not None and not key.get("subpath"):
            view = session.loop(**self._compaction).prepare()
            if view.boundary is not None:
                return _write_entries(view, key["session_id"])
        entries = [cast(SessionStoreEntry, item) for one in session.blocks() if (item := one.item)]
        return entries or None

    def _list_summaries(self, project_key: str) -> list[SessionSummaryEntry]:
        namespace = f"claude/{project_key}"
        found = (one.records.get(SUMMARY_RECORD) for one in self.store.sessions(namespace))
        return [cast(SessionSummaryEntry, one.value) for one in found if one]

    def _delete(self, key: SessionKey) -> None:
        namespace, name = _namespace(key), _name(key)
        names = [name] if key.get("subpath") else [name, f"{name}/"]
        found = [
            session
            for session in self.store.sessions(namespace, prefix=name)
            if session.key == name or (len(names) > 1 and session.key.startswith(names[1]))
        ]
        if found:
            self.store.delete(*found)

    def _list_subpaths(self, key: SessionListSubkeysKey) -> list[str]:
        prefix = f"{key['session_id']}/"
        sessions = self.store.sessions(f"claude/{key['project_key']}", prefix=prefix)
        return [session.key.removeprefix(prefix) for session in sessions]


def _namespace(key: SessionKey) -> str:
    return f"claude/{key['project_key']}"


def _name(key: SessionKey) -> str:
    subpath = key.get("subpath")
    return f"{key['session_id']}/{subpath}" if subpath else key["session_id"]


def _read_entry(entry: SessionStoreEntry) -> Item:
    """Read an entry of a transcript; what is no message is a note, which no model is sent."""
    value = cast(dict[str, Any], entry)
    message = value.get("message")
    if value.get("type") not in _SPOKEN or not isinstance(message, dict):
        return Item(value, [Block.note("", name=str(value.get("type")))], PROVIDER_NAME)
    blocks = read_message(message, "anthropic").blocks
    if isinstance(answer := message.get("id"), str) and answer:
        # One answer of the model is several entries, which leave a view together.
        blocks = [block.model_copy(update={"message_id": answer}) for block in blocks]
    return Item(value, blocks, PROVIDER_NAME)


def _record_calls(session: StoredSession, after: int) -> None:
    """Record the calls of the model that the entries after a position answer.

    One answer is several entries. Those that were stored before it went on say where it began.
    """
    answers: dict[str, list[tuple[int, Any]]] = {}
    for one in session.blocks(newest_first=True):
        match one.item:
            case {"type": "assistant", "message": {"id": str(id)} as message} if (
                one.position > after or id in answers
            ):
                answers.setdefault(id, []).insert(0, (one.position - len(one.pieces), message))
            case {"type": "assistant"} if one.position <= after:
                break
            case _ if one.position <= after and not answers:
                break
    for pieces in reversed(answers.values()):
        known = read_call_reports([message for before, message in pieces if before < after])
        for call in read_call_reports([message for _, message in pieces]):
            if call not in known:
                session.record_call(max(1, pieces[0][0]), **call)


def _write_entries(view: HistoryView, session_id: str) -> list[SessionStoreEntry]:
    """Write a view as a transcript: the summary first, and each entry after one that is there."""
    entries: list[dict[str, Any]] = []
    known: set[str] = set()
    for number, item in enumerate(list_items(view, PROVIDER_NAME)):
        if isinstance(item.json, dict):
            entry: dict[str, Any] = dict(item.json)
        else:
            entry = _make_entry(item, session_id)
            entry["uuid"] = str(uuid5(UUID(int=0), f"{session_id}:{view.coordinate}:{number}"))
        if entry.get("parentUuid") not in known:
            entry["parentUuid"] = entries[-1]["uuid"] if entries else None
        known.add(entry["uuid"])
        entries.append(entry)
    times = [entry["timestamp"] for entry in entries if "timestamp" in entry]
    for entry in entries:
        entry.setdefault("timestamp", times[0] if times else "1970-01-01T00:00:00.000Z")
    return cast(list[SessionStoreEntry], entries)


def _make_entry(item: ViewItem, session_id: str) -> dict[str, Any]:
    """Make an entry of what came without one: the summary, or a result that is shown shortened."""
    block = item.block
    role = "assistant" if item.role == "assistant" else "user"
    content: Any = [{"type": "text", "text": item.text}]
    if isinstance(block, ToolResult):
        content = [{"type": "tool_result", "tool_use_id": block.tool_call_id, "content": item.text}]
    return {
        "type": role,
        "isSidechain": False,
        "sessionId": session_id,
        "message": {"role": role, "content": content},
    }
