"""Implements `show`, `view`, `recall` and `search`: the log, what a model is sent, originals."""

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from ....domain.compaction import MAIN_LINEAGE
from ....domain.errors import InvalidSettingError
from ...analysis.diffs import number_compactions
from ...runtime.kept_sources import SourceHit, read_kept_lines, search_sources
from ...runtime.sessions.recalled_blocks import RecalledBlock
from ...runtime.sessions.session_store import SessionStore
from ..command_line.blocks import (
    BlockLog,
    LoggedBlock,
    block_to_json,
    find_newest,
    find_position,
    format_block_body,
    format_block_heading,
    format_refusal,
    list_marks,
    parse_handles,
    placed_to_json,
)
from ..command_line.options import (
    BRIEF,
    HANDLES_HELP,
    LINEAGE,
    PLACE,
    REQUEST_FORMAT,
    SESSION,
)
from ..command_line.printing import (
    clip_text,
    format_count,
    list_fields,
    pick,
    print_block,
    print_error,
    print_fields,
    print_json,
    print_text,
    show_progress,
    write_raw,
)
from ..command_line.sessions import (
    QUICK_EVENTS,
    find_session,
    name_to_json,
    open_call_session,
    open_call_store,
    session_to_json,
)
from ..command_line.verbs import Answer, Invocation, argument, flag, option
from ..command_line.views import answer_view, read_view_place

if TYPE_CHECKING:
    from ...storage.read_models.search import SearchHit

_EXCERPT_CHARACTERS = 100
MAX_FOUND_LINES = 3
"""Matching lines shown of a block."""


def show(
    call: Invocation,
    session: str = SESSION,
    *,
    start: str | None = option("--from HANDLE", "The first block to show."),
    end: str | None = option("--to HANDLE", "The last block to show."),
    lineage: str = LINEAGE,
    brief: bool = BRIEF,
) -> None:
    with open_call_session(call, session) as found:
        log = BlockLog(found, lineage)
        first = 1 if start is None else find_position(found, start)
        last = log.position if end is None else find_position(found, end)
        blocks = log.read_between(first, last)
        if call.as_json:
            print_json(_log_to_json(log, blocks))
        else:
            _print_log(log, blocks, brief=brief)


def view(
    call: Invocation,
    session: str = SESSION,
    *,
    lineage: str = LINEAGE,
    at: str | None = PLACE,
    form: str | None = REQUEST_FORMAT,
    brief: bool = BRIEF,
) -> Answer:
    with open_call_session(call, session) as found:
        place = read_view_place(found, at, lineage)
        seen = found.view(lineage=place.lineage, at=place.position, lineage_version=place.version)
        return answer_view(seen, form, brief=brief)


def blocks(
    call: Invocation,
    session: str = SESSION,
    *,
    last: int | None = option("--last N", "The newest ones of these.", min=1),
    after: str | None = option("--after HANDLE", "Only behind this position."),
    before: str | None = option("--before HANDLE", "Only in front of this position."),
    kind: list[str] = option("--kind KIND", "Only of this kind; may be given again.", ()),
    retracted: bool = flag("--retracted", "Also those that were taken back."),
    newest_first: bool = flag("--newest-first", "In reverse order."),
    brief: bool = BRIEF,
) -> Answer:
    with open_call_session(call, session) as found:
        listed = list(
            found.blocks(
                after=0 if after is None else find_position(found, after),
                before=None if before is None else find_position(found, before),
                last=last,
                kinds=kind or None,
                retracted=retracted,
                newest_first=newest_first,
            )
        )
    document = name_to_json(found) | {"blocks": list(map(_recalled_to_json, listed))}
    return Answer(document, partial(_print_blocks, listed, brief=brief))


def _print_blocks(blocks: Sequence[RecalledBlock], *, brief: bool) -> None:
    for one in blocks:
        top = format_block_heading(one.position, one.block, format_refusal(one.block), brief=brief)
        print_block(top, format_block_body(one.block), brief=brief)
    print_text(format_count(len(blocks), "block"))


def _recalled_to_json(one: RecalledBlock) -> dict[str, Any]:
    return placed_to_json(one) | {"text": one.block.text, "block": block_to_json(one.block)}


