"""Prints a comparison: what left, what replaced it, and which facts the view lost."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from ....domain.compaction_events import Digest, Summary
from ....domain.ranges import Ranges
from ....domain.token_estimate import KindShare
from ....projections.lost_facts import LostFact
from ....projections.view_diff import DiffedBlock, ViewDiff
from .coordinates import format_coordinate
from .diff_json import CompactionNumbers
from .printing import clip_text, format_count, format_handles, print_text, print_wrapped

MAX_LISTED = 20
_LINE_CELLS = 79
_KIND_CELLS, _MIN_WORDS_CELLS = 10, 24
"""Characters of a fact's kind, and minimum characters of its text."""
_NAME_CELLS = 36
"""Characters of a name: harnesses name attachments by full path."""
_INDENT, _CONTINUATION_INDENT = "    ", " " * 9


def print_diff(diff: ViewDiff, counts: CompactionNumbers, *, most: int | None) -> None:
    """Print a comparison; long lists are cut, with the number of further entries."""
    print_text(f"{diff.session}: {_format_views(diff, counts[1])}", bold=True)
    if diff.is_empty:
        print_text("Both views are the same.")
        return
    print_text(f"view     {diff.sizes}")
    print_wrapped(f"left     {_format_shares(diff.shares)}", _CONTINUATION_INDENT)
    if diff.added:
        print_text(f"came     {format_count(len(diff.added), 'block')}")
    for one in diff.changed[:most]:
        print_text(f"shown    #{one.position}: {one.tokens_before:,} -> {one.tokens:,} tokens")
    _print_remaining(len(diff.changed[most or len(diff.changed) :]), "block")
    if diff.is_request_changed:
        print_text("request  system prompt, tools or settings are others")
    for line in _replacement_lines(diff):
        print_wrapped(line, _CONTINUATION_INDENT)
    _print_facts("lost", "nowhere in the new view", diff.lost_facts, most)
    _print_facts("gained", "nowhere in the old view", diff.gained_facts, most)
    _print_blocks("left", diff.removed, most)
    _print_blocks("came in", diff.added, most)
    if diff.has_new_summary and diff.summary is not None:
        _print_summary(diff.summary, most)


def _format_views(diff: ViewDiff, count: int | None) -> str:
    boundary, before = diff.boundary, diff.boundary_before
    number = before.originator_version if before else None
    # Views that are further apart have more than one boundary between them.
    is_next = boundary is not None and boundary.previous == number
    if boundary is not None and is_next and diff.before.position == diff.after.position:
        by = f"{boundary.policy} ({boundary.trigger})"
        where = f"compaction {count} on {diff.after.lineage}"
        if diff.before.lineage == diff.after.lineage:
            return f"{where}, by {by}, as of #{diff.after.position}"
    return f"{format_coordinate(diff.before)} -> {format_coordinate(diff.after)}"


def _replacement_lines(diff: ViewDiff) -> Iterator[str]:
    summary = diff.summary
    if summary is not None:
        size = format_count(summary.tokens, "token")
        same = "" if diff.has_new_summary else ", as before"
        yield f"instead  a summary of {size} by {summary.summariser}{same}"
        yield f"         stands for {format_handles(summary.covers)}"
        yield from _digest_lines(summary.digest)
    if diff.unmentioned_blocks:
        yield f"         for {format_handles(diff.unmentioned_blocks)} nothing stands"


def _digest_lines(digest: Digest) -> Iterator[str]:
    files = (("modified", digest.modified_files), ("read", digest.read_files))
    for what, paths in files:
        if paths:
            more = f" and {len(paths) - 5} more" if len(paths) > 5 else ""
            yield f"         files {what}: {', '.join(paths[:5])}{more}"


def _print_summary(summary: Summary, most: int | None) -> None:
    print_text(f"\nthe summary, by {summary.summariser}", bold=True)
    lines = summary.text.split("\n")
    for line in lines[:most]:
        print_text(
            _INDENT + (line if most is None else clip_text(line, _LINE_CELLS + 40)) if line else ""
        )
    _print_remaining(len(lines[most or len(lines) :]), "line")


def _format_shares(shares: Sequence[KindShare]) -> str:
    told = (f"{share.blocks:,} {share.kind} with {share.tokens:,} tokens" for share in shares)
    return ", ".join(told) or "nothing"


def _print_facts(what: str, where: str, facts: Sequence[LostFact], most: int | None) -> None:
    if not facts:
        return
    minor = [fact for fact in facts if fact.is_minor and most is not None]
    shown = [fact for fact in facts if fact not in minor] if minor else facts
    print_text(f"\n{what}: {format_count(len(shown), 'fact')} {where}", bold=True)
    kinds = Counter(str(fact.kind) for fact in shown)
    if kinds:
        counts = (format_count(number, kind) for kind, number in kinds.most_common())
        print_wrapped(f"{_INDENT}{', '.join(counts)}", _INDENT)
    for fact in shown[:most]:
        _print_fact(fact)
    _print_remaining(len(shown[most or len(shown) :]), "fact")
    if minor:
        print_text(f"{_INDENT}left out: {len(minor):,} unused numbers and words of tool calls")


def _print_fact(fact: LostFact) -> None:
    """Print one line; the text is shortened to make room for its location."""
    about = "; ".join(_fact_details(fact))
    room = max(_MIN_WORDS_CELLS, _LINE_CELLS - len(_INDENT) - _KIND_CELLS - 3 - len(about))
    print_text(
        f"{_INDENT}{fact.kind:<{_KIND_CELLS}} {clip_text(fact.text, room)}  {about}".rstrip()
    )


def _fact_details(fact: LostFact) -> Iterator[str]:
    if fact.handles:
        yield _format_first(fact.handles)
    if fact.by_user:
        yield "a user's words"
    if fact.later_uses:
        yield f"used again {_format_first(fact.later_uses)}"
    elif fact.repeated_at is not None:
        yield f"told again #{fact.repeated_at}"


def _format_first(handles: Ranges) -> str:
    """Return `#12`, or `#12 +3` if three more blocks have it."""
    more = len(handles) - 1
    return f"#{handles.runs[0][0]}{f' +{more}' if more else ''}"


def _print_blocks(what: str, blocks: Iterable[DiffedBlock], most: int | None) -> None:
    blocks = list(blocks)
    if not blocks:
        return
    print_text(f"\n{format_count(len(blocks), 'block')} {what}", bold=True)
    for block in blocks[:most]:
        name = f" {clip_text(block.name, _NAME_CELLS)}" if block.name else ""
        top = f"#{block.position} {block.kind}{name}, {format_count(block.tokens, 'token')}"
        print_text(
            f"{_INDENT}{top}  {clip_text(block.line, max(20, _LINE_CELLS - len(top)))}".rstrip()
        )
    _print_remaining(len(blocks[most or len(blocks) :]), "block")


def _print_remaining(number: int, thing: str) -> None:
    if number:
        print_text(f"{_INDENT}... and {format_count(number, f'more {thing}')}: --full lists all")
