"""Reads and writes contents that are a text, or a list of texts and images."""

from collections.abc import Callable, Sequence
from typing import Any

from ....domain.blocks import AnyBlock, Block, Kind, Media, NativePart, ResultPart, Text, ToolResult
from .entry_steps import ContentPart, image_from_address
from .fields import JsonDict, MalformedError, json_name
from .outgoing import OutgoingSession
from .placeholders import JsonPath
from .summary_mark import make_marked_text, make_summary_mark


def read_content(
    content: Any,
    at: JsonPath,
    read_images: Callable[[Any, JsonPath], list[ContentPart] | None],
) -> list[ContentPart]:
    """Return the texts and images of a content, each with its path.

    `read_images` reads the images of an item; it returns None for any other item.
    """
    if content is None or isinstance(content, str):
        return [(content, at)] if content else []
    if not isinstance(content, list):
        raise MalformedError(f"{at[-1]}: expected text or a list, got {json_name(content)}")
    found: list[ContentPart] = []
    for index, item in enumerate(content):
        match item:
            case {"type": "text", "text": str(text)}:
                found += [(text, (*at, index, "text"))] if text else []
            case _:
                images = read_images(item, (*at, index))
                if images is None:
                    raise MalformedError(f"{at[-1]}: expected texts and images")
                found += images
    return found


def read_image_addresses(addresses: list[Any], at: JsonPath) -> list[ContentPart]:
    """Return the images at these URLs; `at` is the path of their list."""
    found: list[ContentPart] = []
    for index, address in enumerate(addresses):
        if not isinstance(address, str):
            raise MalformedError(f"{at[-1]}: expected addresses, got {json_name(address)}")
        found.append((image_from_address(address) or address, (*at, index)))
    return found


def make_content_items(
    blocks: Sequence[AnyBlock],
    outgoing: OutgoingSession,
    make_image: Callable[[Media], JsonDict],
) -> list[JsonDict]:
    items: list[JsonDict] = []
    for block in blocks:
        match block:
            case Block(kind=Kind.IMAGE, media=Media() as media):
                items.append(make_image(media))
            case Block(kind=Kind.DOCUMENT):
                outgoing.count_loss("documents")
            case Block(kind=Kind.THINKING):
                pass
            case Block() if block.text:
                items.append(
                    {"type": "text", "text": make_marked_text(block), **make_summary_mark(block)}
                )
            case Block():
                if block.native:
                    outgoing.count_loss("items that only their provider understands")
    return items


def list_result_parts(result: ToolResult) -> Sequence[ResultPart]:
    content = result.content
    return (Text(text=content),) if isinstance(content, str) else content


def make_answer_items(
    result: ToolResult, outgoing: OutgoingSession, make_image: Callable[[Media], JsonDict]
) -> list[JsonDict]:
    items: list[JsonDict] = []
    for part in list_result_parts(result):
        match part:
            case Text():
                items.append({"type": "text", "text": part.text})
            case Media(type="image"):
                items.append(make_image(part))
            case Media():
                outgoing.count_loss("documents in tool results")
            case NativePart():
                outgoing.count_loss("parts of tool results that only their provider understands")
    return items
