"""An overflow that is answered as if nothing were amiss shows in the stop reason and in usage."""

from cutbank.domain.overflow import recognize_silent_overflow
from cutbank.domain.session_events import Usage

WINDOW = 200_000


def test_a_model_that_had_no_room_left_says_so() -> None:
    providers = {
        "model_context_window_exceeded": "anthropic",
        "MODEL_LENGTH": "mistral",
        "ERROR_LIMIT": "cohere",
        "context_length_exceeded": None,
    }
    for reason, provider in providers.items():
        overflow = recognize_silent_overflow(stop_reason=reason)

        assert overflow is not None, reason
        assert (overflow.provider, overflow.rule) == (provider, f"stop:{reason.lower()}")


def test_a_model_that_read_more_than_it_holds_did_not_read_it_all() -> None:
    usage = Usage(input=150_000, cache_read=50_001, output=7)
    for reason in ("stop", "end_turn", "tool_calls"):
        overflow = recognize_silent_overflow(stop_reason=reason, usage=usage, window=WINDOW)

        assert overflow is not None, reason
        assert (overflow.rule, overflow.tokens, overflow.limit) == ("usage", 200_001, WINDOW)


def test_a_prompt_that_was_cut_to_the_window_leaves_no_room_for_an_answer() -> None:
    usage = Usage(input=58, cache_read=1_048_512, output=0)

    assert recognize_silent_overflow(stop_reason="length", usage=usage, window=1_048_576)


def test_any_other_end_is_no_overflow() -> None:
    rows: list[tuple[str | None, Usage | None, int | None]] = [
        ("stop", Usage(input=WINDOW), WINDOW),  # exactly full is not over
        ("stop", Usage(input=WINDOW + 1), None),
        ("stop", Usage(input=WINDOW + 1), 0),
        ("stop", None, WINDOW),
        ("error", Usage(input=WINDOW + 1), WINDOW),  # an error speaks for itself
        (None, Usage(input=WINDOW + 1), WINDOW),
        ("length", Usage(input=1_000, output=4_096), WINDOW),  # an answer that was too long
        ("length", Usage(input=100, output=0), WINDOW),
        ("length", Usage(input=WINDOW), WINDOW),  # what was answered is not known
        ("max_tokens", Usage(input=WINDOW, output=1), WINDOW),
        ("refusal", Usage(input=1), WINDOW),
        ("", Usage(), WINDOW),
        (None, None, None),
    ]

    assert not [
        (reason, usage, window)
        for reason, usage, window in rows
        if recognize_silent_overflow(stop_reason=reason, usage=usage, window=window) is not None
    ]
