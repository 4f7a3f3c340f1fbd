"""Computes the tokens of images by each provider's published rule, and of documents by their pages.

Sources, as of 2026: Anthropic, https:
platform.claude.com/docs/en/build-with-claude/vision (patches of 28 pixels, and the largest sizes)
and .../pdf-support (1,500 to 3,000 tokens of text a page, and an image of it). OpenAI, https:
platform.openai.com/docs/guides/images-vision (tiles, patches and multipliers); from GPT-5.2 on
measurements by users, since the guide gives no rule. Google, https:
ai.google.dev/gemini-api/docs/image-understanding (tiles of 258 tokens) and .../media-resolution (a
fixed count from Gemini 3 on; half of it for a page of a PDF).
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from io import BytesIO
from math import ceil, floor, sqrt
from typing import Protocol

from ..blocks import Media
from ..token_estimate import CHARS_PER_TOKEN

PixelSize = tuple[int, int]
"""Width and height in pixels."""
_EPSILON = 1e-6
"""The rounding error of a product that should be a whole number."""


class ImageRule(Protocol):
    """A provider's tokens for an image, and for a page of a document."""

    @property
    def page(self) -> int: ...

    def count_tokens(self, size: PixelSize) -> int: ...


@dataclass(frozen=True, slots=True)
class PatchRule:
    """Square patches with a fixed number of tokens; images with too many are scaled down."""

    patch_edge_px: int
    max_patches: int
    max_edge_px: int | None = None
    """Pixels of the longer side; None if only the number of patches counts."""
    multiplier: float = 1.0
    is_snug: bool = True
    """Whether it is scaled to the largest allowed size; otherwise sides are cut to whole patches.
    """
    page: int = 0

    def count_tokens(self, size: PixelSize) -> int:
        patches = self._count_patches(size)
        if patches > self.max_patches or (self.max_edge_px and max(size) > self.max_edge_px):
            patches = self._count_patches(self._shrink_to_fit(size))
        return max(1, ceil(min(patches, self.max_patches) * self.multiplier))

    def _count_patches(self, size: PixelSize) -> int:
        return ceil(size[0] / self.patch_edge_px) * ceil(size[1] / self.patch_edge_px)

    def _shrink_to_fit(self, size: PixelSize) -> PixelSize:
        """Return the largest allowed size of the same shape."""
        width, height = size
        scale = min(1.0, self.max_edge_px / max(size) if self.max_edge_px else 1.0)
        scale = min(scale, self.patch_edge_px * sqrt(self.max_patches / (width * height)))
        across, down = width * scale / self.patch_edge_px, height * scale / self.patch_edge_px
        # Fit whole patches along one side or the other, because a partial patch costs as much as a
        # whole one.
        cuts = sorted(floor(side) / side for side in (across, down) if side >= 1)
        for cut in (1.0, *reversed(cuts)) if self.is_snug else cuts[:1]:
            if ceil(across * cut - _EPSILON) * ceil(down * cut - _EPSILON) <= self.max_patches:
                scale *= cut
                break
        return max(1, floor(width * scale + _EPSILON)), max(1, floor(height * scale + _EPSILON))


@dataclass(frozen=True, slots=True)
class TileRule:
    """OpenAI's older rule: fit into 2,048 by 2,048, the shorter side to 768, then tiles of 512."""

    base: int
    tile: int
    page: int = 0

    def count_tokens(self, size: PixelSize) -> int:
        scale = min(1.0, 2_048 / max(size))
        scale *= min(1.0, 768 / (min(size) * scale))
        across, down = (ceil(max(1, side * scale - _EPSILON) / 512) for side in size)
        return self.base + self.tile * across * down


@dataclass(frozen=True, slots=True)
class CropRule:
    """Google's older rule: one tile up to 384 pixels, else tiles of two thirds a short side."""

    tile: int = 258
    page: int = 258

    def count_tokens(self, size: PixelSize) -> int:
        if max(size) <= 384:
            return self.tile
        unit = min(768, max(256, floor(min(size) / 1.5)))
        return self.tile * ceil(size[0] / unit) * ceil(size[1] / unit)


