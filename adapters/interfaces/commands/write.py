"""Implements the verbs that write to a session's log, such as `append`, `pin` and `wake`."""

from collections.abc import Callable
from datetime import UTC
from enum import StrEnum
from functools import partial
from typing import Any

from ....domain.blocks import AnyBlock, Block
from ....domain.errors import InvalidSettingError
from ....domain.ranges import Ranges
from ...runtime.sessions.stored_session import StoredSession, schedule_wake
from ..command_line.blocks import find_newest, find_position, parse_blocks, parse_handles
from ..command_line.options import (
    HANDLES,
    HANDLES_HELP,
    SESSION,
    STDIN_WORD,
    name_input,
    parse_moment,
    parse_span,
    read_input_json,
    read_input_text,
)
from ..command_line.printing import format_time, pick
from ..command_line.sessions import name_to_json, open_call_session
from ..command_line.verbs import Answer, Invocation, argument, flag, option


class TextRole(StrEnum):
    USER = "user"
    ASSISTANT = "assistant"
    DEVELOPER = "developer"
    NOTE = "note"
    THINKING = "thinking"


def append(
    call: Invocation,
    session: str = SESSION,
    text: str | None = argument("TEXT", "The text; - reads standard input.", None),
    *,
    role: TextRole = option("--role", "Who says it.", TextRole.USER),
    blocks: str | None = option("--blocks FILE", "A JSON list of blocks instead of TEXT."),
    response: str | None = option(
        "--response FILE",
        "The JSON of a model's response (anthropic, openai, google) instead of TEXT.",
    ),
    key: str | None = option("--key NAME", "Names the append: repeated, it adds nothing."),
    expect: str | None = option("--expect HANDLE", "Append only if the session still ends here."),
) -> Answer:
    said, body = _read_input(text, role, blocks, response)
    # `--expect` requires an existing session.
    with open_call_session(call, session, creates=expect is None) as found:
        expected = None if expect is None else find_position(found, expect)
        if said:
            done = found.append(*said, key=key, expect=expected)
        else:
            done = found.append_response(body, key=key, expect=expected)
    where = f"#{done.first}" if done.first == done.last else f"#{done.first}-{done.last}"
    what = f"appended to {found.key}"
    if done.is_repeated:
        what = f"was {what} before, under the same key"
    document = name_to_json(found) | pick(done, "first last") | {"repeated": done.is_repeated}
    return Answer(document, f"{where} {what}")


def pin(call: Invocation, session: str = SESSION, handle: list[str] = HANDLES) -> Answer:
    what = "kept in the view from the next boundary on"
    return _change_blocks(call, session, handle, StoredSession.pin, what)


def unpin(call: Invocation, session: str = SESSION, handle: list[str] = HANDLES) -> Answer:
    what = "free to leave the view from the next boundary on"
    return _change_blocks(call, session, handle, partial(StoredSession.pin, keep=False), what)


def hide(
    call: Invocation,
    session: str = SESSION,
    handle: list[str] = HANDLES,
    replacement: str | None = option("--replacement TEXT", "What the view shows in their place."),
) -> Answer:
    """They leave with the next boundary, so that prompt caches stay warm until then."""
    hide_blocks = partial(StoredSession.hide, replacement=replacement)
    return _change_blocks(
        call, session, handle, hide_blocks, "out of the view from the next boundary on"
    )


def retract(
    call: Invocation,
    session: str = SESSION,
    handle: list[str] | None = argument("HANDLE", HANDLES_HELP, None),
    *,
    every: bool = flag("--all", "All blocks that there are."),
) -> Answer:
    """They leave every view at once. A call takes its result along."""
    if bool(handle) == every:
        raise InvalidSettingError("retract takes handles, as 12, 3-9 or last, or --all")
    with open_call_session(call, session) as found:
        if not handle:
            all_of_them = Ranges.span(1, found.position)
            found.clear()
            return _describe_change(found, all_of_them, "taken back")
        gone = found.retract(parse_handles(handle, partial(find_newest, found)))
        return _describe_change(found, gone, "taken back")


def fork(
    call: Invocation,
    session: str = SESSION,
    new: str = argument("NEW", "The name of the fork."),
    at: str | None = option("--at HANDLE", "The last block that both share."),
) -> Answer:
    with open_call_session(call, session) as found:
        begins = found.fork(new, at=None if at is None else find_position(found, at)).position
    about = {"session": new, "namespace": found.namespace, "forked_from": found.key}
    return Answer(
        about | {"at": begins - 1, "position": begins},
        f"{new} shares {found.key} up to #{begins - 1} and goes its own way from there",
    )


def wake(
    call: Invocation,
    session: str = SESSION,
    *,
    at: str | None = option("--at TIME", "2026-01-31T09:00, by your clock, or with +00:00."),
    after: str | None = option("--in SPAN", "From now: 90s, 20m, 2h or 1d."),
    cancel: bool = flag("--cancel", "Take back what was scheduled."),
    reason: str | None = option("--reason TEXT", "What it waits for."),
) -> Answer:
    if (at is not None) + (after is not None) + cancel != 1:
        raise InvalidSettingError("wake takes one of --at TIME, --in SPAN and --cancel")
    with open_call_session(call, session) as found:
        now = found.log.events.clock()
        moment = None
        if at is not None:
            moment = parse_moment(at, "--at")
        elif after is not None:
            moment = now + parse_span(after, "--in")
        if moment is not None and moment <= now:
            raise InvalidSettingError(f"{moment.isoformat(timespec='seconds')} is past: say when")
        schedule_wake(found, moment, reason)
        position = found.position
    if moment is None:
        line = f"{found.key} waits for no moment any more"
    else:
        line = f"{found.key} goes on at {format_time(moment)}; until then it is not idle"
    at_utc = moment.astimezone(UTC).isoformat() if moment else None
    return Answer(name_to_json(found) | {"wake_at": at_utc, "position": position}, line)


def _read_input(
    text: str | None, role: TextRole, blocks: str | None, response: str | None
) -> tuple[list[AnyBlock], Any]:
    """Return the blocks to append; without blocks, the body of a model's response."""
    match text, blocks, response:
        case str(), None, None:
            said = read_input_text(STDIN_WORD) if text == STDIN_WORD else text
            return [Block.model_validate({"kind": role.value, "text": said})], None
        case None, str(path), None:
            return parse_blocks(read_input_json(path), name_input(path)), None
        case None, None, str(path):
            return [], read_input_json(path)
        case _:
            raise InvalidSettingError(
                "append takes one of TEXT (- for standard input), --blocks FILE, --response FILE"
            )


def _change_blocks(
    call: Invocation,
    key: str,
    words: list[str],
    change: Callable[[StoredSession, Ranges], object],
    what: str,
) -> Answer:
    """Change the blocks that handles name; skip everything else in a range."""
    with open_call_session(call, key) as session:
        wanted = parse_handles(words, partial(find_newest, session))
        found = Ranges.of(block.position for block in session.recall(wanted))
        # A range may include retracted blocks; for a single handle the store must report it.
        singles = Ranges(run for run in wanted.runs if run[0] == run[1])
        retracted = session.log.reader().read_retracted(session.position)
        named = ((found - retracted) | singles) or wanted
        change(session, named)
        return _describe_change(session, named, what)


def _describe_change(session: StoredSession, named: Ranges, what: str) -> Answer:
    document = name_to_json(session) | {"handles": named, "position": session.position}
    return Answer(document, f"{named}: {what}")
