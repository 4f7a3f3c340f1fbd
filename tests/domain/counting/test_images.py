"""What images and documents cost, by the providers' rules and by what was measured."""

import struct
import zlib
from base64 import b64encode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cutbank.domain.blocks import Block, Kind, Media
from cutbank.domain.counting.images import Patches, image_rule
from cutbank.domain.counting.media import image_size, media_tokens, pages
from cutbank.domain.token_estimate import IMAGE_CHARS, estimate

HAIKU, OPUS, GPT_4O, GPT_4_MINI = "claude-haiku-4-5", "claude-opus-4-8", "gpt-4o", "gpt-4.1-mini"


@pytest.mark.parametrize(
    ("model", "size", "tokens"),
    [
        # Anthropic's guide: 28 pixels a patch; counted by people who sent such images.
        (HAIKU, (256, 256), 100),
        (HAIKU, (512, 512), 361),
        (HAIKU, (1_000, 1_000), 1_296),
        (HAIKU, (1_024, 1_024), 1_369),
        (HAIKU, (1_280, 720), 1_196),
        (HAIKU, (1_920, 1_080), 1_560),
        (HAIKU, (4_032, 3_024), 1_564),
        (OPUS, (1_920, 1_080), 2_691),
        ("us.anthropic.claude-opus-4-8-v1:0", (1_920, 1_080), 2_691),
        ("anthropic/claude-sonnet-4.5", (1_920, 1_080), 1_560),
        # OpenAI's guide, its own examples.
        (GPT_4O, (1_024, 1_024), 765),
        (GPT_4O, (2_048, 4_096), 1_105),
        (GPT_4O, (4_096, 8_192), 1_105),
        ("gpt-4o-mini", (1_024, 1_024), 2_833 + 4 * 5_667),
        ("gpt-5", (1_024, 1_024), 70 + 4 * 140),
        ("o3", (512, 512), 75 + 150),
        (GPT_4_MINI, (1_024, 1_024), 1_659),
        (GPT_4_MINI, (1_800, 2_400), 2_353),
        ("gpt-5.2", (1_280, 720), 1_104),
        # Google's guide.
        ("gemini-2.5-pro", (384, 384), 258),
        ("gemini-2.5-pro", (960, 540), 6 * 258),
        ("gemini-3-pro-preview", (4_000, 3_000), 1_120),
        (None, (4_000, 3_000), 300),
        ("somebody/their-model", (4_000, 3_000), 300),
    ],
)
def test_an_image_costs_what_its_provider_says(
    model: str | None, size: tuple[int, int], tokens: int
) -> None:
    assert image_rule(model).tokens(size) == tokens


@given(
    model=st.sampled_from([HAIKU, OPUS, GPT_4O, GPT_4_MINI, "gpt-5.2", "gemini-2.5-pro"]),
    width=st.integers(1, 20_000),
    height=st.integers(1, 20_000),
)
def test_no_image_is_free_and_what_is_made_smaller_costs_no_more_than_the_most(
    model: str, width: int, height: int
) -> None:
    rule = image_rule(model)

    tokens = rule.tokens((width, height))

    assert tokens >= 1
    if isinstance(rule, Patches):
        assert tokens <= rule.most * rule.multiplier + 1


def png(width: int, height: int) -> bytes:
    def chunk(name: bytes, data: bytes) -> bytes:
        crc = zlib.crc32(name + data)
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", crc)

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IEND", b"")


def jpeg(width: int, height: int) -> bytes:
    app = b"\xff\xe0" + struct.pack(">H", 16) + b"JFIF\0" + bytes(9)
    notes = b"\xff\xe1" + struct.pack(">H", 60_000) + bytes(59_998)
    frame = b"\xff\xc0" + struct.pack(">HBHHB", 17, 8, height, width, 3) + bytes(9)
    return b"\xff\xd8" + app + notes + notes + frame + b"\xff\xd9"


def gif(width: int, height: int) -> bytes:
    return b"GIF89a" + struct.pack("<HH", width, height) + bytes(20)


def webp(width: int, height: int) -> bytes:
    size = (width - 1).to_bytes(3, "little") + (height - 1).to_bytes(3, "little")
    return b"RIFF" + struct.pack("<I", 22) + b"WEBPVP8X" + struct.pack("<I", 10) + bytes(4) + size


@pytest.mark.parametrize("made", [png, jpeg, gif, webp])
def test_the_size_is_read_from_the_header(made: object) -> None:
    data = made(1_280, 720)  # type: ignore[operator]

    assert image_size(data) == (1_280, 720)
    image = Media(type="image", mime="image/png", data=data)
    assert media_tokens(image, image_rule(HAIKU)) == 1_196


@pytest.mark.parametrize("data", [b"", b"\x89PNG\r\n\x1a\n", b"nonsense" * 100, jpeg(9, 9)[:5_000]])
def test_an_image_whose_header_cannot_be_read_counts_as_a_middling_one(data: bytes) -> None:
    image = Media(type="image", mime="image/png", data=data)

    assert image_size(data) is None
    assert media_tokens(image, image_rule(HAIKU)) == 1_369


def test_bytes_never_count_as_text() -> None:
    picture = Media(type="image", mime="image/png", data=png(100, 100) + bytes(5_000_000))
    block = Block(kind=Kind.IMAGE, media=picture)

    assert len(b64encode(picture.data)) > 6_000_000
    assert estimate(block) == IMAGE_CHARS // 4
    assert media_tokens(picture, image_rule(OPUS)) == 16


@pytest.mark.parametrize(
    ("data", "count"),
    [
        (b"%PDF-1.7 1 0 obj << /Type /Pages /Kids [2 0 R 3 0 R] /Count 12 >> endobj", 12),
        (b"%PDF-1.4 << /Count 3 /Kids [] /Type /Pages >>", 3),
        (b"%PDF-1.4 << /Type /Page >> << /Type/Page/Parent 1 0 R >>", 2),
        (b"%PDF-1.7 " + bytes(120_000), 3),
    ],
)
def test_a_document_costs_by_its_pages(data: bytes, count: int) -> None:
    document = Media(type="document", mime="application/pdf", data=data)

    assert pages(data) == count
    assert media_tokens(document, image_rule("gemini-2.5-pro")) == count * 258


def test_a_document_of_text_counts_as_text() -> None:
    document = Media(type="document", mime="text/plain", data=b"a" * 401)

    assert media_tokens(document, image_rule(HAIKU)) == 101


def test_what_stands_elsewhere_counts_as_one_page_or_a_middling_image() -> None:
    picture = Media(type="image", mime="image/*", url="https://example.invalid/a.png")
    paper = Media(type="document", mime="application/pdf", url="https://example.invalid/a.pdf")

    assert media_tokens(picture, image_rule(GPT_4O)) == 765
    assert media_tokens(paper, image_rule("gemini-3-flash")) == 560
