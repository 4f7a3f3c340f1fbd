"""A store in which all happened that an archive has to hold, and what must be equal in a copy."""

from pathlib import Path
from typing import Any

from agent_talk import talk
from databases import asked
from transcripts import import_path

from cutbank import Block, CompactionOptions, FileReport, Parent, SessionStore, ToolCall, ToolResult
from cutbank.adapters.runtime.archives import write_archive
from cutbank.domain.blocks import BlockKind, Media
from cutbank.domain.policies.reserve_headroom import ReserveHeadroom

LARGE = "a large result, of which there is only one\n" * 2_000
LIMIT = 8_000
KEEPS_LITTLE = ReserveHeadroom(keep_tokens=500)


def tell(store: SessionStore) -> None:
    """Calls, large contents, pins, compactions of two lineages, forks of forks and a sub-agent."""
    session = store.session("main", title="a title", source="codex")
    session.configure(system_prompt="be brief")
    talk(session, 3)
    session.append(ToolCall(tool_call_id="c", name="read", arguments='{"path": "a"}'), key="one")
    session.append(ToolResult(tool_call_id="c", content=LARGE), key="two")
    image = Media(type="image", mime="image/png", data=b"\x89PNG\r\n\x1a\n" + b"\x07" * 9_000)
    session.append(
        Block(kind=BlockKind.IMAGE, media=image), Block.user("a lone \ud800, and a NUL \0")
    )
    session.append(ToolCall(tool_call_id="d", name="read", arguments="{}"))
    session.pin(session.position - 1)
    talk(session, 20)
    session.compact(KEEPS_LITTLE, limit=LIMIT)
    session.record_call(session.view(), call_id="call 1", model="m")
    session.compact(KEEPS_LITTLE, limit=LIMIT, options=CompactionOptions(lineage="what if"))
    fork = session.fork("main/branch", at=session.position - 4)
    fork.append(Block.user("another way " + LARGE))
    fork.record_call(fork.view(), call_id="call 2")
    twig = fork.fork("twig")
    twig.append(Block.user("a third way"))
    talk(session, 20)
    session.compact(KEEPS_LITTLE, limit=LIMIT)
    session.record_call(session.view(), call_id="call 3")
    session.retract(session.position - 1)
    agent = store.session("agent", parent=Parent(namespace="default", key="main"))
    agent.append(Block.user("look into it"))
    store.session("alone", subject="somebody").append(Block.user("words"), key="one")


def archived(store: SessionStore, path: Path, *keys: str, **how: Any) -> Path:
    sessions = [store.session(key, create=False) for key in keys] if keys else store.sessions()
    write_archive(sessions, path, **how)
    return path


def restored(store: SessionStore, path: Path, namespace: str | None = None) -> FileReport:
    (report,) = import_path(store, path, namespace=namespace)
    return report


def rows(store: SessionStore, *keys: str) -> dict[str, list[Any]]:
    recorder = store.events.recorder
    found: dict[str, list[Any]] = {}
    for stream in recorder.select_streams():
        if keys and stream.session not in keys:
            continue
        id = stream.originator_id
        events = list(recorder.select_events(id))
        found[f"{stream.session} {stream.lineage}"] = [
            stream,
            *events,
            *recorder.select_keys(id, "", 10_000),
            *recorder.select_imports(stream.namespace, stream.session),
            *(recorder.names.secret_of(row.subject) for row in events),
            *(
                (digest, recorder.select_body(row.subject, digest))
                for row in events
                for digest in store.events.mapper.list_references(row)
            ),
        ]
    return found


def everything(store: SessionStore) -> dict[str, list[tuple[Any, ...]]]:
    tables = ("stored_events", "bodies", "streams", "append_keys", "imports", "subjects")
    return {name: asked(store, f"SELECT count(*) FROM {name}") for name in tables}  # noqa: S608
