"""Reads the size of an image and the number of pages of a document, but not their content."""

import re
from io import BytesIO

from ..blocks import Media
from .images import ImageRule

_MAX_HEADER_BYTES = 262_144
"""The bytes in which an image's size is searched; camera metadata may come first."""
_PAGE = re.compile(rb"/Type\s*/Page(?![a-zA-Z])")
_PAGES = re.compile(
    rb"/Type\s*/Pages\b[^>]{0,200}?/Count\s+(\d{1,6})|/Count\s+(\d{1,6})[^>]{0,200}?"
    rb"/Type\s*/Pages\b"
)
_PAGE_BYTES = 50_000
"""The bytes of a page, for a PDF whose pages are compressed and cannot be counted."""
_CHARS_PER_TOKEN = 4


def count_media_tokens(media: Media, rule: ImageRule) -> int:
    """Return the tokens of an image or a document by a provider's rule; bytes are never text."""
    if media.type == "image":
        size = read_image_size(media.data)
        return rule.count_tokens(size or (1_024, 1_024))
    if media.mime.startswith("text/"):
        return max(1, -(-len(media.data) // _CHARS_PER_TOKEN))
    return max(1, count_pages(media.data)) * rule.page


def read_image_size(data: bytes) -> tuple[int, int] | None:
    """Return width and height from the image's header; None if it cannot be read."""
    import imagesize  # type: ignore[import-untyped]  # noqa: PLC0415 - only for images

    try:
        width, height = imagesize.get(BytesIO(data[:_MAX_HEADER_BYTES]))
    except Exception:  # noqa: BLE001 - a broken header may raise anything
        return None
    return (int(width), int(height)) if width > 0 and height > 0 else None


def count_pages(data: bytes) -> int:
    """Return the pages of a PDF: by its page tree, else by its page objects, else by its length."""
    said = [int(first or last) for first, last in _PAGES.findall(data)]
    return max(said, default=0) or len(_PAGE.findall(data)) or -(-len(data) // _PAGE_BYTES)
