"""Measures the summaries of recorded sessions, or learns the weights behind extractive ones.

usage: .venv/bin/python scripts/measure_summaries.py SESSIONS [--budget TOKENS ...] [--recorded]
           [--model NAME [--base-url URL]] [--learn]

Each session is cut where a prompt of 32,000 tokens would overflow (docs/fidelity.md), or with
`--recorded` where the recorded agent cut it; then each summary has as many tokens as the recorded
one, which is measured beside it. `--model` lets a model write the summaries as well, through `llm`;
`replaced` counts those that rules wrote instead, as the model's drafts failed.
`--learn` prints the tables of domain/summaries/needs.py, and how well weights that were learned
without a project rank the facts of that project.
"""

import argparse
import math
import tempfile
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from pathlib import Path

import cutbank
from cutbank import Draft, LlmSummarizer, Material, WindowItem
from cutbank.adapters.analysis.deciders import RECORDED_POLICY, make_decider
from cutbank.adapters.analysis.run_replay import read_decisions, read_recording
from cutbank.adapters.runtime.compaction.background import Cancellation
from cutbank.adapters.runtime.compaction.summary_chain import SummaryChain
from cutbank.domain.blocks import BlockKind
from cutbank.domain.compaction import MAIN_LINEAGE
from cutbank.domain.compaction_events import Digest
from cutbank.domain.digest import build_digest
from cutbank.domain.fidelity.fidelity_measure import FidelityMeasure
from cutbank.domain.fidelity.later_references import RowBoundary, find_canonical_boundaries
from cutbank.domain.fidelity.rows import Scores, ViewSegment, divide
from cutbank.domain.fidelity.session_reading import SessionReading
from cutbank.domain.ranges import Ranges
from cutbank.domain.session_events import BlockAppended, ToolCalled, ToolReturned, TurnStarted
from cutbank.domain.summaries.extractive import ExtractiveSummarizer
from cutbank.domain.summaries.gate import check_draft
from cutbank.domain.summaries.needs import FACT_WEIGHTS, PAIR_WEIGHTS, NeedCounts, ReadItem
from cutbank.domain.summaries.statements import BlockReader
from cutbank.domain.summaries.summarizer import Summarizer
from cutbank.domain.token_estimate import estimate_text
from cutbank.projections.recorded_rows import make_session_rows
from cutbank.projections.replay import collect_segments, replay_recording

LIMIT = 32_000
EVERY = 5
"""One in so many of the facts and pairs that nobody needed is learned from, with that weight."""
Row = tuple[tuple[float, ...], bool, float]


@dataclass(frozen=True)
class MeasuredSession:
    project: str
    items: Sequence[WindowItem]
    measure: FidelityMeasure
    views: Sequence[ViewSegment]
    """What each boundary shows; of recorded ones with the recorded summary."""

    def list_hidden(self, boundary: RowBoundary, after: int = 0) -> tuple[WindowItem, ...]:
        return tuple(i for i in self.items if after < i.position < boundary.first_kept)

    def list_at(self, positions: Ranges) -> tuple[WindowItem, ...]:
        return tuple(i for i in self.items if i.position in positions)

    def list_kept(self, boundary: RowBoundary) -> tuple[WindowItem, ...]:
        reading = self.measure.reading
        last = reading.rows.rows[reading.count_rows_seen(boundary.call) - 1].position
        return tuple(i for i in self.items if boundary.first_kept <= i.position <= last)


def read_sessions(folder: str, *, as_recorded: bool = False) -> Iterator[MeasuredSession]:
    with (
        tempfile.TemporaryDirectory() as scratch,
        cutbank.open(str(Path(scratch) / "sessions.db")) as store,
    ):
        cutbank.import_transcripts(store, folder)
        for session in store.sessions():
            recording = read_recording(session)
            reading = SessionReading(make_session_rows(recording))
            boundaries = find_canonical_boundaries(reading, LIMIT)
            views = [ViewSegment(one.call, one.first_kept - 1, Ranges()) for one in boundaries]
            if as_recorded:
                decisions = read_decisions(session, MAIN_LINEAGE)
                decider = make_decider(RECORDED_POLICY, recording, decisions, cutbank.Settings())
                _, segments = collect_segments(replay_recording(recording, decider, limit=LIMIT))
                views = [view for view in segments if view.summary]
                boundaries = tuple(RowBoundary(view.call, view.after + 1) for view in views)
            if not boundaries:
                continue
            rows, turn, items = {row.position for row in reading.rows.rows}, 0, list[WindowItem]()
            for recorded in recording.log.values():
                match recorded.event:
                    case TurnStarted():
                        turn += 1
                    case BlockAppended(block=block) | ToolCalled(block=block):
                        items.append(WindowItem(recorded.position, block, turn, recorded.tokens))
                    case ToolReturned(block=block, call=call):
                        item = WindowItem(recorded.position, block, turn, recorded.tokens, call)
                        items.append(item)
                    case _:
                        pass
            yield MeasuredSession(
                Path(session.info.project or session.key).name,
                [item for item in items if item.position in rows],
                FidelityMeasure(reading, boundaries),
                views,
            )


