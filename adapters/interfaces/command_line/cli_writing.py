"""Implements the verbs that write to a session's log, such as `append`, `pin` and `fork`."""

from enum import StrEnum
from typing import Annotated, Protocol

import typer

from ....domain.blocks import Block
from ....domain.errors import InvalidSettingError
from ....domain.ranges import Ranges
from ...runtime.sessions.stored_session import AppendResult, StoredSession
from . import block_json, handle_parsing
from .database import open_call_session
from .input_text import STDIN_WORD, read_input_text
from .invocation import Invocation
from .logged_blocks import BlockLog
from .printing import list_handle_ranges, print_json, print_text
from .shared_options import HandlesArgument, SessionArgument


class TextRole(StrEnum):
    """The author of a text; no model sees a note."""

    USER = "user"
    ASSISTANT = "assistant"
    DEVELOPER = "developer"
    NOTE = "note"
    THINKING = "thinking"


def append(
    call: Invocation,
    session: SessionArgument,
    text: Annotated[
        str | None, typer.Argument(metavar="TEXT", help="What is said; - reads what is piped in.")
    ] = None,
    *,
    role: Annotated[TextRole, typer.Option("--role", help="Who says it.")] = TextRole.USER,
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
    append_given = _read_input(text, role, blocks, response)
    # `--expect` requires an existing session.
    with open_call_session(call, session, creates=expect is None) as found:
        expected = None
        if expect is not None:
            expected = handle_parsing.parse_handle(
                expect, lambda back: BlockLog(found).find_newest(back)
            )
        done = append_given(found, key=key, expect=expected)
    if call.as_json:
        print_json(
            {
                "session": found.key,
                "namespace": found.namespace,
                "first": done.first,
                "last": done.last,
                "repeated": done.is_repeated,
            }
        )
    else:
        where = f"#{done.first}" if done.first == done.last else f"#{done.first}-{done.last}"
        said = f"was appended to {found.key} before, under the same key" if done.is_repeated else ""
        print_text(f"{where} {said or f'appended to {found.key}'}")


def pin(call: Invocation, session: SessionArgument, handle: HandlesArgument) -> None:
    """Keep blocks in the view, from the next boundary on."""
    with open_call_session(call, session) as found:
        named = _find_blocks(found, handle)
        found.pin(named)
        _print_changed(call, found, named, "stays in the view from the next boundary on")


def unpin(call: Invocation, session: SessionArgument, handle: HandlesArgument) -> None:
    """Let pinned blocks leave the view again."""
    with open_call_session(call, session) as found:
        named = _find_blocks(found, handle)
        found.unpin(named)
        _print_changed(call, found, named, "may leave the view again from the next boundary on")


def hide(
    call: Invocation,
    session: SessionArgument,
    handle: HandlesArgument,
    replacement: Annotated[
        str | None,
        typer.Option("--replacement", metavar="TEXT", help="What the view shows in their place."),
    ] = None,
) -> None:
    """Take blocks out of the view. The log keeps them.

    They leave with the next boundary, so that prompt caches stay warm until then.
    """
    with open_call_session(call, session) as found:
        named = _find_blocks(found, handle)
        found.hide(named, replacement=replacement)
        _print_changed(call, found, named, "leaves the view with the next boundary")


def retract(call: Invocation, session: SessionArgument, handle: HandlesArgument) -> None:
    """Take blocks back, as if not said. The log keeps them.

    They leave every view at once. A call takes its result along.
    """
    with open_call_session(call, session) as found:
        gone = found.retract(handle_parsing.parse_handles(handle, BlockLog(found).find_newest))
        _print_changed(call, found, gone, "was taken back")


def fork(
    call: Invocation,
    session: SessionArgument,
    new: Annotated[str, typer.Argument(metavar="NEW", help="The name of the fork.")],
    at: Annotated[
        str | None, typer.Option("--at", metavar="HANDLE", help="The last block that both share.")
    ] = None,
) -> None:
    """Open a session that shares this one's history so far."""
    with open_call_session(call, session) as found:
        position = None
        if at is not None:
            position = handle_parsing.parse_handle(
                at, lambda back: BlockLog(found).find_newest(back)
            )
        begins = found.fork(new, at=position).position
    if call.as_json:
        print_json(
            {
                "session": new,
                "namespace": found.namespace,
                "forked_from": found.key,
                "at": begins - 1,
                "position": begins,
            }
        )
    else:
        print_text(f"{new} shares {found.key} up to #{begins - 1} and goes its own way from there")


class AppendInput(Protocol):
    def __call__(
        self, session: StoredSession, /, *, key: str | None, expect: int | None
    ) -> AppendResult: ...


def _read_input(
    text: str | None, role: TextRole, blocks: str | None, response: str | None
) -> AppendInput:
    match text, blocks, response:
        case str(), None, None:
            said = read_input_text(STDIN_WORD) if text == STDIN_WORD else text
            block = Block.model_validate({"kind": role.value, "text": said})
            return lambda session, **how: session.append(block, **how)
        case None, str(path), None:
            read = block_json.parse_blocks(read_input_text(path), _file_name(path))
            return lambda session, **how: session.append(*read, **how)
        case None, None, str(path):
            body = block_json.parse_json(read_input_text(path), _file_name(path))
            return lambda session, **how: session.append_response(body, **how)
        case _:
            raise InvalidSettingError(
                "append takes one of TEXT (- for what is piped in), --blocks FILE, --response FILE"
            )


def _file_name(path: str) -> str:
    return "standard input" if path == STDIN_WORD else path


def _find_blocks(session: StoredSession, words: list[str]) -> Ranges:
    """Return the blocks that handles name; skip everything else in a range."""
    log = BlockLog(session)
    wanted = handle_parsing.parse_handles(words, log.find_newest)
    found = Ranges.of(block.position for block in session.recall(wanted))
    # A range may include retracted blocks; for a single handle the store must report it.
    singles = Ranges(run for run in wanted.runs if run[0] == run[1])
    return ((found - log.retracted) | singles) or wanted


def _print_changed(call: Invocation, session: StoredSession, named: Ranges, what: str) -> None:
    if call.as_json:
        print_json(
            {
                "session": session.key,
                "namespace": session.namespace,
                "handles": list_handle_ranges(named),
                "position": session.position,
            }
        )
    else:
        print_text(f"{named} {what}")
