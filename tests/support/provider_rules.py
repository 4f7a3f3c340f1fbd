"""What providers refuse, as their own documents and error messages say it; knows no renderer.

Each `check_` answers with one sentence for every rule that a request's body breaks.
"""

import json
import re
from base64 import b64decode
from binascii import Error as NotBase64
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

Body = dict[str, Any]

_WORD = re.compile(r"\A[a-zA-Z0-9_-]+\Z")
_IMAGES = {"image/jpeg", "image/png", "image/gif", "image/webp"}
_THOUGHTS = ("thinking", "redacted_thinking")


def check_anthropic(body: Body) -> list[str]:
    return [*_json(body), *_anthropic(body)]


def check_openai_chat(body: Body) -> list[str]:
    return [*_json(body), *_chat(body)]


def check_openai_responses(body: Body) -> list[str]:
    return [*_json(body), *_responses(body)]


def _json(body: Body) -> Iterator[str]:
    try:
        json.dumps(body, allow_nan=False, ensure_ascii=False).encode()
    except (ValueError, TypeError):
        yield "the body is not valid JSON"


# Anthropic


def _anthropic(body: Body) -> Iterator[str]:
    messages = body.get("messages")
    if not messages:
        yield "messages: at least one message is required"
        return
    if messages[0]["role"] != "user":
        yield "messages[0]: the first message must be the user's"
    for index, (before, message) in enumerate(pairwise(messages), 1):
        if before["role"] == message["role"]:
            yield f"messages[{index}]: roles must alternate"
    if "system" in body and not _says_something(body["system"]):
        yield "system: text must not be empty"
    for index, message in enumerate(messages):
        for problem in _anthropic_message(message):
            yield f"messages[{index}]: {problem}"
    yield from _anthropic_pairs(messages)
    yield from _anthropic_references(body)
    yield from _anthropic_thinking(body, messages)
    yield from _anthropic_caching(body)
    final = _blocks(messages[-1])[-1:]
    if messages[-1]["role"] == "assistant" and final and final[0]["type"] == "text":
        words = final[0]["text"]
        if words != words.rstrip():
            yield "messages: final assistant content cannot end with trailing whitespace"


def _anthropic_message(message: Body) -> Iterator[str]:
    if message["role"] not in ("user", "assistant"):
        yield f"role {message['role']!r} does not exist"
    blocks = _blocks(message)
    if not blocks:
        yield "content must not be empty"
    answers = [block["type"] == "tool_result" for block in blocks]
    if answers != sorted(answers, reverse=True):
        yield "tool_result blocks must come first in the content"
    only = {"user": ("tool_result",), "assistant": ("tool_use", *_THOUGHTS)}
    for role, types in only.items():
        for block in blocks:
            if block["type"] in types and message["role"] != role:
                yield f"a {block['type']} is for a message of role {role}"
    for block in blocks:
        yield from _anthropic_block(block)
    if blocks and message["role"] == "assistant" and blocks[-1]["type"] in _THOUGHTS:
        yield "the final block of an assistant message cannot be thinking"


def _anthropic_block(block: Body) -> Iterator[str]:
    match block:
        case {"type": "text", "text": str(words)}:
            if not words.strip():
                yield "text content blocks must contain non-whitespace text"
        case {"type": "thinking", "thinking": str(), "signature": str(signature)} if signature:
            pass
        case {"type": "redacted_thinking", "data": str(data)} if data:
            pass
        case {"type": "tool_use", "id": str(name), "name": str(tool), "input": dict()}:
            yield from _spelling("tool_use.id", name, None)
            yield from _spelling("tool_use.name", tool, 128)
        case {"type": "tool_result", "tool_use_id": str(name)}:
            yield from _spelling("tool_result.tool_use_id", name, None)
            yield from _anthropic_result(block)
        case {"type": "image", "source": dict(source)}:
            yield from _anthropic_source(source, _IMAGES)
        case {"type": "document", "source": dict(source)}:
            yield from _anthropic_source(source, {"application/pdf"})
        case {"type": "server_tool_use" | "compaction" | "search_result"}:
            pass
        case {"type": str(kind), "tool_use_id": str()} if kind.endswith("_tool_result"):
            pass
        case _:
            yield f"no block looks like {json.dumps(block, default=repr)[:80]}"