def summarize(
    session: MeasuredSession, summarizer: Summarizer, budget: int | None
) -> tuple[list[ViewSegment], int]:
    """Write one summary after the other; return them, and how many another summarizer wrote.

    Each is made on the one before. A draft that fails is asked for again, or replaced, as in a
    compaction. Without a budget, each has as many tokens as the recorded one.
    """
    chain, draft, digest, after = SummaryChain((summarizer,)), Draft(""), Digest(), 0
    users = [item.block.text for item in session.items if item.kind is BlockKind.USER]
    segments, replaced = list[ViewSegment](), 0
    for boundary, view in zip(session.measure.boundaries, session.views, strict=True):
        hidden = session.list_hidden(boundary, after)
        removed = tuple(item for item in hidden if item.position not in view.kept)
        digest = build_digest(removed, digest, ())
        material = Material(
            removed_items=removed,
            covers=Ranges.span(1, boundary.first_kept - 1) - view.kept,
            budget=estimate_text(view.summary) if budget is None else budget,
            previous=draft.text or None,
            previous_sections=draft.sections,
            digest=digest,
            kept_items=session.list_kept(boundary),
            originals=session.list_at,
        )
        judge = partial(check_draft, material=material, user_texts=users)
        written = chain.write(material, judge, Cancellation())
        draft, replaced = written.draft, replaced + (written.summarizer != summarizer.name)
        after = boundary.first_kept - 1
        segments.append(replace(view, summary=draft.text))
    return segments, replaced


def observe(session: MeasuredSession) -> tuple[list[Row], list[Row]]:
    """Return the features of hidden facts and pairs, and whether the agent needed each again."""
    facts, pairs = list[Row](), list[Row]()
    reader, measure = BlockReader(), session.measure
    calls = [boundary.call for boundary in measure.boundaries]
    needed = defaultdict[int, set[object]](set)
    for stake in measure.stakes:
        needed[stake.segment].add(stake.key)
    for again in measure.pair_references:
        needed[bisect_right(calls, again.call) - 1].add(again.pair)
    for segment, boundary in enumerate(measure.boundaries):
        counts = NeedCounts(
            [ReadItem(i, reader.read(i.block)) for i in session.list_hidden(boundary)],
            [reader.read(i.block) for i in session.list_kept(boundary)],
        )
        for rows, found in ((facts, counts.iter_facts()), (pairs, counts.iter_pairs())):
            for number, (key, features) in enumerate(found):
                is_needed = key in needed[segment]
                if is_needed or number % EVERY == 0:
                    rows.append((features, is_needed, 1 if is_needed else EVERY))
    return facts, pairs


def fit(rows: Sequence[Row], steps: int = 12, ridge: float = 3.0) -> list[float]:
    """Return the weights of a logistic regression, by Newton's method."""
    width = len(rows[0][0])
    weights = [0.0] * width
    for _ in range(steps):
        slope = [-ridge * w for w in weights]
        curve = [[ridge * (i == j) for j in range(width)] for i in range(width)]
        for features, is_needed, times in rows:
            chance = 1 / (1 + math.exp(-sum(a * b for a, b in zip(features, weights, strict=True))))
            error, bend = times * (is_needed - chance), times * chance * (1 - chance)
            present = [(i, x) for i, x in enumerate(features) if x]
            for i, x in present:
                slope[i] += error * x
                for j, y in present:
                    curve[i][j] += bend * x * y
        weights = [a + b for a, b in zip(weights, solve(curve, slope), strict=True)]
    return weights


def solve(matrix: list[list[float]], values: list[float]) -> list[float]:
    """Solve a system of linear equations by elimination."""
    rows = [[*row, value] for row, value in zip(matrix, values, strict=True)]
    for i in range(len(rows)):
        best = max(range(i, len(rows)), key=lambda k, i=i: abs(rows[k][i]))  # type: ignore[misc]
        rows[i], rows[best] = rows[best], rows[i]
        rows[i] = [x / rows[i][i] for x in rows[i]]
        for k, row in enumerate(rows):
            if k != i:
                rows[k] = [a - row[i] * b for a, b in zip(row, rows[i], strict=True)]
    return [row[-1] for row in rows]


def rank(rows: Sequence[Row], weights: Sequence[float]) -> float | None:
    """Return how often a needed fact outranks one that is not (0.5 is chance)."""
    scored = sorted(
        (sum(a * b for a, b in zip(features, weights, strict=True)), is_needed)
        for features, is_needed, _ in rows
    )
    places = [place for place, (_, is_needed) in enumerate(scored) if is_needed]
    others = len(scored) - len(places)
    if not places or not others:
        return None
    return (sum(places) - len(places) * (len(places) - 1) / 2) / (len(places) * others)


