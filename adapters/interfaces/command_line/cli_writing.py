"""The verbs that add to a session's log: blocks, and what is to become of them."""

from enum import StrEnum
from typing import Annotated, Protocol

import typer

from ....domain.blocks import Block
from ....domain.errors import InvalidSettingError
from ....domain.ranges import Ranges
from ...runtime.sessions.stored_session import Appended, StoredSession
from . import block_json, handles
from .database import opened_session
from .given_text import PIPED, read_text
from .invocation import Invocation
from .logged_blocks import BlockLog
from .printing import runs, say, say_json
from .words import Handles, SessionName


class Role(StrEnum):
    """Who says a text, or that it is a note which no model sees."""

    USER = "user"
    ASSISTANT = "assistant"
    DEVELOPER = "developer"
    NOTE = "note"
    THINKING = "thinking"


def append(
    call: Invocation,
    session: SessionName,
    text: Annotated[
        str | None, typer.Argument(metavar="TEXT", help="What is said; - reads what is piped in.")
    ] = None,
    *,
    role: Annotated[Role, typer.Option("--role", help="Who says it.")] = Role.USER,
    blocks: Annotated[
        str | None,
        typer.Option("--blocks", metavar="FILE", help="A JSON list of blocks instead of TEXT."),
    ] = None,
    response: Annotated[
        str | None,
        typer.Option(
            "--response",
            metavar="FILE",
            help="The JSON of a model's response (anthropic, openai, google) instead of TEXT.",
        ),
    ] = None,
    key: Annotated[
        str | None,
        typer.Option("--key", metavar="NAME", help="Names the append: repeated, it adds nothing."),
    ] = None,
    expect: Annotated[
        str | None,
        typer.Option(
            "--expect", metavar="HANDLE", help="Append only if the session still ends here."
        ),
    ] = None,
) -> None:
    """Add blocks to a session; a new name opens one."""
    append_given = _given(text, role, blocks, response)
    # Who expects a session to end somewhere expects that there is one.
    with opened_session(call, session, creates=expect is None) as found:
        expected = None
        if expect is not None:
            expected = handles.position(expect, lambda back: BlockLog(found).newest(back))
        done = append_given(found, key=key, expect=expected)
    if call.as_json:
        say_json(
            {
                "session": found.key,
                "namespace": found.namespace,
                "first": done.first,
                "last": done.last,
                "repeated": done.repeated,
            }
        )
    else:
        where = f"#{done.first}" if done.first == done.last else f"#{done.first}-{done.last}"
        said = f"was appended to {found.key} before, under the same key" if done.repeated else ""
        say(f"{where} {said or f'appended to {found.key}'}")


def pin(call: Invocation, session: SessionName, handle: Handles) -> None:
    """Keep blocks in the view, from the next boundary on."""
    with opened_session(call, session) as found:
        named = _named(found, handle)
        found.pin(named)
        _say_changed(call, found, named, "stays in the view from the next boundary on")


def unpin(call: Invocation, session: SessionName, handle: Handles) -> None:
    """Let pinned blocks leave the view again."""
    with opened_session(call, session) as found:
        named = _named(found, handle)
        found.unpin(named)
        _say_changed(call, found, named, "may leave the view again from the next boundary on")


def hide(
    call: Invocation,
    session: SessionName,
    handle: Handles,
    replacement: Annotated[
        str | None,
        typer.Option("--replacement", metavar="TEXT", help="What the view shows in their place."),
    ] = None,
) -> None:
    """Take blocks out of the view. The log keeps them.

    They leave with the next boundary, so that prompt caches stay warm until then.
    """
    with opened_session(call, session) as found:
        named = _named(found, handle)
        found.hide(named, replacement=replacement)
        _say_changed(call, found, named, "leaves the view with the next boundary")


def retract(call: Invocation, session: SessionName, handle: Handles) -> None:
    """Take blocks back, as if not said. The log keeps them.

    They leave every view at once. A call takes its result along.
    """
    with opened_session(call, session) as found:
        gone = found.retract(handles.parsed(handle, BlockLog(found).newest))
        _say_changed(call, found, gone, "was taken back")


def fork(
    call: Invocation,
    session: SessionName,
    new: Annotated[str, typer.Argument(metavar="NEW", help="The name of the fork.")],
    at: Annotated[
        str | None, typer.Option("--at", metavar="HANDLE", help="The last block that both share.")
    ] = None,
) -> None:
    """Open a session that shares this one's history so far."""
    with opened_session(call, session) as found:
        position = None
        if at is not None:
            position = handles.position(at, lambda back: BlockLog(found).newest(back))
        begins = found.fork(new, at=position).position
    if call.as_json:
        say_json(
            {
                "session": new,
                "namespace": found.namespace,
                "forked_from": found.key,
                "at": begins - 1,
                "position": begins,
            }
        )
    else:
        say(f"{new} shares {found.key} up to #{begins - 1} and goes its own way from there")


class AppendGiven(Protocol):
    """Appends what the command line gave."""

    def __call__(
        self, session: StoredSession, /, *, key: str | None, expect: int | None
    ) -> Appended: ...


def _given(text: str | None, role: Role, blocks: str | None, response: str | None) -> AppendGiven:
    match text, blocks, response:
        case str(), None, None:
            said = read_text(PIPED) if text == PIPED else text
            block = Block.model_validate({"kind": role.value, "text": said})
            return lambda session, **how: session.append(block, **how)
        case None, str(path), None:
            read = block_json.read(read_text(path), _name_of(path))
            return lambda session, **how: session.append(*read, **how)
        case None, None, str(path):
            body = block_json.read_json(read_text(path), _name_of(path))
            return lambda session, **how: session.append_response(body, **how)
        case _:
            raise InvalidSettingError(
                "append takes one of TEXT (- for what is piped in), --blocks FILE, --response FILE"
            )


def _name_of(path: str) -> str:
    return "standard input" if path == PIPED else path


def _named(session: StoredSession, words: list[str]) -> Ranges:
    """The blocks that handles name; what else lies in a range of them is passed by."""
    log = BlockLog(session)
    wanted = handles.parsed(words, log.newest)
    found = Ranges.of(block.position for block in session.recall(wanted))
    # A range may span what was taken back; of a single handle the store has to say that it was.
    singles = Ranges(run for run in wanted.runs if run[0] == run[1])
    return ((found - log.retracted) | singles) or wanted


def _say_changed(call: Invocation, session: StoredSession, named: Ranges, what: str) -> None:
    if call.as_json:
        say_json(
            {
                "session": session.key,
                "namespace": session.namespace,
                "handles": runs(named),
                "position": session.position,
            }
        )
    else:
        say(f"{named} {what}")
