"""What images and documents cost, by the providers' rules and by what was measured."""

import struct
import zlib
from base64 import b64encode

from hypothesis import given
from hypothesis import strategies as st

from cutbank.domain.blocks import Block, BlockKind, Media
from cutbank.domain.image_tokens import count_media_tokens, find_image_rule
from cutbank.domain.token_estimate import IMAGE_CHARS, estimate_block

HAIKU, OPUS, GPT_4O, GPT_4_MINI = "claude-haiku-4-5", "claude-opus-4-8", "gpt-4o", "gpt-4.1-mini"


def test_an_image_costs_what_its_provider_says() -> None:
    small, large = (1_024, 1_024), (4_000, 3_000)
    tokens: dict[str | None, dict[tuple[int, int], int]] = {
        # Anthropic's guide: 28 pixels a patch; counted by people who sent such images.
        HAIKU: {
            (256, 256): 100,
            small: 1_369,
            (1_280, 720): 1_196,
            (1_920, 1_080): 1_560,
            (4_032, 3_024): 1_564,
        },
        OPUS: {(1_920, 1_080): 2_691},
        "us.anthropic.claude-opus-4-8-v1:0": {(1_920, 1_080): 2_691},
        "anthropic/claude-sonnet-4.5": {(1_920, 1_080): 1_560},
        # OpenAI's guide, its own examples.
        GPT_4O: {small: 765, (2_048, 4_096): 1_105, (4_096, 8_192): 1_105},
        "gpt-4o-mini": {small: 2_833 + 4 * 5_667},
        "gpt-5": {small: 70 + 4 * 140},
        "o3": {(512, 512): 75 + 150},
        GPT_4_MINI: {small: 1_659, (1_800, 2_400): 2_353},
        "gpt-5.2": {(1_280, 720): 1_104},
        # Google's guide.
        "gemini-2.5-pro": {(384, 384): 258, (960, 540): 6 * 258},
        "gemini-3-pro-preview": {large: 1_120},
        None: {large: 300},
        "somebody/their-model": {large: 300},
    }

    for model, sizes in tokens.items():
        assert {size: find_image_rule(model).count_tokens(size) for size in sizes} == sizes, model


MOST = {HAIKU: 1_568, OPUS: 4_784, GPT_4_MINI: 1_536 * 1.62 + 1, "gpt-5.2": 2_500 * 1.2 + 1}


@given(
    model=st.sampled_from([HAIKU, OPUS, GPT_4O, GPT_4_MINI, "gpt-5.2", "gemini-2.5-pro"]),
    width=st.integers(1, 20_000),
    height=st.integers(1, 20_000),
)
def test_no_image_is_free_and_what_is_made_smaller_costs_no_more_than_the_most(
    model: str, width: int, height: int
) -> None:
    rule = find_image_rule(model)

    tokens = rule.count_tokens((width, height))

    assert tokens >= 1
    assert tokens <= MOST.get(model, tokens)


def png(width: int, height: int) -> bytes:
    header = struct.pack(">I4sIIBBBBB", 13, b"IHDR", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + header + struct.pack(">I", zlib.crc32(header[4:]))


def jpeg(width: int, height: int) -> bytes:
    notes = b"\xff\xe1" + struct.pack(">H", 60_000) + bytes(59_998)
    frame = b"\xff\xc0" + struct.pack(">HBHHB", 17, 8, height, width, 3) + bytes(9)
    return b"\xff\xd8" + notes + notes + frame + b"\xff\xd9"


def gif(width: int, height: int) -> bytes:
    return b"GIF89a" + struct.pack("<HH", width, height) + bytes(20)


def webp(width: int, height: int) -> bytes:
    size = (width - 1).to_bytes(3, "little") + (height - 1).to_bytes(3, "little")
    return b"RIFF" + struct.pack("<I", 22) + b"WEBPVP8X" + struct.pack("<I", 10) + bytes(4) + size


def test_bytes_never_count_as_text() -> None:
    picture = Media(type="image", mime="image/png", data=png(100, 100) + bytes(5_000_000))
    block = Block(kind=BlockKind.IMAGE, media=picture)

    assert len(b64encode(picture.data)) > 6_000_000
    assert estimate_block(block) == IMAGE_CHARS // 4
    assert count_media_tokens(picture, find_image_rule(OPUS)) == 16


def test_the_size_is_read_from_the_header_and_without_one_is_middling() -> None:
    headers = dict.fromkeys((png(1_280, 720), jpeg(1_280, 720)), 1_196)
    headers |= dict.fromkeys((gif(1_280, 720), webp(1_280, 720)), 1_196)
    headers |= dict.fromkeys((b"", b"\x89PNG\r\n\x1a\n", b"nonsense" * 100), 1_369)
    headers[jpeg(9, 9)[:5_000]] = 1_369
    for data, tokens in headers.items():
        image = Media(type="image", mime="image/png", data=data)
        assert count_media_tokens(image, find_image_rule(HAIKU)) == tokens


def test_a_document_costs_by_its_pages_or_as_text() -> None:
    documents = [
        (b"%PDF-1.7 1 0 obj << /Type /Pages /Kids [2 0 R 3 0 R] /Count 12 >> endobj", 12),
        (b"%PDF-1.4 << /Count 3 /Kids [] /Type /Pages >>", 3),
        (b"%PDF-1.4 << /Type /Page >> << /Type/Page/Parent 1 0 R >>", 2),
        (b"%PDF-1.7 " + bytes(120_000), 3),
    ]
    for data, count in documents:
        document = Media(type="document", mime="application/pdf", data=data)
        assert count_media_tokens(document, find_image_rule("gemini-2.5-pro")) == count * 258
    paper = Media(type="document", mime="application/pdf", url="https://example.invalid/a.pdf")
    assert count_media_tokens(paper, find_image_rule("gemini-3-flash")) == 560
    text = Media(type="document", mime="text/plain", data=b"a" * 401)
    assert count_media_tokens(text, find_image_rule(HAIKU)) == 101
