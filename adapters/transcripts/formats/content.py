"""Reads contents of messages: texts, and images and documents as base64 or by their address."""

from base64 import b64decode
from collections.abc import Callable, Sequence
from typing import Any, Literal

from ....domain.blocks import Block, Media, Native, Text
from ....projections.rendering import sendable
from .fields import JsonDict, MalformedError, json_name
from .json_lines import SourceLine

ContentPart = str | Media
"""A text, or an image."""
MediaKind = Literal["image", "document"]


def read_content(
    content: Any, read_images: Callable[[Any], list[ContentPart] | None], within: str = "content"
) -> list[ContentPart]:
    """Return the texts and images of a content that is a text, or a list of texts and images.

    `read_images` reads the images of an item; it returns None for any other item.
    """
    if content is None or isinstance(content, str):
        return [content] if content else []
    if not isinstance(content, list):
        raise MalformedError(f"{within}: expected text or a list, got {json_name(content)}")
    found: list[ContentPart] = []
    for item in content:
        match item:
            case {"type": "text", "text": str(text)}:
                found += [text] if text else []
            case _:
                images = read_images(item)
                if images is None:
                    raise MalformedError(f"{within}: expected texts and images")
                found += images
    return found


def read_image_addresses(addresses: list[Any], within: str) -> list[ContentPart]:
    """Return the images at these URLs."""
    found: list[ContentPart] = []
    for address in addresses:
        if not isinstance(address, str):
            raise MalformedError(f"{within}: expected addresses, got {json_name(address)}")
        found.append(media_from_address(address) if address else address)
    return found


def media_from_address(address: str, what: MediaKind = "image", name: str | None = None) -> Media:
    """Return the image or document at a URL, with its bytes if the URL holds them."""
    mime, encoded = split_data_url(address) or ("", None)
    data = None if encoded is None else base64_to_bytes(encoded)
    if data is not None:
        return Media(type=what, mime=mime or "image/png", data=data, name=name)
    mime = "image/*" if what == "image" else "application/octet-stream"
    return Media(type=what, mime=mime, url=address, name=name)


def image_from_data(data: str, mime: str) -> Media | None:
    """Return the image of base64 data."""
    found = base64_to_bytes(data)
    return None if found is None else Media(type="image", mime=mime, data=found)


def make_result_content(parts: Sequence[ContentPart]) -> str | tuple[Text | Media, ...]:
    """Return a tool result's content: a string if it has one text, without empty ones otherwise."""
    if len(parts) == 1 and isinstance(parts[0], str):
        return parts[0]
    kept = tuple(Text(text=one) if isinstance(one, str) else one for one in parts if one)
    alone = kept[0] if len(kept) == 1 else None
    return (alone.text if isinstance(alone, Text) else kept) or ""


def make_thinking_block(item: JsonDict, line: SourceLine) -> Block:
    """Return a signed thought, which the provider gets back unchanged."""
    thought = item.get("thinking")
    native = Native(provider="anthropic", item=line.to_json(item))
    return Block.thinking(thought if isinstance(thought, str) else "", native=native)


def media_from_base64(data: str, mime: str, within: str = "", name: str | None = None) -> Media:
    """Return the image or document of base64 data; `within` names its owner in the error."""
    return Media(type=media_kind_of(mime), mime=mime, data=require_base64(data, within), name=name)


def base64_to_bytes(text: str) -> bytes | None:
    try:
        return b64decode(text, validate=True)
    except ValueError:
        return None


def require_base64(text: str, within: str = "") -> bytes:
    """Decode base64; `within` names its owner in the error."""
    data = base64_to_bytes(text)
    if data is None:
        raise MalformedError(f"{within}not base64")
    return data


def media_kind_of(mime: str) -> MediaKind:
    return "image" if mime.startswith("image/") else "document"


def make_media_address(media: Media) -> str:
    """Return the URL in the form that providers accept."""
    if media.url is not None and not media.data:
        return media.url
    return sendable.make_data_url(media)


def split_data_url(address: str) -> tuple[str, str] | None:
    """Return the media type and base64 of a data URL; None for another URL."""
    head, comma, data = address.partition(",")
    mime = head.removeprefix("data:").removesuffix(";base64")
    return (mime, data) if comma and head == f"data:{mime};base64" else None