_IN_RESULTS = ("text", "image", "document", "search_result", "tool_reference")


def _anthropic_references(body: Body) -> Iterator[str]:
    """A tool_reference names a tool that the request offers."""
    offered = {tool.get("name") for tool in body.get("tools", [])}
    for message in body["messages"]:
        for block in _blocks(message):
            content = block.get("content")
            for part in content if isinstance(content, list) else []:
                if part.get("type") == "tool_reference" and part.get("tool_name") not in offered:
                    yield f"tool reference {part.get('tool_name')!r} not found in available tools"


def _anthropic_result(block: Body) -> Iterator[str]:
    content = block.get("content")
    if block.get("is_error") and not content:
        yield "tool_result: content cannot be empty if is_error is true"
    if isinstance(content, list):
        for part in content:
            if part.get("type") not in _IN_RESULTS:
                yield f"tool_result: cannot hold a {part.get('type')}"
            elif part["type"] not in ("search_result", "tool_reference"):
                yield from _anthropic_block(part)


def _anthropic_source(source: Body, mimes: set[str]) -> Iterator[str]:
    match source:
        case {"type": "base64", "media_type": str(mime), "data": str(data)}:
            if mime not in mimes:
                yield f"source.media_type: {mime} is not supported"
            if not _is_base64(data):
                yield "source.data: must be base64 and not empty"
        case {"type": "url", "url": str(url)} if url.startswith(("https://", "http://")):
            pass
        case {"type": "text", "media_type": "text/plain", "data": str(data)}:
            if "application/pdf" not in mimes or not data.strip():
                yield "source: only a document is a text, and not an empty one"
        case _:
            yield f"source: none looks like {json.dumps(source, default=repr)[:80]}"


def _anthropic_pairs(messages: Sequence[Body]) -> Iterator[str]:
    seen: Counter[str] = Counter()
    for index, message in enumerate(messages):
        calls = [block["id"] for block in _blocks(message) if block["type"] == "tool_use"]
        seen.update(calls)
        follows = _blocks(messages[index + 1]) if index + 1 < len(messages) else []
        answers = Counter(b["tool_use_id"] for b in follows if b["type"] == "tool_result")
        for call in calls:
            if not answers[call]:
                yield f"messages[{index}]: tool_use without tool_result immediately after: {call}"
        for answer, times in answers.items():
            if answer not in calls:
                yield f"messages[{index + 1}]: unexpected tool_use_id in tool_result: {answer}"
            if times > 1:
                yield f"messages[{index + 1}]: each tool_use must have a single result: {answer}"
    for block in _blocks(messages[0]):
        if block["type"] == "tool_result":
            yield f"messages[0]: unexpected tool_use_id in tool_result: {block['tool_use_id']}"
    for call, times in seen.items():
        if times > 1:
            yield f"messages: tool_use ids must be unique: {call}"


def _anthropic_thinking(body: Body, messages: Sequence[Body]) -> Iterator[str]:
    """Of the turn under way: from the last message that answers no call to the end."""
    mode = (body.get("thinking") or {}).get("type")
    turn: list[str] = []
    for message in reversed(messages):
        types = [block["type"] for block in _blocks(message)]
        if message["role"] == "user" and "tool_result" not in types:
            break
        if message["role"] == "assistant":
            turn = types + turn
    if mode == "enabled" and turn and turn[0] not in _THOUGHTS:
        yield f"messages: expected thinking or redacted_thinking, but found {turn[0]}"
    if mode == "disabled" and any(kind in _THOUGHTS for kind in turn):
        yield "messages: when thinking is disabled, the final turn cannot contain thinking"


def _anthropic_caching(body: Body) -> Iterator[str]:
    """At most four marks, one for the whole request included; longer kept ones come first."""
    system = body.get("system")
    marked = [
        *body.get("tools", []),
        *(system if isinstance(system, list) else []),
        *(piece for message in body["messages"] for piece in _marked_pieces(_blocks(message))),
    ]
    marks = [piece["cache_control"] for piece in marked if piece.get("cache_control")]
    if len(marks) + bool(body.get("cache_control")) > 4:
        yield f"a maximum of 4 blocks with cache_control may be provided, found {len(marks)}"
    if any(mark.get("type") != "ephemeral" for mark in marks):
        yield "cache_control.type: must be ephemeral"
    kept = [mark.get("ttl", "5m") for mark in marks]
    if kept != sorted(kept):
        yield "cache_control: a ttl of 1h must not come after one of 5m"
    for piece in marked:
        if piece.get("cache_control") and piece.get("type") in _THOUGHTS:
            yield "thinking: cache_control is not permitted"
        if piece.get("cache_control") and piece.get("defer_loading"):
            yield "tools: one with defer_loading cannot have cache_control"