def recall(
    call: Invocation,
    session: str = SESSION,
    handle: list[str] | None = argument("HANDLE", HANDLES_HELP, None),
    *,
    search: str | None = option("--search TEXT", "Only blocks that hold it, in any case."),
    raw: bool = flag("--raw", "The text byte for byte, with nothing around it."),
    line: int | None = option("--line N", "That line of the imported file, as it came.", min=1),
) -> Answer:
    if line is not None:
        if handle or search:
            raise InvalidSettingError(
                "--line gives a line of the file: leave out handles and --search"
            )
        return _recall_line(call, session, line, raw=raw)
    with open_call_session(call, session) as found:
        wanted = [parse_handles(handle, partial(find_newest, found))] if handle else []
        blocks = found.recall(*wanted, search=search)
    recalled = list(map(_recalled_to_json, blocks))
    document = name_to_json(found) | {"search": search, "recalled": recalled}
    if not (blocks or raw):
        where = " ".join(map(str, wanted)) or "the session"
        none = f"No block in {where}" + (f" holds {search!r}." if search else ".")
        return Answer(document, none, is_good=False)
    texts = [one.block.text.encode("utf-8", "surrogatepass") for one in blocks]
    show = partial(write_raw, *texts) if raw else partial(_print_recalled, blocks, search)
    return Answer(document, show, is_good=bool(blocks))


def _recall_line(call: Invocation, session: str, line: int, *, raw: bool) -> Answer:
    with open_call_session(call, session) as found:
        lines = read_kept_lines(found, line)
    texts = [one.text.decode(errors="replace") for one in lines]
    named = zip(lines, texts, strict=True)
    recalled = [{"file": one.file, "line": line, "text": text} for one, text in named]
    shown = [partial(write_raw, *(one.text + b"\n" for one in lines))] if raw else texts
    return Answer(name_to_json(found) | {"recalled": recalled}, *shown)


def search(
    call: Invocation,
    query: list[str] = argument(
        "QUERY", "Words; '\"a phrase\"', 'word -without', begin* in quotes."
    ),
    session: str | None = option("--session SESSION", "Only in this one."),
    limit: int = option("--limit N", "How many.", 20, min=1, max=1_000),
    sources: bool = flag("--sources", "In the imported files instead, for exactly this text."),
) -> Answer:
    words, about = " ".join(query), dict[str, Any]()
    with open_call_store(call) as store:
        namespace = call.named
        if session is not None:
            namespace = call.namespace
            session = find_session(store, session, namespace).key
        where: dict[str, Any] = {"session": session, "namespace": namespace, "limit": limit}
        found: Sequence[SearchHit | SourceHit]
        if sources:
            found = search_sources(store, words, **where)
        else:
            found, about = _search_blocks(store, words, where)
    document = {"query": words, **about, "found": [_hit_to_json(one) for one in found]}
    what, thing = ("imported file", "line") if sources else ("block", "block")
    if not found:
        # Search finds whole words.
        hint = f" {words + '*'!r} finds longer words." if words.isalnum() and not sources else ""
        return Answer(document, f"No {what} contains {words!r}.{hint}", is_good=False)
    last = format_count(len(found), thing)
    if one := next((one for one in found if one.session), None):
        place = f"--line {one.line}" if isinstance(one, SourceHit) else one.position or "HANDLE"
        last += f"; `cutbank recall {one.session} {place}` gives all of one."
    return Answer(document, *(partial(_print_hit, one) for one in found), last)


def _search_blocks(
    store: SessionStore, words: str, where: Mapping[str, Any]
) -> tuple[Sequence["SearchHit"], dict[str, Any]]:
    """Return what was found, and of which read models."""
    models = store.read_models
    behind = store.events.recorder.max_notification_id() - models.position
    if behind > QUICK_EVENTS:
        with show_progress("reading what is new") as progress:
            models.catch_up(progress)
    found = store.search(words, **where)
    if reason := models.rebuild_reason:
        print_error(f"{reason}, and is rebuilt")
    return found, {"read_models": models.name, "position": models.position, "made_anew": reason}


