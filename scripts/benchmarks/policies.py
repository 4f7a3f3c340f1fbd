"""How long policies think: those that go by prefix sums, and those that read every block."""

import gc
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from statistics import median
from time import thread_time

from cutbank.adapters.settings.policy_catalog import get_policy
from cutbank.domain.blocks import AnyBlock, Block, ToolCall, ToolResult
from cutbank.domain.compaction_events import Trigger
from cutbank.domain.item import WindowItem
from cutbank.domain.policies.catalog import POLICIES
from cutbank.domain.policies.policy import Policy, get_presets
from cutbank.domain.token_estimate import estimate_block
from cutbank.domain.window import Window

from .figure import Figure, Found, Options
from .timing import alone

LIMITS = {1_000: 10, 1_000_000: 20}
"""Microseconds that a plan may take, by the blocks of the window."""
LEAST = 250_000
"""Blocks a second that a policy has to read at least."""
WORTH = frozenset({"scored-pruning"})
"""Policies that go by what each block is worth, whatever they count it in."""
PLANS = 100
"""Plans that are timed as one: the clock takes a good part of the time of one alone."""
BLOCKS = 7
"""Blocks of one turn."""


def policies(options: Options) -> Found:
    """Of windows that are at hand, as the fold leaves them."""
    sizes = [1_000, 3_000] if options.smoke else [1_000, 30_000, 1_000_000]
    rounds = 3 if options.smoke else 15
    for size in sizes:
        window = filled(size)
        assert window.running[-1] > 0
        for name, policy in named():
            if not is_reader(name, policy):
                taken = alone(range(rounds), partial(planned, policy, window)) / PLANS * 1e6
                most = LIMITS.get(size)
                met, target = (taken <= most, f"<= {most} us") if most else (None, "")
                yield Figure(f"{name} plans {size:,} blocks", "us", taken, target=target, met=met)
    size = 3_000 if options.smoke else 30_000
    window = filled(size)
    gc.collect()
    gc.freeze()
    for name, policy in named():
        if is_reader(name, policy):
            speed = size / median(read(policy, one) for one in fresh(window))
            met = speed >= LEAST
            yield Figure(
                f"{name} reads {size:,} blocks", "blocks/s", speed, target=f">= {LEAST:,}", met=met
            )
    gc.unfreeze()


def named() -> Iterator[tuple[str, Policy]]:
    """Every policy, and with each of its presets."""
    for name, policy in POLICIES.items():
        for preset in ("", *(f"@{preset}" for preset in get_presets(policy))):
            yield name + preset, get_policy(name + preset)


def is_reader(name: str, policy: Policy) -> bool:
    """Whether it looks at what blocks say, and not at what they were counted as."""
    return name.partition("@")[0] in WORTH or hasattr(policy, "preset")


def fresh(window: Window) -> list[Window]:
    """Windows of which no policy knows anything yet, their prefix sums made."""
    windows = [replace(window, memo={}) for _ in range(5)]
    for one in windows:
        assert one.running
        assert one.tokens
    return windows


def read(policy: Policy, window: Window) -> float:
    """Seconds of the processor: what a policy reads it waits for nobody to read."""
    begun = thread_time()
    assert policy.plan(window) is not None
    return thread_time() - begun


def planned(policy: Policy, window: Window, _: object) -> None:
    for _ in range(PLANS):
        assert policy.plan(window) is not None


def filled(size: int) -> Window:
    """Turns of seven blocks, nearly as many as the model can hold."""
    turns = [list(turn(number)) for number in range(min(size, 2_000) // BLOCKS + 1)]
    items: list[WindowItem] = []
    while len(items) < size:
        number, calls = len(items) // BLOCKS, dict[str, int]()
        for block in turns[number % len(turns)]:
            at = len(items) + 1
            call = calls.get(block.tool_call_id) if isinstance(block, ToolResult) else None
            if isinstance(block, ToolCall):
                calls[block.tool_call_id] = at
            items.append(WindowItem(at, block, number + 1, estimate_block(block), call=call))
    tokens = sum(item.tokens for item in items)
    return Window(
        items=tuple(items),
        after=len(items),
        limit=tokens,
        trigger=Trigger.THRESHOLD,
        in_use=tokens,
    )


def turn(number: int) -> Iterator[AnyBlock]:
    """A prompt, two calls side by side with their results, and an answer."""
    yield Block.user(f"What of file {number}? " * 6)
    asked = f"m{number}"
    yield Block.thinking("First I have to see both. " * 9, message_id=asked)
    for call in ("a", "b"):
        path = {"path": f"src/{number}/{call}.py"}
        name = f"{number}-{call}"
        yield ToolCall(tool_call_id=name, name="read", arguments=path, message_id=asked)
    for call in ("a", "b"):
        yield ToolResult(tool_call_id=f"{number}-{call}", content="def word(): ...\n" * 40)
    yield Block.assistant("It has forty words. " * 12)
