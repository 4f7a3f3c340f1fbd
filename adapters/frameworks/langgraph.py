"""Keeps the checkpoints of LangGraph's graphs as records of a log.

    import cutbank
    from langgraph.graph import START, MessagesState, StateGraph
    from cutbank.frameworks.langgraph import CutbankSaver

    graph = StateGraph(MessagesState)
    graph.add_node("answer", lambda state: {"messages": [("ai", "Hello to you")]})
    graph.add_edge(START, "answer")
    with cutbank.open("sessions.db") as store:
        thread = {"configurable": {"thread_id": "thread-1"}}
        compiled = graph.compile(checkpointer=CutbankSaver(store))
        print(compiled.invoke({"messages": [("user", "Hello")]}, thread))

A thread is a session. Its messages become blocks of it with `cutbank.frameworks.langchain`.
"""

from collections.abc import AsyncIterator, Iterator, Sequence
from functools import partial
from heapq import merge
from itertools import islice
from operator import itemgetter
from random import random
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    WRITES_IDX_MAP,
    BaseCheckpointSaver,
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
    get_checkpoint_id,
    get_checkpoint_metadata,
    writes_sort_key,
)
from langgraph.checkpoint.serde.base import SerializerProtocol

from cutbank import (
    NotFoundError,
    Record,
    SessionRecords,
    SessionStore,
    StoredSession,
    run_async,
)

_SEPARATOR = "\x1f"
"""Stands between the parts of a record's name; no name in LangGraph has it."""