@dataclass(frozen=True, slots=True)
class FixedRule:
    """The same tokens for every image."""

    image: int
    page: int

    def count_tokens(self, size: PixelSize) -> int:  # noqa: ARG002 - part of the interface
        return self.image


def _make_openai_rule(max_patches: int, multiplier: float) -> PatchRule:
    return PatchRule(
        patch_edge_px=32, max_patches=max_patches, multiplier=multiplier, is_snug=False, page=1_000
    )


_PDF_TEXT = 1_500
"""Tokens of a page's text, which is sent with its image: the usual, lower end of the range."""
ANTHROPIC_RULE = PatchRule(
    patch_edge_px=28, max_patches=1_568, max_edge_px=1_568, page=_PDF_TEXT + 1_568
)
_ANTHROPIC_LARGE_RULE = PatchRule(
    patch_edge_px=28, max_patches=4_784, max_edge_px=2_576, page=_PDF_TEXT + 1_568
)
OPENAI_TILE_RULE = TileRule(base=85, tile=170, page=1_000)
_GEMINI_3_RULE = FixedRule(image=1_120, page=560)
_UNKNOWN_RULE = FixedRule(image=300, page=300)
"""For models without a known rule: the same as the estimate stored with each block."""

_LARGE_IMAGE_MODELS = r"claude-(?:opus-(?:4-[789]|[5-9])|(?:sonnet|haiku)-[5-9])"
_RULES: tuple[tuple[str, ImageRule], ...] = (
    (_LARGE_IMAGE_MODELS, _ANTHROPIC_LARGE_RULE),
    (r"claude", ANTHROPIC_RULE),
    (r"gpt-4o-mini", TileRule(base=2_833, tile=5_667, page=1_000)),
    (r"gpt-4\.1-mini|gpt-5-mini", _make_openai_rule(1_536, 1.62)),
    (r"gpt-4\.1-nano|gpt-5-nano", _make_openai_rule(1_536, 2.46)),
    (r"o4-mini", _make_openai_rule(1_536, 1.72)),
    (r"gpt-5\.[2-9]|gpt-[6-9]", _make_openai_rule(2_500, 1.2)),
    (r"gpt-5", TileRule(base=70, tile=140, page=1_000)),
    (r"computer-use", TileRule(base=65, tile=129, page=1_000)),
    (r"\bo[13]\b", TileRule(base=75, tile=150, page=1_000)),
    (r"gpt-|chatgpt", OPENAI_TILE_RULE),
    (r"gemini-(?:[3-9]|\d\d)", _GEMINI_3_RULE),
    (r"gemini", CropRule()),
)
_COMPILED: tuple[tuple[Callable[[str], object], ImageRule], ...] = tuple(
    (re.compile(pattern).search, rule) for pattern, rule in _RULES
)


def find_image_rule(model: str | None) -> ImageRule:
    """Return the rule of a model, by its name at any provider or router."""
    name = (model or "").casefold()
    return next((rule for matches, rule in _COMPILED if matches(name)), _UNKNOWN_RULE)


_MAX_HEADER_BYTES = 262_144
"""The bytes in which an image's size is searched; camera metadata may come first."""
_PAGE = re.compile(rb"/Type\s*/Page(?![a-zA-Z])")
_PAGES = re.compile(
    rb"/Type\s*/Pages\b[^>]{0,200}?/Count\s+(\d{1,6})|/Count\s+(\d{1,6})[^>]{0,200}?"
    rb"/Type\s*/Pages\b"
)
_PAGE_BYTES = 50_000
"""The bytes of a page, for a PDF whose pages are compressed and cannot be counted."""


def count_media_tokens(media: Media, rule: ImageRule) -> int:
    """Return the tokens of an image or a document by a provider's rule; bytes are never text."""
    if media.type == "image":
        size = read_image_size(media.data)
        return rule.count_tokens(size or (1_024, 1_024))
    if media.mime.startswith("text/"):
        return max(1, -(-len(media.data) // CHARS_PER_TOKEN))
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
