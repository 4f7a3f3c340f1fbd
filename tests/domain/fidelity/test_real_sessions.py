"""Real sessions: what always holds of their stakes, and how many there are where that is known."""

import json
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

import pytest
from fidelity_sessions import dropping
from transcripts import NO_SESSIONS, SESSIONS, import_file, manifest

import cutbank
from cutbank.adapters.analysis.replaying.recordings import recording_of
from cutbank.domain.fidelity.canonical_boundaries import canonical
from cutbank.domain.fidelity.controls import CONTROLS
from cutbank.domain.fidelity.fidelity_measure import Measure
from cutbank.domain.fidelity.scores import Scores
from cutbank.domain.fidelity.segments import WHOLE
from cutbank.domain.fidelity.session_reading import Reading
from cutbank.domain.fidelity.upper_bound import bound
from cutbank.projections.replay.recorded_rows import rows_of

FIGURES = json.loads(Path(__file__).with_name("figures.json").read_text(encoding="utf-8"))
"""Of the folder whose manifest has this digest: what was counted by another program."""
pytestmark = [pytest.mark.slow, pytest.mark.skipif(not SESSIONS, reason=NO_SESSIONS)]


@pytest.fixture(scope="module")
def readings() -> list[Reading]:
    return list(read())


def read() -> Iterator[Reading]:
    """The sessions of people, not those of sub-agents, in the formats that the figures are of."""
    for path, row in manifest().items():
        if row["format"] in FIGURES["formats"] and row["role"] == "session":
            with cutbank.open(":memory:") as store:
                report = import_file(store, path)
                for key in report.sessions:
                    yield Reading(rows_of(recording_of(store.session(key))))


def is_that_folder() -> bool:
    text = Path(SESSIONS or "", "manifest.csv").read_bytes()
    return sha256(text).hexdigest() == str(FIGURES["manifest"])


@pytest.mark.parametrize("limit", [16_000, 32_000])
def test_real_sessions_have_as_many_stakes_as_were_counted(
    readings: list[Reading], limit: int
) -> None:
    measures = [Measure(reading, canonical(reading, limit)) for reading in readings]

    for measure in measures:
        full = measure.scores([WHOLE])
        none = measure.scores(dropping(measure.reading, measure.boundaries))
        assert full.hits == full.stakes == len(measure.stakes)
        assert full.loose_hits == full.loose_stakes
        assert none.hits == none.loose_hits == none.generic_hits == 0

    figures = FIGURES["limits"][str(limit)]
    counts = {
        "stakes": sum(len(measure.stakes) for measure in measures),
        "boundaries": sum(len(measure.boundaries) for measure in measures),
        "sessions": sum(len(measure.stakes) >= 5 for measure in measures),
    }
    if not is_that_folder():
        print(f"the figures are of another folder, and compared with nothing: {counts}")  # noqa: T201
        return
    assert counts["stakes"] == pytest.approx(figures["stakes"], rel=0.05)
    for name in figures.keys() - {"stakes"}:
        assert counts[name] == pytest.approx(figures[name], rel=0.05, abs=1)


@pytest.mark.parametrize("limit", [16_000, 32_000])
def test_real_sessions_score_under_the_controls_as_was_measured(
    readings: list[Reading], limit: int
) -> None:
    measures = [Measure(reading, canonical(reading, limit)) for reading in readings]
    most = sum(bound(measure, 2_000) for measure in measures)
    totals: dict[str, Scores] = {}
    for name, control in CONTROLS.items():
        total = Scores()
        for measure in measures:
            total += measure.scores(control(measure.reading, measure.boundaries, 2_000))
        totals[name] = total

    for name, total in totals.items():
        assert total.novel == 0
        assert total.context_hits <= total.hits <= total.stakes
        if name not in {"full history", "masking"}:
            assert total.hits <= most + 1e-6
    full, none = totals["full history"], totals["drop"]
    assert (full.hits, full.pair_hits) == (full.stakes, full.pairs)
    assert (full.constraints_kept, full.rereads_named) == (full.constraints, full.rereads)
    assert none.hits == none.pair_hits == none.constraints_kept == 0
    recall = {name: total.recall for name, total in totals.items()}
    if not is_that_folder():
        print(f"the figures are of another folder, and compared with nothing: {recall}")  # noqa: T201
        return
    for name, figure in FIGURES["recall"][str(limit)].items():
        assert recall[name] == pytest.approx(figure, abs=0.04)


def test_the_bound_of_real_sessions_grows_with_the_budget_as_was_measured(
    readings: list[Reading],
) -> None:
    measures = [Measure(reading, canonical(reading, 32_000)) for reading in readings]
    stakes = sum(len(measure.stakes) for measure in measures)
    found = {
        budget: sum(bound(measure, int(budget)) for measure in measures)
        for budget in FIGURES["bound"]
    }

    assert list(found.values()) == sorted(found.values())
    assert found["2000"] <= stakes
    if not is_that_folder():
        print(f"the figures are of another folder, and compared with nothing: {found}")  # noqa: T201
        return
    for budget, figure in FIGURES["bound"].items():
        assert found[budget] / stakes == pytest.approx(figure, abs=0.04)
