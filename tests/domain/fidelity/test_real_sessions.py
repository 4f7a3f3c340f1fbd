"""Real sessions: what always holds of their stakes, and how many there are where that is known."""

import json
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from transcripts import NO_SESSIONS, SESSIONS, import_file, manifest

import cutbank
from cutbank.adapters.analysis.run_replay import read_recording
from cutbank.domain.fidelity.controls import build_controls
from cutbank.domain.fidelity.fidelity_measure import FidelityMeasure, compute_upper_bound
from cutbank.domain.fidelity.later_references import find_canonical_boundaries
from cutbank.domain.fidelity.rows import Scores
from cutbank.domain.fidelity.session_reading import SessionReading
from cutbank.projections.recorded_rows import make_session_rows

FIGURES = json.loads(Path(__file__).with_name("figures.json").read_text(encoding="utf-8"))
"""Of the folder whose manifest has this digest: what was counted by another program."""
pytestmark = [pytest.mark.slow, pytest.mark.skipif(not SESSIONS, reason=NO_SESSIONS)]


@pytest.fixture(scope="module")
def readings() -> list[SessionReading]:
    """The sessions of people, not those of sub-agents, in the formats that the figures are of."""
    found: list[SessionReading] = []
    for path, row in manifest().items():
        if row["format"] in FIGURES["formats"] and row["role"] == "session":
            with cutbank.open(":memory:") as store:
                for key in import_file(store, path).sessions:
                    rows = make_session_rows(read_recording(store.session(key)))
                    found.append(SessionReading(rows))
    return found


def measure(readings: list[SessionReading], limit: int) -> list[FidelityMeasure]:
    return [FidelityMeasure(one, find_canonical_boundaries(one, limit)) for one in readings]


def compare(found: Mapping[str, float | None], figures: Mapping[str, float], **within: Any) -> None:
    """Compare with the figures, where the folder is the one that they are of."""
    manifest_text = Path(SESSIONS or "", "manifest.csv").read_bytes()
    if sha256(manifest_text).hexdigest() != FIGURES["manifest"]:
        print(f"the figures are of another folder, and compared with nothing: {found}")  # noqa: T201
        return
    for name, figure in figures.items():
        assert found[name] == pytest.approx(figure, **within), name


@pytest.mark.parametrize("limit", [16_000, 32_000])
def test_real_sessions_have_as_many_stakes_as_were_counted(
    readings: list[SessionReading], limit: int
) -> None:
    measures = measure(readings, limit)

    counts = {
        "stakes": sum(len(one.stakes) for one in measures),
        "boundaries": sum(len(one.boundaries) for one in measures),
        "sessions": sum(len(one.stakes) >= 5 for one in measures),
    }
    compare(counts, FIGURES["limits"][str(limit)], rel=0.05, abs=1)


@pytest.mark.parametrize("limit", [16_000, 32_000])
def test_real_sessions_score_under_the_controls_as_was_measured(
    readings: list[SessionReading], limit: int
) -> None:
    measures = measure(readings, limit)
    most = sum(compute_upper_bound(one, 2_000) for one in measures)
    totals: dict[str, Scores] = {}
    for one in measures:
        for name, _, segments in build_controls(one.reading, one.boundaries, [2_000]):
            totals[name] = totals.get(name, Scores()) + one.score(segments)

    for name, total in totals.items():
        if name not in {"full history", "masking"}:
            assert total.hits <= most + 1e-6
    recall = {name: total.recall for name, total in totals.items()}
    compare(recall, FIGURES["recall"][str(limit)], abs=0.04)


def test_the_bound_of_real_sessions_grows_with_the_budget_as_was_measured(
    readings: list[SessionReading],
) -> None:
    measures = measure(readings, 32_000)
    stakes = sum(len(one.stakes) for one in measures)
    found = {
        budget: sum(compute_upper_bound(one, int(budget)) for one in measures) / stakes
        for budget in FIGURES["bound"]
    }

    assert list(found.values()) == sorted(found.values())
    assert found["2000"] <= 1
    compare(found, FIGURES["bound"], abs=0.04)