def weigh(found: Sequence[tuple[str, Sequence[Row]]]) -> list[Row]:
    """Return the rows of all projects, weighted so that none decides alone by its many stakes."""
    needed = Counter[str]()
    for project, rows in found:
        needed[project] += sum(is_needed for _, is_needed, _ in rows)
    weighted = [
        (features, is_needed, times / math.sqrt(max(needed[project], 1)))
        for project, rows in found
        for features, is_needed, times in rows
    ]
    whole = sum(times for _, rows in found for _, _, times in rows)
    scale = whole / sum(times for _, _, times in weighted)
    return [(features, is_needed, times * scale) for features, is_needed, times in weighted]


def learn(sessions: Sequence[MeasuredSession]) -> None:
    tables: Sequence[tuple[str, Mapping[str, float]]] = (
        ("FACT_WEIGHTS", FACT_WEIGHTS),
        ("PAIR_WEIGHTS", PAIR_WEIGHTS),
    )
    observed = [(session.project, observe(session)) for session in sessions]
    for at, (name, table) in enumerate(tables):
        rows = [(project, found[at]) for project, found in observed]
        print(f"{name}: Mapping[str, float] = {{")
        for feature, weight in zip(table, fit(weigh(rows)), strict=True):
            print(f'    "{feature}": {weight:.2f},')
        print("}", flush=True)
        for project in sorted({project for project, _ in rows}):
            own = [row for p, found in rows if p == project for row in found]
            other = [(p, found) for p, found in rows if p != project]
            if other and (quality := rank(own, fit(weigh(other)))) is not None:
                print(f"# without {project}: {quality:.2f} of 1.00", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("sessions")
    parser.add_argument("--learn", action="store_true")
    parser.add_argument("--budget", type=int, nargs="+", default=[2_000, 500])
    parser.add_argument("--recorded", action="store_true")
    parser.add_argument("--model")
    parser.add_argument("--base-url")
    parser.add_argument("--texts", type=Path, help="a folder to write the summaries to")
    asked = parser.parse_args()
    if asked.texts:
        asked.texts.mkdir(parents=True, exist_ok=True)
    sessions = list(read_sessions(asked.sessions, as_recorded=asked.recorded))
    if asked.learn:
        learn(sessions)
        return
    summarizers: list[Summarizer] = [ExtractiveSummarizer()]
    if asked.model:
        summarizers.append(LlmSummarizer(asked.model, asked.base_url))
    print_header()
    if asked.recorded:
        total = sum([one.measure.score(one.views) for one in sessions], Scores())
        print_scores("recorded", None, len(sessions), total)
    for summarizer, budget in product(summarizers, [None] if asked.recorded else asked.budget):
        measure(sessions, summarizer, budget, asked.texts)


def measure(
    sessions: Sequence[MeasuredSession],
    summarizer: Summarizer,
    budget: int | None,
    folder: Path | None = None,
) -> tuple[Scores, int]:
    """Print and return the scores of all sessions, and how many summaries were replaced."""
    total, replaced = Scores(), 0
    for number, session in enumerate(sessions):
        segments, count = summarize(session, summarizer, budget)
        total, replaced = total + session.measure.score(segments), replaced + count
        if folder:
            for segment in segments:
                name = f"{summarizer.name}-{budget or 'recorded'}-{number:03}-{segment.after}.md"
                (folder / name).write_text(segment.summary or "", "utf-8")
    print_scores(summarizer.name, budget, len(sessions), total, replaced)
    return total, replaced


def print_header() -> None:
    names = "  ".join(f"{name:<8}" for name in _COLUMNS)
    print(f"summaries   budget    sessions  boundaries  replaced  stakes   {names}")


def print_scores(
    name: str, budget: int | None, sessions: int, total: Scores, replaced: int = 0
) -> None:
    tokens = "recorded" if budget is None else f"{budget:,}"
    print(
        f"{name:<11} {tokens:<9} {sessions:<9} {total.boundaries:<11} {replaced:<9}",
        f"{total.stakes:<8}",
        *(
            f"{'-' if (part := read(total)) is None else f'{part:.3f}':<9}"
            for read in _COLUMNS.values()
        ),
        flush=True,
    )


_COLUMNS: Mapping[str, Callable[[Scores], float | None]] = {
    "R": lambda total: total.recall,
    "C": lambda total: total.context,
    "Cq": lambda total: total.quoted_context,
    "P": lambda total: total.prose,
    "F3": lambda total: total.f3,
    "modified": lambda total: divide(total.modified_named, total.modified),
    "rules": lambda total: divide(total.constraints_kept, total.constraints),
    "novel": lambda total: divide(total.novel, total.boundaries),
}
"""What is printed of each budget; `novel` is the number of facts a summary that no block has."""


if __name__ == "__main__":
    main()
