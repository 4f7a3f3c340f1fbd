"""Cells and controls as Parquet, as other programs read them."""

import io
import json
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from backtests import cell, measured, setup, some_measured, told_apart
from hypothesis import given, settings

from cutbank.adapters.analysis.backtest.report.tables import encode_cells, encode_controls
from cutbank.domain.backtest.cell import BacktestResult, Bill


def rows(content: bytes) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = pq.read_table(io.BytesIO(content)).to_pylist()
    return found


def test_each_cell_is_a_row_of_typed_columns() -> None:
    found = told_apart()

    table = pq.read_table(io.BytesIO(encode_cells(found)))

    assert table.num_rows == len(found.cells)
    types = {field.name: field.type for field in table.schema}
    assert types["prompt_tokens"] == pa.int64()
    assert types["usd"] == pa.float64()
    assert types["policy"] == pa.string()
    assert types["context"] == pa.list_(pa.int64())
    assert "seconds" not in types


def test_a_row_says_what_its_cell_says() -> None:
    found = told_apart()
    pi = next(one for one in found.cells if one.setup.policy == "pi")

    row = next(row for row in rows(encode_cells(found)) if row["policy"] == "pi")

    assert (row["session"], row["label"], row["budget"]) == (pi.session, pi.setup.label, 500)
    assert (row["canonical_hits"], row["canonical_recall"]) == (3, 0.3)
    assert row["usd"] == pi.bill.usd
    assert json.loads(row["repairs"]) == pi.repairs
    assert row["lost"][0] == {"key": "src/a.py", "kind": "path", "call": 7, "position": 12}
    assert tuple(row["boundaries"]) == pi.boundaries


def test_what_is_not_known_is_null_and_not_nothing() -> None:
    unknown = cell("a", setup(), bill=Bill(prompt_tokens=5), source=None)

    (row,) = rows(encode_cells(measured(unknown)))

    assert row["usd"] is row["prompt_usd"] is row["source"] is row["budget"] is None
    assert row["prompt_tokens"] == 5


@settings(max_examples=10, deadline=None)
@given(some_measured())
def test_whatever_was_measured_can_be_read_again(found: BacktestResult) -> None:
    cells, controls = (
        rows(encode_cells(found)),
        rows(encode_controls(found)),
    )

    assert [(row["session"], row["prompt_tokens"]) for row in cells] == [
        (one.session, one.bill.prompt_tokens) for one in found.cells
    ]
    assert [json.loads(row["settings"]) for row in cells] == [
        one.setup.settings for one in found.cells
    ]
    assert [row["stakes"] for row in controls] == [one.scores.stakes for one in found.controls]
    assert encode_cells(found) == encode_cells(found)
