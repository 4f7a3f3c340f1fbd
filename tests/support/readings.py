"""Write what a reader makes of each sample and each case, one line of JSON a step.

A case is a small transcript that is named after the rule that it is made for.

When a reader has learned something new, write the files again and read in their diff that nothing
else has changed: `PYTHONPATH=tests/support python tests/support/readings.py`. Keys must never
change: a store knows by them what it has imported.
"""

import json
from hashlib import blake2b
from pathlib import Path
from typing import Any

from transcripts import name_of, samples

from cutbank.adapters.transcripts.formats.catalog import FORMATS
from cutbank.adapters.transcripts.formats.source import TranscriptSource
from cutbank.adapters.transcripts.formats.steps import (
    Append,
    EntryEnd,
    ImportStep,
    RawEntry,
    ReplacementText,
    ReportedCall,
    RequestParameters,
    Rewind,
    SessionStart,
    SkippedEntry,
    SourceCompaction,
    SourceProblem,
    SourceShortening,
    SubAgentLink,
    UnknownEntry,
)
from cutbank.domain.blocks import (
    AnyBlock,
    Block,
    Media,
    Native,
    NativePart,
    Text,
    ToolCall,
    ToolResult,
)

FORMATS_FOLDER = Path(__file__).parents[1] / "adapters" / "formats"
CASES = FORMATS_FOLDER / "cases"
FOLDER = FORMATS_FOLDER / "readings"
LONGEST = 80
"""Characters of a text that a golden file holds whole; of a longer one it holds a digest."""


def formats() -> list[str]:
    """Return the formats that have samples."""
    return sorted({name_of(path).partition("/")[0] for path in samples()})


def readings(name: str) -> list[str]:
    """Return the lines of the golden file of a format."""
    found = [path for path in samples() if name_of(path).startswith(f"{name}/")]
    cases = sorted((CASES / name).glob("*"))
    return [
        line
        for path in [*found, *cases]
        for line in (json.dumps({"of": path.name}), *reading_of(name, path))
    ]


def reading_of(name: str, path: Path) -> list[str]:
    """Return each step of reading a transcript as a line; the wording of problems is left out."""
    return [
        json.dumps({name: it for name, it in plain(step).items() if it not in (None, [], "")})
        for step in FORMATS[name].read(TranscriptSource(path))
    ]


def plain(step: ImportStep) -> dict[str, Any]:
    match step:
        case SessionStart(key, title, parent, call, fork, at, project):
            told = {"title": title, "parent": parent, "call": call}
            return {"session": key} | told | {"fork": fork, "at": at, "project": project}
        case SubAgentLink(key, parent, call):
            return {"linked": key, "parent": parent, "call": call}
        case Append(key, block, source_id, served):
            return {"block": key, "id": source_id, "served": served or None} | plain_block(block)
        case ReportedCall(key, fields, before):
            usage = fields.get("usage")
            counts = usage if isinstance(usage, dict) or usage is None else usage.model_dump()
            used = counts and {name: one for name, one in counts.items() if one is not None}
            return {"call": key, "before": before} | fields | {"usage": used}
        case RequestParameters(key, prompt, tools, settings):
            return {"asked": key, "prompt": short(prompt), "tools": tools, "settings": settings}
        case RawEntry(key, kind, _, source_id, line):
            return {"aside": key, "type": kind, "id": source_id, "line": line}
        case UnknownEntry(key, kind, _, line, source_id):
            return {"unknown": key, "type": kind, "id": source_id, "line": line}
        case Rewind(key, to):
            return {"rewind": key, "to": to}
        case SourceCompaction(key, trigger, summary, kept, before, after, time, partial, instead):
            what = {"summary": short(summary), "kept": kept, "is partial": partial is not None}
            counts = {"tokens": [before, after], "time": time}
            return {"compacted": key, "trigger": trigger} | what | counts | replaced(instead)
        case SourceShortening(key, trigger, instead, before, after, time):
            counts = {"tokens": [before, after], "time": time}
            return {"shortened": key, "trigger": trigger} | counts | replaced(instead)
        case SkippedEntry(kind):
            return {"skipped": kind}
        case SourceProblem(line, _, key, _, _, is_part):
            return {"problem": line, "key": key, "is part": is_part or None}
        case EntryEnd(outcome, offset, answers):
            return {"entry": outcome, "offset": offset, "answers": answers or None}


def replaced(instead: tuple[ReplacementText, ...]) -> dict[str, Any]:
    return {"instead": [[one.source_id, short(one.text), one.tool_call_id] for one in instead]}


def plain_block(block: AnyBlock) -> dict[str, Any]:
    origin = block.origin
    plain = {
        "kind": block.kind.value,
        "message": block.message_id,
        "native": short_of(block.native),
    }
    if origin:
        plain |= {"origin": [origin.format, origin.id, origin.time, origin.line]}
    match block:
        case ToolCall():
            what = {"call id": block.tool_call_id, "arguments": short(str(block.arguments))}
            return plain | {"name": block.name} | what
        case ToolResult():
            content = block.content if isinstance(block.content, tuple) else (block.content,)
            parts = [part if isinstance(part, str) else plain_part(part) for part in content]
            failed = block.is_error or None
            shown = [short(part) if isinstance(part, str) else part for part in parts]
            return plain | {"call id": block.tool_call_id, "is error": failed, "content": shown}
        case Block():
            media = block.media and plain_part(block.media)
            return plain | {"name": block.name, "text": short(block.text), "media": media}


def plain_part(part: Text | Media | NativePart) -> Any:
    match part:
        case Text():
            return short(part.text)
        case Media():
            return [part.type, part.mime, part.url, part.name, short(part.data.hex())]
        case NativePart():
            return short_of(part.native)


def short_of(native: Native | None) -> Any:
    return native and [native.provider, short(native.item)]


def short(text: str | None) -> str | None:
    if text is None or len(text) <= LONGEST:
        return text
    digest = blake2b(text.encode("utf-8", "surrogatepass"), digest_size=6).hexdigest()
    return f"{text[:60]}... {len(text)} characters, {digest}"


if __name__ == "__main__":
    for name in formats():
        (FOLDER / f"{name}.jsonl").write_text("\n".join(readings(name)) + "\n", encoding="utf-8")