def _marked_pieces(pieces: Sequence[Body]) -> Iterator[Body]:
    for piece in pieces:
        yield piece
        content = piece.get("content")
        if isinstance(content, list):
            yield from _marked_pieces(content)


# OpenAI Chat Completions


def _chat(body: Body) -> Iterator[str]:
    messages = body.get("messages")
    if not messages:
        yield "messages: must not be empty"
        return
    waiting: list[str] = []
    for index, message in enumerate(messages):
        where = f"messages[{index}]"
        if message["role"] == "tool":
            if message.get("tool_call_id") in waiting:
                waiting.remove(message["tool_call_id"])
            else:
                yield f"{where}: role tool must be a response to a preceding tool_calls"
        elif waiting:
            yield f"{where}: tool_call_ids did not have response messages: {', '.join(waiting)}"
            waiting = []
        if message.get("tool_calls"):
            waiting = [call["id"] for call in message["tool_calls"]]
        for problem in _chat_message(message):
            yield f"{where}: {problem}"
    if waiting:
        yield f"messages: tool_call_ids did not have response messages: {', '.join(waiting)}"
    every = Counter(c["id"] for m in messages for c in m.get("tool_calls") or ())
    for call, times in every.items():
        if times > 1:
            yield f"messages: two tool calls have the id {call}"


def _chat_message(message: Body) -> Iterator[str]:
    role, content = message["role"], message.get("content")
    calls = message.get("tool_calls")
    if role not in ("system", "developer", "user", "assistant", "tool"):
        yield f"role {role!r} does not exist"
    if calls is not None and (role != "assistant" or not calls):
        yield "tool_calls: only an assistant has them, and then not none"
    if content is None and not (role == "assistant" and calls):
        yield "content must not be null"
    if content == [] or (content == "" and role != "tool"):
        yield "content must not be empty"
    allowed = ("text", "image_url", "file") if role == "user" else ("text",)
    for part in content if isinstance(content, list) else ():
        if part.get("type") not in allowed:
            yield f"content: a {role} message cannot hold a {part.get('type')}"
        else:
            yield from _chat_part(part)
    for call in calls or ():
        yield from _spelling("tool_calls.id", call["id"], 40)
        yield from _spelling("function.name", call["function"]["name"], 64)
        yield from _arguments(call["function"]["arguments"])
        if call["type"] != "function":
            yield f"tool_calls.type: {call['type']} does not exist"


def _chat_part(part: Body) -> Iterator[str]:
    match part:
        case {"type": "text", "text": str()}:
            pass
        case {"type": "image_url", "image_url": {"url": str(url)}}:
            yield from _image_url(url)
        case {"type": "file", "file": {"filename": str(), "file_data": str(url)}}:
            if _mime(url) != "application/pdf":
                yield "file: only PDF files are supported"
        case _:
            yield f"content: no part looks like {json.dumps(part, default=repr)[:80]}"


# OpenAI Responses

_CALLS = {"function_call": "function_call_output", "custom_tool_call": "custom_tool_call_output"}
_BY_MODEL = {*_CALLS, "message", "web_search_call", "file_search_call", "image_generation_call"}


def _responses(body: Body) -> Iterator[str]:
    items = body.get("input")
    if not items:
        yield "input: must not be empty"
        return
    for index, item in enumerate(items):
        for problem in _responses_item(item, is_stored=body.get("store") is not False):
            yield f"input[{index}]: {problem}"
        follows = items[index + 1] if index + 1 < len(items) else {}
        if item.get("type") == "reasoning":
            is_models = follows.get("type") in _BY_MODEL and follows.get("role") in (
                None,
                "assistant",
            )
            if not is_models:
                yield f"input[{index}]: reasoning was provided without its required following item"
    yield from _responses_pairs(items)
    for name, times in Counter(item["id"] for item in items if "id" in item).items():
        if times > 1:
            yield f"input: duplicate item found with id {name}"


