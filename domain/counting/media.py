"""Reads of an image how large it is, and of a document how many pages it has; never its content."""

import re
from io import BytesIO

from ..blocks import Media
from .images import ImageRule

_MAX_HEADER_BYTES = 262_144
"""Bytes among which an image's size is looked for: what stands before it is a camera's notes."""
_PAGE = re.compile(rb"/Type\s*/Page(?![a-zA-Z])")
_PAGES = re.compile(
    rb"/Type\s*/Pages\b[^>]{0,200}?/Count\s+(\d{1,6})|/Count\s+(\d{1,6})[^>]{0,200}?"
    rb"/Type\s*/Pages\b"
)
_PAGE_BYTES = 50_000
"""What a page of a PDF takes, where its pages stand compressed and cannot be counted."""
_CHARS_PER_TOKEN = 4


def count_media_tokens(media: Media, rule: ImageRule) -> int:
    """Tokens of an image or a document by a provider's rule; its bytes never count as text."""
    if media.type == "image":
        size = read_image_size(media.data)
        return rule.count_tokens(size or (1_024, 1_024))
    if media.mime.startswith("text/"):
        return max(1, -(-len(media.data) // _CHARS_PER_TOKEN))
    return max(1, count_pages(media.data)) * rule.page


def read_image_size(data: bytes) -> tuple[int, int] | None:
    """Width and height from the image's own header; None where there is none that can be read."""
    import imagesize  # type: ignore[import-untyped]  # noqa: PLC0415 - only who has images pays

    try:
        width, height = imagesize.get(BytesIO(data[:_MAX_HEADER_BYTES]))
    except Exception:  # noqa: BLE001 - whatever a broken header makes of it, it is no size
        return None
    return (int(width), int(height)) if width > 0 and height > 0 else None


def count_pages(data: bytes) -> int:
    """Pages of a PDF: as its tree of pages says, else as many as there are, else by its length."""
    said = [int(first or last) for first, last in _PAGES.findall(data)]
    return max(said, default=0) or len(_PAGE.findall(data)) or -(-len(data) // _PAGE_BYTES)
