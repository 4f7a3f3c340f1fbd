"""Keeps the steps of Pydantic AI's harness in a log: runs, events, snapshots, effects of tools.

    import cutbank
    from cutbank.frameworks.pydantic_ai_harness import CutbankStepStore
    from pydantic_ai import Agent
    from pydantic_ai_harness.step_persistence import StepPersistence

    with cutbank.open("sessions.db") as store:
        steps = StepPersistence(store=CutbankStepStore(store))
        agent = Agent("openai-chat:gpt-5-mini", capabilities=[steps])
        print(agent.run_sync("Hello", conversation_id="thread-1").output)

A snapshot's messages are blocks of the conversation's session, which `CutbankHistory` shares.
"""

from collections.abc import Iterator
from heapq import merge
from typing import Any, cast

from pydantic import TypeAdapter
from pydantic_ai_harness.step_persistence import (
    ContinuableSnapshot,
    RunRecord,
    StepEvent,
    ToolEffectRecord,
)

from cutbank import (
    ConflictError,
    NotFoundError,
    Parent,
    Record,
    SessionRecords,
    SessionStore,
    run_async,
)

from .framework_adapter import ItemMirror
from .pydantic_ai import load_messages, mirror_messages

_RUN = TypeAdapter(RunRecord)
_EVENT = TypeAdapter(StepEvent)
_EFFECT = TypeAdapter(ToolEffectRecord)
_SNAPSHOT = TypeAdapter(ContinuableSnapshot)
_STATES = ("complete", "interrupted")