class CutbankSaver(BaseCheckpointSaver[str]):
    """A checkpointer whose threads are sessions, and whose checkpoints are their records.

    Records are no part of the conversation: views, counts, search and idle work pass over them.
    What is pruned leaves the lists of checkpoints, and is still found by its id; `store.erase`
    removes a thread's bytes.
    """

    def __init__(
        self,
        store: SessionStore,
        *,
        namespace: str = "default",
        serde: SerializerProtocol | None = None,
    ) -> None:
        super().__init__(serde=serde)
        self.store = store
        self.namespace = namespace

    def get_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """Return the checkpoint that the config names, or the one with the greatest id."""
        thread, ns = _read_config(config)
        session = self._find_session(thread)
        if session is None:
            return None
        records = session.records
        if id := get_checkpoint_id(config):
            found = records.get(_name("checkpoint", ns, id)) or records.get(_name("pruned", ns, id))
        else:
            found = next(_iter_newest(records, ns, limit=1), None)
        if found is None:
            return None
        return self._make_tuple(thread, records, found, config if id else None)

    def list(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,  # noqa: A002 - as LangGraph names it
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> Iterator[CheckpointTuple]:
        """Yield checkpoints by id, greatest first: of one thread and namespace, or of all."""
        given = config["configurable"] if config else {}
        threads = (
            [str(given["thread_id"])]
            if "thread_id" in given
            else [session.key for session in self.store.sessions(self.namespace)]
        )
        found = (one for thread in threads for one in self._list_thread(thread, given, before))
        wanted = (
            one
            for one in found
            if all(one.metadata.get(key) == value for key, value in (filter or {}).items())
        )
        yield from islice(wanted, limit)

    def put(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """Store a checkpoint with the values of its channels."""
        del new_versions  # the checkpoint has the values of all
        thread, ns = _read_config(config)
        kept = {
            "checkpoint": checkpoint,
            "metadata": get_checkpoint_metadata(config, metadata),
            "parent": get_checkpoint_id(config),
        }
        records = self.store.session(thread, namespace=self.namespace).records
        records.put(_name("checkpoint", ns, checkpoint["id"]), self._dump(kept))
        return _make_config(thread, ns, checkpoint["id"])

    def put_writes(
        self,
        config: RunnableConfig,
        writes: Sequence[tuple[str, Any]],
        task_id: str,
        task_path: str = "",
    ) -> None:
        """Store what a task wrote, in one transaction; earlier writes of the task stay.

        Errors, interrupts, resumes and schedules take the place of earlier ones.
        """
        thread, ns = _read_config(config)
        id = config["configurable"]["checkpoint_id"]
        records = self.store.session(thread, namespace=self.namespace).records
        name = _name("write", ns, id, task_id)
        with self.store.batch():
            known = records.get(name)
            kept = self._load(known) if known else {}
            for at, (channel, value) in enumerate(writes):
                index = WRITES_IDX_MAP.get(channel, at)
                if index < 0 or index not in kept:
                    kept[index] = (channel, value, task_path)
            value = self._dump(kept)
            if known is None or known.value != value:
                records.put(name, value)

    def delete_thread(self, thread_id: str) -> None:
        """Delete the thread's session, with its messages; the name is free at once."""
        session = self._find_session(thread_id)
        if session is not None:
            self.store.delete(session)

    def delete_for_runs(self, run_ids: Sequence[str]) -> None:
        """Remove the checkpoints of these runs, pruned ones too, and what was written in them."""
        runs = set(run_ids)
        for session in self.store.sessions(self.namespace):
            with self.store.batch():
                found = [
                    record
                    for kind in ("checkpoint", "pruned")
                    for record in session.records.newest(_name(kind, ""))
                ]
                for record in found:
                    if self._load(record)["metadata"].get("run_id") in runs:
                        writes = _name("write", *_split_name(record), "")
                        for write in list(session.records.newest(writes)):
                            session.records.remove(write.name)
                        session.records.remove(record.name)

    def copy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        """Open a thread that begins with all checkpoints and messages of another.

        It shares them: nothing is copied, and deleting the source leaves them to the copy. Raises
        ConflictError if the target exists.
        """
        session = self._find_session(source_thread_id)
        if session is not None:
            session.fork(target_thread_id)

    def prune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        """Keep the newest checkpoint of each namespace in the lists, or `delete` the threads.

        Others are still found by their id, as a delta channel needs its ancestors.
        """
        if strategy not in ("keep_latest", "delete"):
            raise ValueError(f"no strategy {strategy!r} is known; give keep_latest or delete")
        for thread in thread_ids:
            session = self._find_session(thread)
            if strategy == "delete":
                self.delete_thread(thread)
            elif session is not None:
                with self.store.batch():
                    _prune(session.records)

    def get_next_version(self, current: str | None, channel: None) -> str:
        """Return a version that sorts after the current one, and is no other process's."""
        del channel
        number = int(current.split(".")[0]) + 1 if current else 1
        return f"{number:032}.{random():016}"  # noqa: S311 - nothing here is secret

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        return await run_async(self.get_tuple, config)

    async def alist(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,  # noqa: A002 - as LangGraph names it
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[CheckpointTuple]:
        found = self.list(config, filter=filter, before=before, limit=limit)
        while (one := await run_async(next, found, None)) is not None:
            yield one

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        return await run_async(self.put, config, checkpoint, metadata, new_versions)

    async def aput_writes(
        self,
        config: RunnableConfig,
        writes: Sequence[tuple[str, Any]],
        task_id: str,
        task_path: str = "",
    ) -> None:
        await run_async(self.put_writes, config, writes, task_id, task_path)

    async def adelete_thread(self, thread_id: str) -> None:
        await run_async(self.delete_thread, thread_id)

    async def adelete_for_runs(self, run_ids: Sequence[str]) -> None:
        await run_async(self.delete_for_runs, run_ids)

    async def acopy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        await run_async(self.copy_thread, source_thread_id, target_thread_id)

    async def aprune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        await run_async(partial(self.prune, thread_ids, strategy=strategy))

    def _find_session(self, thread: str) -> StoredSession | None:
        try:
            return self.store.session(thread, namespace=self.namespace, create=False)
        except NotFoundError:
            return None

    def _list_thread(
        self, thread: str, given: dict[str, Any], before: RunnableConfig | None
    ) -> Iterator[CheckpointTuple]:
        session = self._find_session(thread)
        if session is None:
            return
        end = get_checkpoint_id(before) if before else None
        for record in _iter_newest(session.records, given.get("checkpoint_ns"), before=end):
            if given.get("checkpoint_id") in (None, _split_name(record)[1]):
                yield self._make_tuple(thread, session.records, record)

    def _make_tuple(
        self,
        thread: str,
        records: SessionRecords,
        record: Record,
        config: RunnableConfig | None = None,
    ) -> CheckpointTuple:
        ns, id = _split_name(record)
        kept = self._load(record)
        written = []
        for write in records.newest(_name("write", ns, id, "")):
            task = write.name.rpartition(_SEPARATOR)[2]
            for index, (channel, value, path) in self._load(write).items():
                written.append((writes_sort_key(path, task, index), (task, channel, value)))
        return CheckpointTuple(
            config=config or _make_config(thread, ns, id),
            checkpoint=kept["checkpoint"],
            metadata=kept["metadata"],
            parent_config=_make_config(thread, ns, kept["parent"]) if kept["parent"] else None,
            pending_writes=[write for _, write in sorted(written, key=itemgetter(0))],
        )

    def _dump(self, value: Any) -> bytes:
        kind, data = self.serde.dumps_typed(value)
        return kind.encode() + b"\0" + data

    def _load(self, record: Record) -> Any:
        assert isinstance(record.value, bytes), f"{record.name} is not a checkpointer's"
        kind, _, data = record.value.partition(b"\0")
        return self.serde.loads_typed((kind.decode(), data))


def _name(*parts: str) -> str:
    return _SEPARATOR.join(parts)


def _split_name(record: Record) -> tuple[str, str]:
    """Return the namespace and the id in the name of a checkpoint."""
    _, ns, id = record.name.split(_SEPARATOR)
    return ns, id


def _read_config(config: RunnableConfig) -> tuple[str, str]:
    """Return the thread and the namespace of checkpoints that a config names."""
    given = config["configurable"]
    return str(given["thread_id"]), given.get("checkpoint_ns", "")


def _make_config(thread: str, ns: str, id: str) -> RunnableConfig:
    return {"configurable": {"thread_id": thread, "checkpoint_ns": ns, "checkpoint_id": id}}


def _iter_newest(
    records: SessionRecords, ns: str | None, *, before: str | None = None, limit: int | None = None
) -> Iterator[Record]:
    """Yield checkpoints by id, greatest first; those of all namespaces if `ns` is None."""
    if ns is None:
        each = [_iter_newest(records, one, before=before) for one in _list_namespaces(records)]
        yield from merge(*each, key=lambda record: _split_name(record)[1], reverse=True)
        return
    end = _name("checkpoint", ns, before) if before else None
    prefix = _name("checkpoint", ns, "")
    yield from records.newest(prefix, before=end, limit=limit, descending=True)


def _list_namespaces(records: SessionRecords) -> Iterator[str]:
    """Yield the namespaces that have checkpoints, with one look-up each."""
    prefix, end = _name("checkpoint", ""), None
    while found := next(records.newest(prefix, before=end, limit=1, descending=True), None):
        ns, _ = _split_name(found)
        yield ns
        end = _name("checkpoint", ns, "")


def _prune(records: SessionRecords) -> None:
    kept = set()
    for record in list(_iter_newest(records, None)):
        ns, id = _split_name(record)
        if ns in kept:
            records.put(_name("pruned", ns, id), record.value)
            records.remove(record.name)
        kept.add(ns)
