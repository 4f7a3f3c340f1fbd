"""Reads events of Google's Agent Development Kit, and puts a view in the place of a history."""

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, cast

from google.adk.events import Event
from google.adk.sessions import State
from google.genai import types

from cutbank import Block, Item, ToolResult, Usage, ViewContent, ViewItem, list_items, read_message

ADK_PROVIDER = "google-adk"
"""Whose items the events are, and the format that recorded calls name."""


def read_event(event: Event) -> Item:
    """Read an event as an item whose content's parts are blocks; a note if it has no content."""
    value = event.model_dump(mode="json", by_alias=True, exclude_none=True)
    delta = value["actions"].get("stateDelta", {})
    for key in [key for key in delta if key.startswith(State.TEMP_PREFIX)]:
        del delta[key]
    content = value.get("content") or {}
    for part in content.get("parts", []):
        if "inlineData" in part:
            # In the alphabet of blocks, so that the bytes are stored once. Both are read.
            data = part["inlineData"].get("data", "")
            part["inlineData"]["data"] = data.replace("-", "+").replace("_", "/")
    is_users = event.author == "user"
    if content.get("parts"):
        spoken = {"role": "user" if is_users else "model", **content}
        return Item(value, read_message(spoken, "google").blocks, ADK_PROVIDER)
    heard = event.input_transcription or event.output_transcription
    if heard and heard.text:
        block = Block.user(heard.text) if is_users else Block.assistant(heard.text)
        return Item(value, [block], ADK_PROVIDER)
    return Item(value, [Block.note("", name=event.author)], ADK_PROVIDER)


def select_contents(
    contents: Sequence[types.Content], events: Sequence[Event], view: ViewContent
) -> tuple[list[types.Content], bool]:
    """Return the contents of a request without those that left the view, and whether all is in it.

    ADK made `contents` of `events`, for one agent. The summary stands before the first content of
    an event, and shortened results in the place of longer ones. Contents that no event has as they
    are, such as another agent's words or instructions, stay where they are, and the second value
    is False then, or if the agent is not sent all that the view has.
    """
    items = list_items(view, ADK_PROVIDER)
    kept = {cast(Any, item.json)["id"]: item for item in items if isinstance(item.json, dict)}
    shortened = {
        entry.block.tool_call_id: item.text
        for item in items
        if item.json is None
        for entry in item.entries
        if isinstance(entry.block, ToolResult)
    }
    summary = [
        types.Content(role="user", parts=[types.Part(text=item.text)])
        for item in items
        if not item.entries
    ]
    chosen: list[types.Content] = []
    placed, unknown, at = 0, 0, 0
    for content in contents:
        found = next((n for n in range(at, len(events)) if _is_same(content, events[n])), None)
        if found is None:
            unknown += 1
            chosen.append(content)
            continue
        if not placed and summary:
            chosen += summary
        at, placed = found + 1, placed + 1
        if (shown := _show(content, events[found], kept, shortened)) is not None:
            chosen.append(shown)
    sent = len(chosen) - unknown - (len(summary) if placed else 0)
    return list(_pair_results(chosen)), not unknown and sent == len(items) - len(summary)


def _show(
    content: types.Content,
    event: Event,
    kept: dict[str, ViewItem],
    shortened: dict[str, str],
) -> types.Content | None:
    """Return a content as the view shows it; None if it left."""
    item = kept.get(event.id)
    if item is not None and not item.is_shortened:
        return content
    texts = dict[str | None, str](shortened.items())
    for entry in item.entries if item else ():
        if isinstance(entry.block, ToolResult):
            texts[entry.block.tool_call_id] = entry.text
    calls = [response.id for response in event.get_function_responses()]
    if not calls or not all(call in texts for call in calls):
        return None
    parts = list(content.parts or [])
    results = (texts[call] for call in calls)
    for index, part in enumerate(parts):
        if part.function_response:
            result = {"result": next(results)}
            response = part.function_response.model_copy(update={"response": result})
            parts[index] = part.model_copy(update={"function_response": response})
    return types.Content(role=content.role, parts=parts)


def _is_same(content: types.Content, event: Event) -> bool:
    """Check whether ADK made the content of this event; it leaves out the ids that it gave."""
    mine = event.content
    if mine is None or content.role != mine.role:
        return False
    ours, theirs = mine.parts or [], content.parts or []
    return len(ours) == len(theirs) and all(
        one == two or _without_ids(one) == _without_ids(two)
        for one, two in zip(ours, theirs, strict=True)
    )


def _without_ids(part: types.Part) -> types.Part:
    update: dict[str, Any] = {}
    if part.function_call:
        update["function_call"] = part.function_call.model_copy(update={"id": None})
    if part.function_response:
        update["function_response"] = part.function_response.model_copy(update={"id": None})
    return part.model_copy(update=update) if update else part


def _pair_results(contents: Sequence[types.Content]) -> Iterator[types.Content]:
    """Yield contents in which a result whose call left the view is a text."""
    open_calls = Counter[str | None]()
    for content in contents:
        parts: list[types.Part] = []
        for part in content.parts or []:
            response = part.function_response
            if part.function_call:
                open_calls[part.function_call.name] += 1
            if response and not open_calls[response.name]:
                text = json.dumps(response.response, ensure_ascii=False, default=str)
                parts.append(types.Part(text=text))
                continue
            if response:
                open_calls[response.name] -= 1
            parts.append(part)
        yield content if parts == content.parts else types.Content(role="user", parts=parts)


def render_contents(view: ViewContent) -> dict[str, Any]:
    """Render a view as contents, as JSON, for audits."""
    items = list_items(view, ADK_PROVIDER)
    return {"contents": [content for item in items if (content := _write_content(item))]}


def _write_content(item: ViewItem) -> Any:
    if isinstance(item.json, dict):
        return item.json.get("content")
    role = "model" if item.role == "assistant" else "user"
    return {"role": role, "parts": [{"text": item.text}]}


def read_usage_metadata(used: types.GenerateContentResponseUsageMetadata) -> Usage:
    """Read what Gemini reports of a call; what came from its cache is a part of the prompt."""
    cached = used.cached_content_token_count or 0
    thought = used.thoughts_token_count or 0
    given = (used.prompt_token_count or 0) + (used.tool_use_prompt_token_count or 0)
    return Usage(
        input=max(0, given - cached),
        cache_read=cached,
        output=(used.candidates_token_count or 0) + thought,
        reasoning=thought,
    )
