"""Writes cells and controls as Parquet: typed columns, and nested settings as JSON text."""

import io
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from .....domain.backtest.cell import Bill, Cell, Setup
from .....domain.backtest.result import BacktestResult, ControlResult
from .....domain.fidelity.scores import Scores
from .html_parts import escape_surrogates

if TYPE_CHECKING:
    import pyarrow as pa

COUNT_COLUMNS = (
    "blocks",
    "calls",
    "reports",
    "overhead",
    "compactions",
    "futile",
    "refused",
    "broken",
    "orphaned",
    "stood_in",
    "peak_tokens",
)
_RATIO_COLUMNS = ("recall", "context", "prose", "f3", "precision")
"""Columns for readers of one session; over several sessions, add the counts up first."""


class ReportTable(Protocol):
    def column_types(self) -> dict[str, str]:
        """Return the columns in order: `text`, `count`, `number`, `counts` or `lost`."""
        ...

    def iter_rows(self) -> Iterable[dict[str, Any]]: ...


@dataclass(frozen=True)
class CellTable:
    measured: BacktestResult

    def column_types(self) -> dict[str, str]:
        return {
            **_session_types(),
            **dict.fromkeys(("policy", "settings", "label", "summariser", "model"), "text"),
            **dict.fromkeys(("limit", "budget"), "count"),
            **dict.fromkeys(("outcome", "why", "by_trigger", "repairs"), "text"),
            **dict.fromkeys(COUNT_COLUMNS, "count"),
            **{name: "number" if name.endswith("_usd") else "count" for name in Bill.model_fields},
            "usd": "number",
            "chars_per_token": "number",
            **_score_types("canonical_"),
            **_score_types("own_"),
            "own_bound": "number",
            "lost": "lost",
            "context": "counts",
            "boundaries": "counts",
        }

    def iter_rows(self) -> Iterable[dict[str, Any]]:
        return map(_cell_row, self.measured.cells)


@dataclass(frozen=True)
class ControlTable:
    measured: BacktestResult

    def column_types(self) -> dict[str, str]:
        return {
            **_session_types(),
            "limit": "count",
            "name": "text",
            "budget": "count",
            **_score_types(""),
            "bound": "number",
        }

    def iter_rows(self) -> Iterable[dict[str, Any]]:
        return map(_control_row, self.measured.controls)


def encode_parquet(table: ReportTable) -> bytes:
    # Only a report needs it, and it is slow to load.
    import pyarrow as pa  # noqa: PLC0415
    import pyarrow.parquet as pq  # noqa: PLC0415

    schema = pa.schema([(name, _arrow_type(kind)) for name, kind in table.column_types().items()])
    written = io.BytesIO()
    pq.write_table(
        pa.Table.from_pylist(list(table.iter_rows()), schema=schema), written, compression="zstd"
    )
    return written.getvalue()


def _arrow_type(kind: str) -> "pa.DataType":
    import pyarrow as pa  # noqa: PLC0415 - as above

    match kind:
        case "count":
            return pa.int64()
        case "number":
            return pa.float64()
        case "counts":
            return pa.list_(pa.int64())
        case "lost":
            place = [("call", pa.int64()), ("position", pa.int64())]
            return pa.list_(pa.struct([("key", pa.string()), ("kind", pa.string()), *place]))
        case _:
            return pa.string()


def _cell_row(cell: Cell) -> dict[str, Any]:
    return {
        **_session_columns(cell),
        **_setup_columns(cell.setup),
        "outcome": cell.outcome.value,
        "why": escape_surrogates(cell.why),
        "by_trigger": _encode_json(cell.by_trigger),
        "repairs": _encode_json(cell.repairs),
        **{name: getattr(cell, name) for name in COUNT_COLUMNS},
        **{name: getattr(cell.bill, name) for name in Bill.model_fields},
        "usd": cell.bill.usd,
        "chars_per_token": cell.chars_per_token,
        **_score_columns("canonical_", cell.canonical),
        **_score_columns("own_", cell.own),
        "own_bound": cell.own_bound,
        "lost": [
            {
                "key": escape_surrogates(one.key),
                "kind": escape_surrogates(one.kind),
                "call": one.call,
                "position": one.position,
            }
            for one in cell.lost
        ],
        "context": cell.context,
        "boundaries": cell.boundaries,
    }


def _control_row(control: ControlResult) -> dict[str, Any]:
    return {
        **_session_columns(control),
        "limit": control.limit,
        "name": escape_surrogates(control.name),
        "budget": control.budget,
        **_score_columns("", control.scores),
        "bound": control.bound,
    }


def _session_columns(one: Cell | ControlResult) -> dict[str, str | None]:
    return {
        "session": escape_surrogates(one.session),
        "namespace": escape_surrogates(one.namespace),
        "source": None if one.source is None else escape_surrogates(one.source),
    }


def _setup_columns(setup: Setup) -> dict[str, Any]:
    return {
        "policy": escape_surrogates(setup.policy),
        "settings": _encode_json(setup.settings),
        "label": escape_surrogates(setup.label),
        "summariser": escape_surrogates(setup.summariser),
        "model": None if setup.model is None else escape_surrogates(setup.model),
        "limit": setup.limit,
        "budget": setup.budget,
    }


def _score_columns(prefix: str, scores: Scores) -> dict[str, float | None]:
    return {prefix + name: getattr(scores, name) for name in (*_counted_columns(), *_RATIO_COLUMNS)}


def _session_types() -> dict[str, str]:
    return dict.fromkeys(("session", "namespace", "source"), "text")


def _score_types(prefix: str) -> dict[str, str]:
    counts = {prefix + name: "count" for name in _counted_columns()}
    return counts | {prefix + name: "number" for name in _RATIO_COLUMNS}


def _counted_columns() -> Sequence[str]:
    return tuple(Scores.model_fields)


def _encode_json(document: object) -> str:
    return json.dumps(document, ensure_ascii=True, sort_keys=True)
