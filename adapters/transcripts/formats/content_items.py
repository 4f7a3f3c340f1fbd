"""Reads contents that are a text, or a list of texts and images."""

from collections.abc import Callable
from typing import Any

from .entry_steps import ContentPart, image_from_address
from .fields import MalformedError, json_name


def read_content(
    content: Any, read_images: Callable[[Any], list[ContentPart] | None], within: str = "content"
) -> list[ContentPart]:
    """Return the texts and images of a content.

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
        found.append(image_from_address(address) or address)
    return found
