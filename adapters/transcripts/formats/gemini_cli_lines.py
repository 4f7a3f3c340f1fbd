"""Reads Gemini CLI's session files of lines: messages, and lists that replace the context."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from ....domain.blocks import ToolResult
from ....domain.compaction_events import Trigger
from .content import make_result_content
from .entry_steps import EntrySteps, read_entry
from .fields import JsonDict, find_text, get_field, require_field, require_object
from .format import LineReader, make_line_format
from .gemini_cli import GeminiMessageReader, list_parts
from .gemini_history import is_snapshot, read_function_response
from .json_lines import SourceLine
from .source import TranscriptSource
from .steps import (
    Append,
    EntryEnd,
    ImportStep,
    ReplacementText,
    Rewind,
    SessionStart,
    SkippedEntry,
    SourceCompaction,
)

FORMAT_NAME = "gemini-cli-lines"
_NO_SUMMARY = "the source does not say why messages left"
_WORKSPACE = re.compile(r"\*\*Workspace Directories:\*\*\n\s*- (\S[^\n]*)")


def recognizes(source: TranscriptSource) -> bool:
    return _find_header(source) is not None


def begin_reading(source: TranscriptSource) -> "GeminiLineReader":
    header = _find_header(source) or {}
    parent = source.path.parent.name if header.get("kind") == "subagent" else None
    key, title = find_text(header, "sessionId") or source.stem, find_text(header, "summary")
    project = _find_project(source.first_values)
    return GeminiLineReader(SessionStart(key, title, parent, project=project))


def _find_header(source: TranscriptSource) -> JsonDict | None:
    match source.first_values[:1]:
        case [{"sessionId": str(), "projectHash": _, "startTime": _} as header]:
            return None if "messages" in header else header
        case _:
            return None


def _find_project(values: Iterable[Any]) -> str | None:
    """Return the working folder, which Gemini CLI names in its first message to the model."""
    for value in values:
        for message in [value, *(_list_messages(value) or [])]:
            for part in list_parts(message):
                if found := _WORKSPACE.search(find_text(part, "text") or ""):
                    return found[1]
    return None


@dataclass(slots=True)
class _ToldResult:
    source_id: str
    """The message that holds it."""
    content: Any


class GeminiLineReader(LineReader):
    def __init__(self, begin: SessionStart) -> None:
        self.begin = begin
        self.has_begun = False
        self.messages = GeminiMessageReader()
        self.context: dict[str, str] = {}
        """The messages that the model is sent, each with its words."""
        self.results: dict[str, _ToldResult] = {}
        """The results of calls, as the model is sent them."""
        self.summaries: set[str] = set()
        self.waiting: list[SourceLine] = []
        """A list of messages, and the lines after it, until a message shows that it holds.

        Where a session goes on, a list of its first message alone comes before the list of all.
        """

    def read(self, line: SourceLine) -> Iterable[ImportStep]:
        if not self.waiting and _list_messages(line.value) is None:
            return self._read_line(line)
        self.waiting.append(line)
        return () if _is_state(line.value) else self._read_waiting()

    def close(self, *, final: bool = False) -> Iterable[ImportStep]:
        return self._read_waiting(is_end=True) if final and self.waiting else ()

    def _read_waiting(self, *, is_end: bool = False) -> list[ImportStep]:
        lines, self.waiting = self.waiting, []
        lists = [line for line in lines if _list_messages(line.value) is not None]
        *past, last = lists
        if is_end and not any(map(_find_summary, _list_messages(last.value) or [])):
            past = lists
        return [step for line in lines for step in self._read_line(line, is_past=line in past)]

    def _read_line(self, line: SourceLine, *, is_past: bool = False) -> list[ImportStep]:
        entry = EntrySteps(FORMAT_NAME, line, line.number, line.value, line.digest)
        if not self.has_begun:
            self.has_begun = True
            entry.add(self.begin)
        if is_past:
            entry.skip("a list that does not hold")
            return entry.finish()
        return read_entry(entry, self._read)

    def _read(self, entry: EntrySteps) -> None:
        match require_object(entry.value):
            case {"$rewindTo": str(id)}:
                before = [*self.context]
                self._take_back(entry, before[: before.index(id)] if id in before else [])
            case {"id": str()}:
                self._read_message(entry)
            case {"$set": dict(state)} | ({"sessionId": str()} as state):
                self._read_state(entry, state)
            case other:
                entry.add_unknown("+".join(sorted(other)))

    def _read_message(self, entry: EntrySteps) -> None:
        """Read a message, or what is new in it."""
        self.messages.read(entry)
        id = str(entry.id)
        for step in entry.steps:
            match step:
                case Append(block=ToolResult(tool_call_id=call, content=content)):
                    self.results[call] = _ToldResult(id, content)
        if words := _find_words(entry.value):
            self.context[id] = words

    def _read_state(self, entry: EntrySteps, state: JsonDict) -> None:
        entry.time = get_field(state, "lastUpdated", str)
        title = get_field(state, "summary", str)
        if title and title != self.begin.title:
            self.begin = replace(self.begin, title=title)
            entry.add(self.begin)
        if "messages" in state:
            self._read_list(entry, require_field(state, "messages", list))
        if all(isinstance(step, SessionStart) for step in entry.steps):
            entry.skip()

    def _read_list(self, entry: EntrySteps, messages: list[Any]) -> None:
        """Read what the model is sent from here on, of which most was read before."""
        renamed = self._match_renamed(messages)
        listed = {renamed.get(id, id) for message in messages if (id := find_text(message, "id"))}
        kept = [id for id in self.context if id in listed]
        summary = next((text for text in map(_find_summary, messages) if text), None)
        if summary in self.summaries:
            summary = None
        if summary or kept != [*self.context][: len(kept)]:
            self._compact(entry, kept, summary)
        elif len(kept) < len(self.context):
            self._take_back(entry, kept)
        for message in messages:
            if find_text(message, "id") not in renamed and not _find_summary(message):
                part = EntrySteps(FORMAT_NAME, entry.line, entry.number, message)
                read = read_entry(part, self._read_message)
                entry.add(*(step for step in read if not isinstance(step, SkippedEntry | EntryEnd)))
        self._replace_results(entry, messages)

    def _match_renamed(self, messages: list[Any]) -> dict[str, str]:
        """Match messages with those of the context by their words, from the newest back.

        What a compression keeps has new ids.
        """
        known = [*self.context.items()]
        matched: dict[str, str] = {}
        for message in reversed(messages):
            id, words = find_text(message, "id"), _find_words(message)
            if id and words:
                old, said = known.pop() if known else ("", "")
                if id in self.context or said != words:
                    break
                matched[id] = old
        return matched

    def _compact(self, entry: EntrySteps, kept: list[str], summary: str | None) -> None:
        if summary:
            self.summaries.add(summary)
        if self.context:
            entry.mark_compaction("compression", source_id=entry.key)
            reason = None if summary else _NO_SUMMARY
            entry.add(
                SourceCompaction(
                    f"{entry.key}:compacted",
                    Trigger.THRESHOLD,
                    summary,
                    tuple(kept),
                    source_time=entry.time,
                    partial_reason=reason,
                )
            )
        elif summary:
            entry.append_summary(summary)
        self.context = {id: self.context[id] for id in kept}

    def _take_back(self, entry: EntrySteps, kept: list[str]) -> None:
        entry.add(Rewind(f"{entry.key}:rewind", to=kept[-1] if kept else None))
        self.context = {id: self.context[id] for id in kept}

    def _replace_results(self, entry: EntrySteps, messages: list[Any]) -> None:
        """Record the results that the model is sent otherwise from here on, mostly cut short."""
        replacements: list[ReplacementText] = []
        for part in [part for message in messages for part in list_parts(message)]:
            match part:
                case {"functionResponse": {"id": str(id)} as response} if id in self.results:
                    told, answer = self.results[id], read_function_response(response, entry.line)
                    content = make_result_content(answer.parts)
                    if isinstance(content, str) and content != told.content:
                        told.content = content
                        replacements.append(ReplacementText(told.source_id, content, id))
        if replacements:
            entry.add(
                SourceCompaction(
                    f"{entry.key}:shortened",
                    Trigger.THRESHOLD,
                    None,
                    source_time=entry.time,
                    replacements=tuple(replacements),
                    is_shortening=True,
                )
            )


def _list_messages(value: Any) -> list[Any] | None:
    """Return the messages of a line that lists what the model is sent; None for other lines."""
    match value:
        case {"$set": {"messages": list(messages)}} | {"sessionId": _, "messages": list(messages)}:
            return messages
        case _:
            return None


def _is_state(value: Any) -> bool:
    """Return whether a line tells of the session, and of no new message."""
    return isinstance(value, dict) and not {"id", "$rewindTo"} & value.keys()


def _find_summary(message: Any) -> str | None:
    texts = [find_text(part, "text") or "" for part in list_parts(message)]
    is_by_model = find_text(message, "type") != "user"
    return None if is_by_model else next(filter(is_snapshot, texts), None)


def _find_words(message: Any) -> str:
    """Return a message's texts and the names of its calls, in whichever shape it is stored."""
    if not isinstance(message, dict):
        return ""
    content, calls = message.get("content"), message.get("toolCalls")
    words = [content] if isinstance(content, str) else []
    names = [find_text(call, "name") or "" for call in calls] if isinstance(calls, list) else []
    for part in list_parts(message):
        match part:
            case {"text": str(text)} if part.get("thought") is not True:
                words.append(text)
            case {"functionCall": {"name": str(name)}} if not calls:
                names.append(name)
    return "\n".join(filter(None, [*words, *names]))


FORMAT = make_line_format(
    FORMAT_NAME,
    "sessions of Gemini CLI, line by line",
    recognizes,
    begin_reading,
    home_patterns=("~/.gemini/tmp",),
)
