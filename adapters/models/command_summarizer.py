"""Lets a program write the summary: JSON in, text or JSON out, without a shell."""

import json
import shlex
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from os import EX_TEMPFAIL
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, Field, PositiveInt, ValidationError, field_validator

from ...domain.blocks import Media, ToolCall, ToolResult
from ...domain.errors import InvalidSettingError, SummarizerFailedError
from ...domain.item import WindowItem
from ...domain.ranges import Ranges
from ...domain.session_events import Usage
from ...domain.summaries.summarizer import Draft, Material
from .conversation_text import read_source
from .program_run import ProgramRun, run_program
from .reply_parsing import parse_reply

EXCHANGE_VERSION = 1
"""Raised when programs written for an older version would misread the input."""


def make_question(material: Material, items: Iterable[WindowItem], previous: str | None) -> bytes:
    document = {
        "version": EXCHANGE_VERSION,
        "budget": material.budget,
        "instructions": material.instructions,
        "previous": previous,
        "covers": _to_runs(material.covers),
        "prefix": _to_runs(material.prefix),
        "digest": {
            "read_files": list(material.digest.read_files),
            "modified_files": list(material.digest.modified_files),
        },
        "blocks": [_block_to_json(item) for item in items],
    }
    return json.dumps(document).encode()


class _Answer(BaseModel, strict=True):
    """What a program may add to its text."""

    cites: list[PositiveInt | tuple[PositiveInt, PositiveInt]] | None = None
    model: str | None = None
    usage: Usage | None = None
    cost_usd: Annotated[float, Field(ge=0, allow_inf_nan=False)] | None = None
    was_truncated: bool | None = None

    @field_validator("cites", mode="before")
    @classmethod
    def _read_runs(cls, cites: Any) -> Any:
        """Return cites such as `[3, [7, 9]]` with the runs that JSON has as lists."""
        if not isinstance(cites, list):
            return cites
        return [tuple(one) if isinstance(one, list) else one for one in cites]


def parse_answer(output: bytes, material: Material) -> Draft:
    """Return the draft from a program's output: a JSON object with a `text`, or plain text."""
    text = output.decode("utf-8", "replace").strip()
    more: dict[str, Any] = {}
    if text.startswith("{"):
        with suppress(ValueError, RecursionError):  # else it is a text that begins with a brace
            more = json.loads(text)
            text = more.pop("text", None)
    try:
        answer = _Answer.model_validate(more)
        cites = Ranges((one, one) if isinstance(one, int) else one for one in answer.cites or ())
    except ValidationError as error:
        raise _make_answer_error(error.errors()[0]["loc"][0]) from error
    except ValueError as error:
        raise _make_answer_error("cites") from error
    if not isinstance(text, str):
        raise _make_answer_error("text")
    draft = parse_reply(text, material.covers)
    return replace(
        draft,
        cites=draft.cites | cites,
        model=answer.model,
        usage=answer.usage,
        cost_usd=answer.cost_usd,
        was_truncated=bool(answer.was_truncated),
    )


def _make_answer_error(field: object) -> SummarizerFailedError:
    return SummarizerFailedError(
        f"answered JSON whose `{field}` is missing or cannot be read; see docs/summarizers.md"
    )


def _block_to_json(item: WindowItem) -> dict[str, Any]:
    block = item.block
    told: dict[str, Any] = {
        "position": item.position,
        "kind": str(item.kind),
        "turn": item.turn,
        "tokens": item.tokens,
        "text": block.text,
    }
    media: tuple[Media, ...] = ()
    if isinstance(block, ToolCall):
        told |= {"tool": block.name, "tool_call_id": block.tool_call_id}
    elif isinstance(block, ToolResult):
        told |= {"call": item.call, "tool_call_id": block.tool_call_id, "is_error": block.is_error}
        media = block.media
    else:
        told |= {"name": block.name} if block.name else {}
        media = (block.media,) if block.media else ()
    if media:
        # Recalling the block gives the bytes.
        told["media"] = [
            {"type": one.type, "mime": one.mime, "bytes": len(one.data), "url": one.url}
            for one in media
        ]
    return told


def _to_runs(ranges: Ranges) -> list[list[int]]:
    return [list(run) for run in ranges.runs]


MAX_OUTPUT_BYTES = 1_000_000
"""A program that writes more is killed, since that is no summary."""


@dataclass(frozen=True)
class CommandSummarizer:
    """A program with its arguments; docs/summarizers.md describes its input and output."""

    argv: tuple[str, ...] | str
    """As a tuple, or as one text that is split as a shell would split it."""
    from_originals: bool = False
    """Send the originals of everything that the text replaces, instead of the earlier summary."""
    cwd: str | None = None
    name: str = "command"

    def __post_init__(self) -> None:
        try:
            argv = tuple(shlex.split(self.argv) if isinstance(self.argv, str) else self.argv)
        except ValueError:
            argv = ()  # a quote is never closed
        if not argv or not all(isinstance(word, str) for word in argv):
            raise InvalidSettingError(
                f"command: argv cannot be {self.argv!r}; it takes a program and its arguments"
            )
        object.__setattr__(self, "argv", argv)

    async def summarize(self, material: Material) -> Draft:
        """Return the program's draft; on cancellation, kill the program and its children.

        Raises SummarizerFailedError, which can be retried if the program exits with EX_TEMPFAIL.
        """
        items, previous = await read_source(material, from_originals=self.from_originals)
        asked = make_question(material, items, previous)
        try:
            ended = await run_program(self.argv, asked, cwd=self.cwd, max_output=MAX_OUTPUT_BYTES)
        except OSError as error:
            # Python reports the program, or the missing working folder.
            raise SummarizerFailedError(
                f"{self._program} cannot be started: {error.strerror or error}; check argv and cwd"
            ) from error
        self._check(ended)
        try:
            return parse_answer(bytes(ended.output), material)
        except SummarizerFailedError as error:
            raise SummarizerFailedError(f"{self._program} {error}") from error

    @property
    def _program(self) -> str:
        return Path(self.argv[0]).name

    def _check(self, ended: ProgramRun) -> None:
        if ended.is_too_long:
            raise SummarizerFailedError(f"{self._program} wrote more than a summary; it was ended")
        if ended.status != 0:
            raise SummarizerFailedError(
                f"{self._program} {ended.describe_end()}",
                is_transient=ended.status == EX_TEMPFAIL,
            )