def _responses_pairs(items: Sequence[Body]) -> Iterator[str]:
    calls: dict[str, str] = {}
    answered: set[str] = set()
    for index, item in enumerate(items):
        kind, name = item.get("type"), item.get("call_id")
        if kind in _CALLS:
            if name in calls:
                yield f"input[{index}]: duplicate call_id {name}"
            calls[name or ""] = _CALLS[kind]
        elif kind in _CALLS.values():
            if calls.get(name or "") != kind:
                yield f"input[{index}]: no tool call found for {kind} with call_id {name}"
            if name in answered:
                yield f"input[{index}]: a second output for call_id {name}"
            answered.add(name or "")
    for name in calls:
        if name not in answered:
            yield f"input: no tool output found for function call {name}"


def _responses_item(item: Body, *, is_stored: bool) -> Iterator[str]:
    match item:
        case {"type": "message", "role": "assistant", "content": list(parts)} if parts:
            for part in parts:
                if part.get("type") not in ("output_text", "refusal"):
                    yield f"an assistant's content cannot be {part.get('type')}"
        case {"type": "message", "role": "user" | "developer" | "system", "content": list(parts)}:
            yield from _responses_parts(parts)
        case {"type": "function_call", "call_id": str(name), "name": str(tool)}:
            yield from _spelling("call_id", name, 64)
            yield from _spelling("name", tool, 64)
            yield from _arguments(item.get("arguments"))
        case {"type": "custom_tool_call", "call_id": str(name), "name": str(), "input": str()}:
            yield from _spelling("call_id", name, 64)
        case {"type": "function_call_output" | "custom_tool_call_output", "output": output}:
            if isinstance(output, list):
                yield from _responses_parts(output)
            elif not isinstance(output, str):
                yield "output must be a string or a list of parts"
        case {"type": "reasoning", "summary": list(), "encrypted_content": str(held)} if held:
            pass
        case {"type": "reasoning", "summary": list(), "id": str(name)}:
            if not is_stored:
                yield f"item {name} not found: items are not persisted when store is set to false"
        case {"type": "web_search_call" | "image_generation_call" | "compaction"}:
            pass
        case _:
            yield f"no item looks like {json.dumps(item, default=repr)[:80]}"


def _responses_parts(parts: Sequence[Body]) -> Iterator[str]:
    if not parts:
        yield "content must not be empty"
    for part in parts:
        match part:
            case {"type": "input_text", "text": str()}:
                pass
            case {"type": "input_image", "image_url": str(url)}:
                yield from _image_url(url)
            case {"type": "input_file", "filename": str(), "file_data": str(url)} if _mime(url):
                pass
            case {"type": "input_file", "file_url": str(url)} if url.startswith("http"):
                pass
            case _:
                yield f"no input looks like {json.dumps(part, default=repr)[:80]}"


# What the providers share


def _blocks(message: Body) -> list[Body]:
    content = message.get("content")
    return [{"type": "text", "text": content}] if isinstance(content, str) else content or []


def _says_something(content: Any) -> bool:
    words = content if isinstance(content, str) else "".join(part["text"] for part in content)
    return bool(words.strip())


def _spelling(what: str, word: str, longest: int | None) -> Iterator[str]:
    if not _WORD.match(word):
        yield f"{what}: string should match pattern '^[a-zA-Z0-9_-]+$'"
    if longest is not None and len(word) > longest:
        yield f"{what}: string too long, expected at most {longest} characters"


def _arguments(words: Any) -> Iterator[str]:
    try:
        value = json.loads(words, parse_constant=_no_constant)
    except (TypeError, ValueError):
        yield "arguments: must be JSON text"
    else:
        if not isinstance(value, dict):
            yield "arguments: must be a JSON object"


def _no_constant(name: str) -> None:
    raise ValueError(name)


def _image_url(url: str) -> Iterator[str]:
    if not url.startswith(("https://", "http://")) and _mime(url) not in _IMAGES:
        yield "image_url: must be a URL, or data of a supported image"


def _mime(url: str) -> str | None:
    match = re.fullmatch(r"data:([\w.+/-]+);base64,(.+)", url)
    return match[1] if match and _is_base64(match[2]) else None


def _is_base64(data: str) -> bool:
    try:
        return bool(b64decode(data, validate=True))
    except NotBase64:
        return False