class CutbankStepStore:
    """A `StepStore` of the harness on a log.

    What a run did is in records of a session of its own, in the namespace `NAMESPACE/runs`. The
    messages of its snapshots are in the session of its conversation, each once; those of a run
    that another one started are in `CONVERSATION/RUN`, whose parent is the other.
    """

    def __init__(self, store: SessionStore, *, namespace: str = "default") -> None:
        self.store = store
        self.namespace = namespace
        self._mirror = ItemMirror(store)

    async def register_run(self, record: RunRecord) -> None:
        """Store what a run is; the newest record of it counts."""
        await run_async(self._put, record.run_id, "run", _RUN.dump_python(record, mode="json"))

    async def get_run(self, *, run_id: str) -> RunRecord | None:
        """Return what was registered of a run; None if nothing was."""
        return await run_async(self._get_run, run_id)

    async def list_runs(
        self, *, parent_run_id: str | None = None, conversation_id: str | None = None
    ) -> list[RunRecord]:
        """List runs by their start, of one parent and one conversation if these are given."""
        return [
            run
            for run in await run_async(self._list_all_runs)
            if parent_run_id in (None, run.parent_run_id)
            and conversation_id in (None, run.conversation_id)
        ]

    async def append_event(self, event: StepEvent) -> None:
        """Store an event; one whose key the run has used before is left out."""
        value = _EVENT.dump_python(event, mode="json")
        await run_async(self._put, event.run_id, "event", value, event.idempotency_key)

    async def list_events(self, *, run_id: str) -> list[StepEvent]:
        """List a run's events in the order in which they were stored."""
        return await run_async(self._list_events, run_id)

    async def save_snapshot(self, snapshot: ContinuableSnapshot) -> None:
        """Store a snapshot; one whose key was used before, or is older than the newest, is not."""
        await run_async(self._save_snapshot, snapshot)

    async def latest_snapshot(
        self, *, run_id: str, include_interrupted: bool = False
    ) -> ContinuableSnapshot | None:
        """Return a run's newest snapshot; only complete ones unless asked for all."""
        return await run_async(self._find_latest, run_id, include_interrupted=include_interrupted)

    async def list_snapshots(
        self, *, run_id: str, include_interrupted: bool = False
    ) -> list[ContinuableSnapshot]:
        """List a run's snapshots, oldest first; only complete ones unless asked for all."""
        return await run_async(self._list_all, run_id, include_interrupted=include_interrupted)

    async def record_tool_effect(self, record: ToolEffectRecord) -> None:
        """Store how far a call of a tool is; the newest record of it counts."""
        value = _EFFECT.dump_python(record, mode="json")
        await run_async(self._put, record.run_id, f"effect/{record.tool_call_id}", value)

    async def get_tool_effect(self, *, run_id: str, tool_call_id: str) -> ToolEffectRecord | None:
        """Return how far a call of a tool is known to be; None if nothing is known."""
        return await run_async(self._get_effect, run_id, tool_call_id)

    async def list_unresolved_tool_effects(self, *, run_id: str) -> list[ToolEffectRecord]:
        """List the calls of tools that began, and of which no end was recorded."""
        return await run_async(self._list_unresolved, run_id)

    def _put(self, run_id: str, name: str, value: Any, key: str | None = None) -> None:
        records = self.store.session(run_id, namespace=f"{self.namespace}/runs").records
        try:
            records.put(name, value, key=key and f"{name}:{key}")
        except ConflictError:
            return  # the key was used before, and what it was used for stays

    def _find_records(self, run_id: str) -> SessionRecords | None:
        try:
            namespace = f"{self.namespace}/runs"
            return self.store.session(run_id, namespace=namespace, create=False).records
        except NotFoundError:
            return None

    def _get_run(self, run_id: str) -> RunRecord | None:
        records = self._find_records(run_id)
        found = records.get("run") if records else None
        return _RUN.validate_python(found.value) if found else None

    def _list_all_runs(self) -> list[RunRecord]:
        names = [session.key for session in self.store.sessions(f"{self.namespace}/runs")]
        runs = [run for name in names if (run := self._get_run(name)) is not None]
        return sorted(runs, key=lambda run: run.started_at)

    def _list_events(self, run_id: str) -> list[StepEvent]:
        records = self._find_records(run_id)
        stored = list(records.history("event")) if records else []
        return [_EVENT.validate_python(one.value) for one in reversed(stored)]

    def _get_effect(self, run_id: str, tool_call_id: str) -> ToolEffectRecord | None:
        records = self._find_records(run_id)
        found = records.get(f"effect/{tool_call_id}") if records else None
        return _EFFECT.validate_python(found.value) if found else None

    def _list_unresolved(self, run_id: str) -> list[ToolEffectRecord]:
        records = self._find_records(run_id)
        found = records.newest("effect/") if records else ()
        effects = [_EFFECT.validate_python(one.value) for one in found]
        return [effect for effect in effects if effect.status == "started"]

    def _save_snapshot(self, snapshot: ContinuableSnapshot) -> None:
        if snapshot.idempotency_key and self._is_overtaken(snapshot):
            return
        conversation = snapshot.conversation_id or snapshot.run_id
        name, parent = conversation, None
        if snapshot.parent_run_id and snapshot.conversation_id:
            name = f"{conversation}/{snapshot.run_id}"
            parent = Parent(namespace=self.namespace, key=conversation)
        value = _SNAPSHOT.dump_python(snapshot, mode="json", exclude={"messages"})
        with self.store.batch():
            session = self.store.session(name, namespace=self.namespace, parent=parent)
            positions = mirror_messages(self._mirror, session, snapshot.messages)
            stored = {
                "snapshot": value,
                "session": name,
                "stream": str(session.log.id),
                "positions": positions,
            }
            self._put(
                snapshot.run_id, f"snapshot/{snapshot.state}", stored, snapshot.idempotency_key
            )

    def _is_overtaken(self, snapshot: ContinuableSnapshot) -> bool:
        """Check whether a snapshot was saved before, or a later one: keys begin with a number."""
        key = str(snapshot.idempotency_key)
        for record in self._iter_snapshots(snapshot.run_id, _STATES):
            known = cast(Any, record.value)["snapshot"]["idempotency_key"]
            if known == key:
                return True
            newest, number = _read_number(known or ""), _read_number(key)
            if newest is not None and number is not None:
                return number < newest
        return False

    def _iter_snapshots(self, run_id: str, states: tuple[str, ...]) -> Iterator[Record]:
        """Yield what was stored of a run's snapshots, newest first."""
        records = self._find_records(run_id)
        if records:
            found = [records.history(f"snapshot/{state}") for state in states]
            yield from merge(*found, key=lambda record: -record.position)

    def _find_latest(self, run_id: str, *, include_interrupted: bool) -> ContinuableSnapshot | None:
        states = _STATES if include_interrupted else _STATES[:1]
        return next((self._load(one) for one in self._iter_snapshots(run_id, states)), None)

    def _list_all(self, run_id: str, *, include_interrupted: bool) -> list[ContinuableSnapshot]:
        states = _STATES if include_interrupted else _STATES[:1]
        return [self._load(one) for one in self._iter_snapshots(run_id, states)][::-1]

    def _load(self, record: Record) -> ContinuableSnapshot:
        """Return a snapshot with its messages, those that were taken back since included.

        Raises NotFoundError if their session was deleted.
        """
        stored = cast(dict[str, Any], record.value)
        session = self.store.session(stored["session"], namespace=self.namespace, create=False)
        if str(session.log.id) != stored["stream"]:
            raise NotFoundError(
                f"the messages of this snapshot were deleted with the session {session.key!r}:"
                " begin the run from its prompt"
            )
        wanted, blocks = set(stored["positions"]), session.blocks(retracted=True)
        messages = load_messages([one.item for one in blocks if one.position in wanted])
        snapshot = _SNAPSHOT.validate_python({**stored["snapshot"], "messages": []})
        snapshot.messages = messages
        return snapshot


def _read_number(key: str) -> int | None:
    """Return the number that a key of `StepPersistence` begins with; None if there is none."""
    number, colon, _ = key.partition(":")
    return int(number) if colon and number.isdecimal() else None