def _log_to_json(log: BlockLog, blocks: Iterable[LoggedBlock]) -> dict[str, Any]:
    return {
        **session_to_json(log.session),
        **pick(log.view.coordinate, "lineage lineage_version"),
        **pick(log.view.boundary, "boundary=originator_version"),
        "log": [
            {
                **placed_to_json(one),
                "fate": status,
                "pending": pending,
                "open": is_open,
                "block": block_to_json(one.block),
            }
            for one, status, pending, is_open in blocks
        ],
    }


def _print_log(log: BlockLog, blocks: Iterable[LoggedBlock], *, brief: bool) -> None:
    """Print the log in order, with a line at the view's boundary and marks on what it removed."""
    _print_session(log)
    turn = None
    boundary = log.view.boundary
    ahead = boundary.after if boundary else 0
    for one, status, pending, is_open in blocks:
        if boundary and ahead and one.position > ahead:
            print_text(f"-- compaction {_compaction_number(log)} decided on all above --")
            ahead = 0
        if one.turn != turn:
            turn = one.turn
            print_text(f"\nturn {turn}" if turn else "\nbefore the first turn", bold=True)
        marks = list_marks(one.block, status, pending=pending, is_open=is_open)
        top = format_block_heading(one.position, one.block, marks, brief=brief)
        print_block(top, format_block_body(one.block), brief=brief)


def _print_session(log: BlockLog) -> None:
    about = session_to_json(log.session)
    if about["prepared"]:
        number = number_compactions(log.session, MAIN_LINEAGE)[about["prepared"]]
        about["prepared"] = f"compaction {number}"
    about["view"] = f"{format_count(log.view.tokens, 'token')} estimated"
    if log.view.boundary:
        about["view"] += f" on {log.view.coordinate.lineage}, compaction {_compaction_number(log)}"
    print_text(about.pop("session"), bold=True)
    print_fields(list_fields(about))


def _compaction_number(log: BlockLog) -> int:
    assert log.view.boundary is not None, "what begins at none is not counted"
    number = log.view.boundary.originator_version
    return number_compactions(log.session, log.view.coordinate.lineage)[number]


def _print_recalled(blocks: Sequence[RecalledBlock], search: str | None) -> None:
    for one in blocks:
        top = format_block_heading(one.position, one.block, format_refusal(one.block))
        if search is None:
            print_block(top, format_block_body(one.block))
        else:
            print_block(top, _matching_lines(one.block.text, search))
    if search is not None:
        whole = f"`cutbank recall SESSION {blocks[0].position}`"
        print_text(f"{format_count(len(blocks), 'block')}; {whole} gives all of one.")


def _matching_lines(text: str, search: str) -> list[str]:
    wanted = search.casefold()
    lines = [line for line in text.splitlines() if wanted in line.casefold()]
    shown = [clip_text(line, _EXCERPT_CHARACTERS) for line in lines[:MAX_FOUND_LINES]]
    left = len(lines) - len(shown)
    return shown + ([f"... and {format_count(left, 'more line')}"] if left else [])


def _hit_to_json(found: "SearchHit | SourceHit") -> dict[str, Any]:
    if isinstance(found, SourceHit):
        about = pick(found, "session namespace file line")
    else:
        about = pick(
            found, "session namespace handle position turn kind name lineage boundary tokens"
        )
        about["said_at"] = found.said_at.isoformat()
    return about | {"snippet": found.snippet.text, "marks": found.snippet.marks}


def _print_hit(found: "SearchHit | SourceHit") -> None:
    if isinstance(found, SourceHit):
        place = f"line {found.line} of {found.file}"
    else:
        where = found.handle or f"boundary {found.boundary} on {found.lineage}"
        what = f"{found.kind} {found.name}" if found.name else found.kind
        turn = f", turn {found.turn}" if found.turn else ""
        when = found.said_at.astimezone().strftime("%Y-%m-%d %H:%M")
        place = f"{where} {what}{turn}, {when}"
    session = f"{found.session} " if found.session else ""
    print_text(f"{session}{place}", bold=True)
    print_text(f"    {found.snippet.mark_matches()}")
