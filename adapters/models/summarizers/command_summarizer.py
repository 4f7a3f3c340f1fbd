"""Lets a program write the summary: JSON in, text or JSON out, without a shell."""

import asyncio
import signal
from collections.abc import Sequence
from dataclasses import dataclass
from os import EX_TEMPFAIL
from pathlib import Path

from ....domain.errors import InvalidSettingError, SummarizerFailedError
from ....domain.item import Item
from ....domain.summaries.summarizer import Draft, Material
from . import command_exchange
from .program_run import ProgramResult, run_program


@dataclass(frozen=True)
class CommandSummarizer:
    """A program with its arguments; docs/summarizers.md describes its input and output."""

    argv: tuple[str, ...]
    from_originals: bool = False
    """Send the originals of everything that the text replaces, instead of the earlier summary."""
    cwd: str | None = None
    name: str = "command"

    def __post_init__(self) -> None:
        argv: Sequence[str] = self.argv
        if isinstance(argv, str) or not argv or not all(isinstance(word, str) for word in argv):
            raise InvalidSettingError(
                f"command: argv cannot be {argv!r}; it takes a program and its arguments, "
                "as a list of texts"
            )
        object.__setattr__(self, "argv", tuple(argv))

    async def summarize(self, material: Material) -> Draft:
        """Return the program's draft; on cancellation, kill the program and its children.

        Raises SummarizerFailedError, which can be retried if the program exits with EX_TEMPFAIL.
        """
        items: Sequence[Item] = material.removed_items
        previous = material.previous
        if self.from_originals and material.originals is not None:
            originals = material.originals
            items, previous = await asyncio.to_thread(lambda: list(originals())), None
        asked = command_exchange.make_question(material, items, previous)
        try:
            ended = await run_program(self.argv, asked, self.cwd)
        except OSError as error:
            # Python reports the program, or the missing working folder.
            raise SummarizerFailedError(
                f"{self._program} cannot be started: {error.strerror or error}; check argv and cwd"
            ) from error
        self._check(ended)
        try:
            return command_exchange.parse_answer(ended.output, material)
        except SummarizerFailedError as error:
            raise SummarizerFailedError(f"{self._program} {error}") from error

    @property
    def _program(self) -> str:
        return Path(self.argv[0]).name

    def _check(self, ended: ProgramResult) -> None:
        if ended.is_too_long:
            raise SummarizerFailedError(f"{self._program} wrote more than a summary; it was ended")
        if ended.status == 0:
            return
        how = (
            f"ended with status {ended.status}"
            if ended.status > 0
            else f"was killed by {_signal_name(-ended.status)}"
        )
        said = f": {ended.last_error_line}" if ended.last_error_line else ""
        raise SummarizerFailedError(
            f"{self._program} {how}{said}", is_transient=ended.status == EX_TEMPFAIL
        )


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
