"""What `diff` tells people: what left, what stands for it, and which facts are lost to the view."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from ...domain.compaction_events import Digest, Summary
from ...domain.shares import Share
from ...projections.diffing.lost_facts import LostFact
from ...projections.diffing.view_diff import Listed, ViewDiff
from .coordinates import coordinate
from .printing import clipped, counted, say, shortly

MOST = 20
"""Facts and blocks that are listed, where not all are wanted."""
HANDLES = 3
"""Ranges of handles beside a fact: one is enough to recall it by."""
WIDTH = 78
NAME = 36
"""Characters of a name: harnesses name what they attach by its whole path."""
INDENT = "    "


def say_diff(diff: ViewDiff, *, most: int | None) -> None:
    """A comparison; of long lists the first, and how many more there are."""
    say(f"{diff.session}: {_between(diff)}", bold=True)
    if diff.is_empty:
        say("Both views are the same.")
        return
    say(f"view     {diff.tokens_before:,} -> {diff.tokens:,} tokens, estimated")
    say(f"left     {_shares(diff.shares)}")
    if diff.came:
        say(f"came     {counted(len(diff.came), 'block')}")
    for one in diff.reshown[:most]:
        say(f"shown    #{one.position}: {one.tokens_before:,} -> {one.tokens:,} tokens")
    _say_rest(len(diff.reshown[most or len(diff.reshown) :]), "block")
    if diff.request_changed:
        say("request  system prompt, tools or settings are others")
    for line in _instead(diff):
        say(line)
    _say_facts("lost", "nowhere in the new view", diff.lost, most)
    _say_facts("gained", "nowhere in the old view", diff.gained, most)
    _say_blocks("left", diff.left, most)
    _say_blocks("came in", diff.came, most)
    if diff.has_new_summary and diff.summary is not None:
        _say_summary(diff.summary, most)


def _between(diff: ViewDiff) -> str:
    boundary, before = diff.boundary, diff.boundary_before
    number = before.originator_version if before else None
    # Of views further apart, one boundary is not what lies between them.
    is_next = boundary is not None and boundary.previous == number
    if boundary is not None and is_next and diff.before.position == diff.after.position:
        by = f"{boundary.policy} ({boundary.trigger})"
        where = f"boundary {boundary.originator_version} on {diff.after.lineage}"
        if diff.before.lineage == diff.after.lineage:
            return f"{where}, by {by}, as of #{diff.after.position}"
    return f"{coordinate(diff.before)} -> {coordinate(diff.after)}"


def _instead(diff: ViewDiff) -> Iterator[str]:
    summary = diff.summary
    if summary is not None:
        size = counted(summary.tokens, "token")
        same = "" if diff.has_new_summary else ", as before"
        yield f"instead  a summary of {size} by {summary.summariser}{same}"
        yield f"         stands for {shortly(summary.covers)}"
        yield from _digest(summary.digest)
    if diff.without_a_word:
        yield f"         for {shortly(diff.without_a_word)} nothing stands"


def _digest(digest: Digest) -> Iterator[str]:
    files = (("modified", digest.modified_files), ("read", digest.read_files))
    for what, paths in files:
        if paths:
            more = f" and {len(paths) - 5} more" if len(paths) > 5 else ""
            yield f"         files {what}: {', '.join(paths[:5])}{more}"


def _say_summary(summary: Summary, most: int | None) -> None:
    say(f"\nthe summary, by {summary.summariser}", bold=True)
    lines = summary.text.split("\n")
    for line in lines[:most]:
        say(INDENT + (line if most is None else clipped(line, WIDTH + 40)) if line else "")
    _say_rest(len(lines[most or len(lines) :]), "line")


def _shares(shares: Sequence[Share]) -> str:
    told = (f"{share.blocks:,} {share.kind} with {share.tokens:,} tokens" for share in shares)
    return ", ".join(told) or "nothing"


def _say_facts(what: str, where: str, facts: Sequence[LostFact], most: int | None) -> None:
    if not facts:
        return
    kinds = Counter(str(fact.kind) for fact in facts)
    told = ", ".join(f"{number:,} {kind}" for kind, number in kinds.most_common())
    say(f"\n{what}: {counted(len(facts), 'fact')} {where}", bold=True)
    say(f"{INDENT}{told}")
    for fact in facts[:most]:
        line = f"{INDENT}{fact.kind:<10} {clipped(fact.text, WIDTH)}  {'; '.join(_about(fact))}"
        say(line.rstrip())
    _say_rest(len(facts[most or len(facts) :]), "fact")


def _about(fact: LostFact) -> Iterator[str]:
    if fact.handles:
        yield shortly(fact.handles, most=HANDLES)
    if fact.by_user:
        yield "a user's words"
    if fact.used_again:
        yield f"used again at {shortly(fact.used_again, most=HANDLES)}"
    elif fact.told_again is not None:
        yield f"told again at #{fact.told_again}"


def _say_blocks(what: str, blocks: Iterable[Listed], most: int | None) -> None:
    blocks = list(blocks)
    if not blocks:
        return
    say(f"\n{counted(len(blocks), 'block')} {what}", bold=True)
    for block in blocks[:most]:
        name = f" {clipped(block.name, NAME)}" if block.name else ""
        top = f"#{block.position} {block.kind}{name}, {counted(block.tokens, 'token')}"
        say(f"{INDENT}{top}  {clipped(block.line, max(20, WIDTH - len(top)))}".rstrip())
    _say_rest(len(blocks[most or len(blocks) :]), "block")


def _say_rest(number: int, thing: str) -> None:
    if number:
        say(f"{INDENT}... and {counted(number, f'more {thing}')}: --full lists all")
