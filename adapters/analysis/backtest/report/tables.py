"""Writes cells and controls as Parquet: typed columns, and nested settings as JSON text."""

import io
import json
from collections.abc import Callable, Iterable, Mapping
from operator import attrgetter
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from .....domain.backtest.cell import BacktestResult, Bill, Cell
from .....domain.fidelity.scores import Scores

_Columns = Mapping[str, tuple[pa.DataType, Callable[[Any], Any]]]
"""The columns in order: the type and the value of each."""

_TEXT, _COUNT, _NUMBER = pa.string(), pa.int64(), pa.float64()
_COUNTS = pa.list_(_COUNT)
_LOST = pa.list_(
    pa.struct([("key", _TEXT), ("kind", _TEXT), ("call", _COUNT), ("position", _COUNT)])
)
_CELL_COUNTS = (
    *("blocks", "calls", "reports", "overhead", "compactions", "futile", "refused", "broken"),
    *("orphaned", "stood_in", "peak_tokens"),
)
_RATIOS = ("recall", "context", "prose", "f3", "precision")
"""_Columns for readers of one session; over several sessions, add the counts up first."""


def encode_cells(measured: BacktestResult) -> bytes:
    return _encode_parquet(_CELL_COLUMNS, measured.cells)


def encode_controls(measured: BacktestResult) -> bytes:
    return _encode_parquet(_CONTROL_COLUMNS, measured.controls)


def _encode_parquet(columns: _Columns, items: Iterable[Any]) -> bytes:
    schema = pa.schema([(name, kind) for name, (kind, _) in columns.items()])
    rows = [
        {name: _escape_surrogates(value(item)) for name, (_, value) in columns.items()}
        for item in items
    ]
    written = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(rows, schema=schema), written, compression="zstd")
    return written.getvalue()


def _escape_surrogates(value: Any) -> Any:
    """Make a text valid UTF-8: write an unpaired surrogate as its escape."""
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode()
    return value


def _columns(kind: pa.DataType, path: str, *names: str) -> _Columns:
    """Return a column for each attribute below a path such as `setup.`."""
    return {name: (kind, attrgetter(path + name)) for name in names}


def _json_columns(path: str, *names: str) -> _Columns:
    def encode(name: str) -> Callable[[Any], str]:
        value = attrgetter(path + name)
        return lambda one: json.dumps(value(one), ensure_ascii=True, sort_keys=True)

    return {name: (_TEXT, encode(name)) for name in names}


def _score_columns(path: str, prefix: str) -> _Columns:
    counts = _columns(_COUNT, path, *Scores.model_fields)
    ratios = _columns(_NUMBER, path, *_RATIOS)
    return {prefix + name: column for name, column in {**counts, **ratios}.items()}


def _list_lost(cell: Cell) -> list[dict[str, Any]]:
    return [
        {name: _escape_surrogates(value) for name, value in one.model_dump().items()}
        for one in cell.lost
    ]


_SESSION_COLUMNS = _columns(_TEXT, "", "session", "namespace", "source")
_BILL_COLUMNS: _Columns = {
    name: (_NUMBER if name.endswith("_usd") else _COUNT, attrgetter(f"bill.{name}"))
    for name in Bill.model_fields
}
_CELL_COLUMNS: _Columns = {
    **_SESSION_COLUMNS,
    **_columns(_TEXT, "setup.", "policy"),
    **_json_columns("setup.", "settings"),
    **_columns(_TEXT, "setup.", "label"),
    "summariser": (_TEXT, attrgetter("setup.summarizer")),
    **_columns(_TEXT, "setup.", "model"),
    **_columns(_COUNT, "setup.", "limit", "budget"),
    **_columns(_TEXT, "", "outcome", "why"),
    **_json_columns("", "by_trigger", "repairs"),
    **_columns(_COUNT, "", *_CELL_COUNTS),
    **_BILL_COLUMNS,
    **_columns(_NUMBER, "bill.", "usd"),
    **_columns(_NUMBER, "", "chars_per_token"),
    **_score_columns("canonical.", "canonical_"),
    **_score_columns("own.", "own_"),
    **_columns(_NUMBER, "", "own_bound"),
    "lost": (_LOST, _list_lost),
    **_columns(_COUNTS, "", "context", "boundaries"),
}
_CONTROL_COLUMNS: _Columns = {
    **_SESSION_COLUMNS,
    **_columns(_COUNT, "", "limit"),
    **_columns(_TEXT, "", "name"),
    **_columns(_COUNT, "", "budget"),
    **_score_columns("scores.", ""),
    **_columns(_NUMBER, "", "bound"),
}
