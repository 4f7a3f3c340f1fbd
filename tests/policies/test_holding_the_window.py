"""Under the default policy a view fits its model, and summaries stay small, whatever is said."""

import json

from hypothesis import example, given, settings
from hypothesis import strategies as st

import cutbank
from cutbank import Block, BlockKind, PinRules, StoredSession, ToolCall, ToolResult, WindowItem
from cutbank.domain.policies.reserve_headroom import ReserveHeadroom

Act = tuple[str, int]
"""What is said, and how many characters long it is."""

SIZES = st.one_of(st.integers(1, 2_000), st.integers(2_000, 20_000), st.integers(20_000, 90_000))
ACTS = st.lists(
    st.tuples(
        st.sampled_from(["user", "assistant", "developer", "call", "call", "call", "calls"]), SIZES
    ),
    min_size=1,
    max_size=40,
)
LIMITS = st.sampled_from([8_000, 16_000, 32_000])
WORDS = "edited src/app.py and ran make test: 3 failed, see build/log_4711.txt. "


def words(length: int) -> str:
    return (WORDS * (length // len(WORDS) + 1))[:length]


def tell(session: StoredSession, act: Act, number: int) -> None:
    """Append what one act says, each call with its result."""
    kind, length = act
    if kind in {"user", "assistant", "developer"}:
        session.append(Block(kind=BlockKind(kind), text=words(length)))
        return
    names = [f"c{number}-{at}" for at in range(1 if kind == "call" else 4)]
    arguments = json.dumps({"text": words(length // 8)})
    session.append(*(ToolCall(tool_call_id=n, name="bash", arguments=arguments) for n in names))
    session.append(*(ToolResult(tool_call_id=n, content=words(length)) for n in names))


@settings(max_examples=8)
@given(ACTS, LIMITS, st.integers(0, 3_000))
# A prompt that is larger than the model's context.
@example([("user", 90_000)], 8_000, 0)
# One that fits alone, and not beside what stands for the little before it.
@example([("user", 1), ("call", 1), ("user", 61_270)], 16_000, 676)
# Instructions that come again and again.
@example([("developer", 1_500), ("call", 4_000)] * 30, 8_000, 1_000)
# Parallel calls, none of which is large, that are too large together.
@example([("user", 40), *[("calls", 11_000)] * 3], 8_000, 2_000)
def test_what_a_loop_prepares_fits_and_no_summary_outgrows_its_budget(
    acts: list[Act], limit: int, system: int
) -> None:
    with cutbank.open(":memory:") as store:
        session = store.session("s")
        session.configure(system_prompt=words(system * 4))
        loop = session.loop(limit=limit)
        for number, act in enumerate(acts):
            tell(session, act, number)

            view = loop.prepare()

            assert view.tokens <= limit
            if view.summary is not None:
                assert view.summary.tokens <= ReserveHeadroom().find_headroom(limit).summary
            session.append(Block.assistant("Done."))


def test_rules_pin_no_more_than_a_part_of_the_context_and_the_first_prompt_before_all() -> None:
    rules = [Block.developer(f"rule {number}") for number in range(18)]
    blocks = [*rules[:9], Block.user("u"), *rules[9:]]
    items = [WindowItem(at, block, 1, tokens=40) for at, block in enumerate(blocks, 1)]

    pinned = [item for item in PinRules().apply(items, 1_000) if item.is_pinned]

    assert [item.position for item in pinned] == [1, 2, 10]


def test_a_message_is_pinned_whole_or_not_at_all() -> None:
    sizes = [("small", 40), ("small", 40), ("large", 40), ("large", 400)]
    items = [
        WindowItem(at, Block.developer(f"rule {at}", message_id=message), 1, tokens)
        for at, (message, tokens) in enumerate(sizes, 1)
    ]

    pinned = [item for item in PinRules().apply(items, 1_000) if item.is_pinned]

    assert [item.position for item in pinned] == [1, 2]


def test_of_an_instruction_that_was_given_again_the_newest_is_pinned() -> None:
    given = [
        Block.developer("Never push to main."),
        Block.developer("Tasks: 3 open\n1. write", name="tasks"),
        Block.developer("Tasks added: 1", name="tasks"),
        Block.developer("Never push to main."),
        Block.developer("Tasks: 2 open\n1. test", name="tasks"),
        Block.developer("Never push to master."),
    ]
    items = [WindowItem(at, block, 1, tokens=10) for at, block in enumerate(given, 1)]

    pinned = [item for item in PinRules().apply(items, 1_000) if item.is_pinned]

    assert [item.position for item in pinned] == [3, 4, 5, 6]
