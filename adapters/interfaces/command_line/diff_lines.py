"""What `diff` tells people: what left, what stands for it, and which facts are lost to the view."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from ....domain.compaction_events import Digest, Summary
from ....domain.ranges import Ranges
from ....domain.shares import Share
from ....projections.diffing.lost_facts import LostFact
from ....projections.diffing.view_diff import Listed, ViewDiff
from .coordinates import coordinate
from .diff_json import Counts
from .printing import clipped, counted, say, say_folded, shortly

MOST = 20
"""Facts and blocks that are listed, where not all are wanted."""
WIDTH = 79
KIND, LEAST = 10, 24
"""Characters of a kind of fact, and of its words at least."""
NAME = 36
"""Characters of a name: harnesses name what they attach by its whole path."""
INDENT, BESIDE = "    ", " " * 9


def say_diff(diff: ViewDiff, counts: Counts, *, most: int | None) -> None:
    """A comparison; of long lists the first, and how many more there are."""
    say(f"{diff.session}: {_between(diff, counts[1])}", bold=True)
    if diff.is_empty:
        say("Both views are the same.")
        return
    say(f"view     {diff.sizes}")
    say_folded(f"left     {_shares(diff.shares)}", BESIDE)
    if diff.came:
        say(f"came     {counted(len(diff.came), 'block')}")
    for one in diff.reshown[:most]:
        say(f"shown    #{one.position}: {one.tokens_before:,} -> {one.tokens:,} tokens")
    _say_rest(len(diff.reshown[most or len(diff.reshown) :]), "block")
    if diff.request_changed:
        say("request  system prompt, tools or settings are others")
    for line in _instead(diff):
        say_folded(line, BESIDE)
    _say_facts("lost", "nowhere in the new view", diff.lost, most)
    _say_facts("gained", "nowhere in the old view", diff.gained, most)
    _say_blocks("left", diff.left, most)
    _say_blocks("came in", diff.came, most)
    if diff.has_new_summary and diff.summary is not None:
        _say_summary(diff.summary, most)


def _between(diff: ViewDiff, count: int | None) -> str:
    boundary, before = diff.boundary, diff.boundary_before
    number = before.originator_version if before else None
    # Of views further apart, one boundary is not what lies between them.
    is_next = boundary is not None and boundary.previous == number
    if boundary is not None and is_next and diff.before.position == diff.after.position:
        by = f"{boundary.policy} ({boundary.trigger})"
        where = f"compaction {count} on {diff.after.lineage}"
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
    minor = [fact for fact in facts if fact.is_minor and most is not None]
    shown = [fact for fact in facts if fact not in minor] if minor else facts
    say(f"\n{what}: {counted(len(shown), 'fact')} {where}", bold=True)
    kinds = Counter(str(fact.kind) for fact in shown)
    if kinds:
        counts = (counted(number, kind) for kind, number in kinds.most_common())
        say_folded(f"{INDENT}{', '.join(counts)}", INDENT)
    for fact in shown[:most]:
        _say_fact(fact)
    _say_rest(len(shown[most or len(shown) :]), "fact")
    if minor:
        say(f"{INDENT}left out: {len(minor):,} unused numbers and words of tool calls")


def _say_fact(fact: LostFact) -> None:
    """One line; the words give way to where they stand."""
    about = "; ".join(_about(fact))
    room = max(LEAST, WIDTH - len(INDENT) - KIND - 3 - len(about))
    say(f"{INDENT}{fact.kind:<{KIND}} {clipped(fact.text, room)}  {about}".rstrip())


def _about(fact: LostFact) -> Iterator[str]:
    if fact.handles:
        yield _first(fact.handles)
    if fact.by_user:
        yield "a user's words"
    if fact.used_again:
        yield f"used again {_first(fact.used_again)}"
    elif fact.told_again is not None:
        yield f"told again #{fact.told_again}"


def _first(handles: Ranges) -> str:
    """`#12`, or `#12 +3` where three more blocks have it."""
    more = len(handles) - 1
    return f"#{handles.runs[0][0]}{f' +{more}' if more else ''}"


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
