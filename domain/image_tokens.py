"""Computes the tokens of images by each provider's published rule, and of documents by their pages.

Sources, as of 2026:

* Anthropic: https://platform.claude.com/docs/en/build-with-claude/vision (patches of 28 pixels, and
  the largest sizes) and .../pdf-support (1,500 to 3,000 tokens of text a page, and an image of it).
* OpenAI: https://platform.openai.com/docs/guides/images-vision (tiles, patches and multipliers);
  from GPT-5.2 on measurements by users, since the guide gives no rule.
* Google: https://ai.google.dev/gemini-api/docs/image-understanding (tiles of 258 tokens) and
  .../media-resolution (a fixed count from Gemini 3 on; half of it for a page of a PDF).
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from io import BytesIO
from math import ceil, floor, sqrt

from .blocks import Media
from .token_estimate import CHARS_PER_TOKEN

PixelSize = tuple[int, int]
"""Width and height in pixels."""
_EPSILON = 1e-6
"""The rounding error of a product that should be a whole number."""


@dataclass(frozen=True, slots=True)
class ImageRule:
    """A provider's tokens for an image by its size, and for a page of a document."""

    count_tokens: Callable[[PixelSize], int]
    page: int = 0


@dataclass(frozen=True, slots=True)
class Patches:
    """Square patches with a fixed number of tokens; images with too many are scaled down."""

    patch_edge_px: int
    max_patches: int
    max_edge_px: int | None = None
    """Pixels of the longer side; None if only the number of patches counts."""
    multiplier: float = 1.0
    is_snug: bool = True
    """Whether it is scaled to the largest allowed size; otherwise sides are cut to whole patches.
    """

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


def _count_tiles(base: int, tile: int, size: PixelSize) -> int:
    """OpenAI's older rule: fit into 2,048 by 2,048, the shorter side to 768, then tiles of 512."""
    scale = min(1.0, 2_048 / max(size))
    scale *= min(1.0, 768 / (min(size) * scale))
    across, down = (ceil(max(1, side * scale - _EPSILON) / 512) for side in size)
    return base + tile * across * down


def _count_crops(size: PixelSize) -> int:
    """Google's older rule: one tile up to 384 pixels, else tiles of two thirds a short side."""
    if max(size) <= 384:
        return 258
    unit = min(768, max(256, floor(min(size) / 1.5)))
    return 258 * ceil(size[0] / unit) * ceil(size[1] / unit)


def _count_fixed(tokens: int, _: PixelSize) -> int:
    return tokens


def _make_openai_rule(max_patches: int, multiplier: float) -> ImageRule:
    patches = Patches(32, max_patches, multiplier=multiplier, is_snug=False)
    return ImageRule(patches.count_tokens, page=1_000)


def _make_tile_rule(base: int, tile: int) -> ImageRule:
    return ImageRule(partial(_count_tiles, base, tile), page=1_000)


_PDF_TEXT = 1_500
"""Tokens of a page's text, which is sent with its image: the usual, lower end of the range."""
_ANTHROPIC_RULE = ImageRule(Patches(28, 1_568, 1_568).count_tokens, page=_PDF_TEXT + 1_568)
_ANTHROPIC_LARGE_RULE = ImageRule(Patches(28, 4_784, 2_576).count_tokens, page=_PDF_TEXT + 1_568)
_UNKNOWN_RULE = ImageRule(partial(_count_fixed, 300), page=300)
"""For models without a known rule: the same as the estimate stored with each block."""

_LARGE_IMAGE_MODELS = r"claude-(?:opus-(?:4-[789]|[5-9])|(?:sonnet|haiku)-[5-9])"
_RULES: tuple[tuple[str, ImageRule], ...] = (
    (_LARGE_IMAGE_MODELS, _ANTHROPIC_LARGE_RULE),
    (r"claude", _ANTHROPIC_RULE),
    (r"gpt-4o-mini", _make_tile_rule(2_833, 5_667)),
    (r"gpt-4\.1-mini|gpt-5-mini", _make_openai_rule(1_536, 1.62)),
    (r"gpt-4\.1-nano|gpt-5-nano", _make_openai_rule(1_536, 2.46)),
    (r"o4-mini", _make_openai_rule(1_536, 1.72)),
    (r"gpt-5\.[2-9]|gpt-[6-9]", _make_openai_rule(2_500, 1.2)),
    (r"gpt-5", _make_tile_rule(70, 140)),
    (r"computer-use", _make_tile_rule(65, 129)),
    (r"\bo[13]\b", _make_tile_rule(75, 150)),
    (r"gpt-|chatgpt", _make_tile_rule(85, 170)),
    (r"gemini-(?:[3-9]|\d\d)", ImageRule(partial(_count_fixed, 1_120), page=560)),
    (r"gemini", ImageRule(_count_crops, page=258)),
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
