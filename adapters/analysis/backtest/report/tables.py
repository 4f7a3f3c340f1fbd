"""Cells and controls as Parquet: typed columns, one row each, nested settings as JSON text."""

import io
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from .....domain.backtest.cell import Bill, Cell, Setup
from .....domain.backtest.result import Control, Measured
from .....domain.fidelity.scores import Scores
from .markup import sayable

if TYPE_CHECKING:
    import pyarrow as pa

COUNTS = (
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
RATIOS = ("recall", "context", "prose", "f3", "precision")
"""Beside their counts, for who reads one session; over several they have to be added up first."""


class Table(Protocol):
    """Rows of one shape."""

    def types(self) -> dict[str, str]:
        """Columns in order: `text`, `count`, `number`, `counts` or `lost`."""
        ...

    def rows(self) -> Iterable[dict[str, Any]]: ...


@dataclass(frozen=True)
class CellTable:
    measured: Measured

    def types(self) -> dict[str, str]:
        return {
            **_session_types(),
            **dict.fromkeys(("policy", "settings", "label", "summariser", "model"), "text"),
            **dict.fromkeys(("limit", "budget"), "count"),
            **dict.fromkeys(("outcome", "why", "by_trigger", "repairs"), "text"),
            **dict.fromkeys(COUNTS, "count"),
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

    def rows(self) -> Iterable[dict[str, Any]]:
        return map(_cell_row, self.measured.cells)


@dataclass(frozen=True)
class ControlTable:
    measured: Measured

    def types(self) -> dict[str, str]:
        return {
            **_session_types(),
            "limit": "count",
            "name": "text",
            "budget": "count",
            **_score_types(""),
            "bound": "number",
        }

    def rows(self) -> Iterable[dict[str, Any]]:
        return map(_control_row, self.measured.controls)


def parquet_of(table: Table) -> bytes:
    """The table as one Parquet file."""
    # Only a report needs it, and it takes long to load.
    import pyarrow as pa  # noqa: PLC0415
    import pyarrow.parquet as pq  # noqa: PLC0415

    schema = pa.schema([(name, _type(kind)) for name, kind in table.types().items()])
    written = io.BytesIO()
    pq.write_table(
        pa.Table.from_pylist(list(table.rows()), schema=schema), written, compression="zstd"
    )
    return written.getvalue()


def _type(kind: str) -> "pa.DataType":
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
        **_session(cell),
        **_setup(cell.setup),
        "outcome": cell.outcome.value,
        "why": sayable(cell.why),
        "by_trigger": _json(cell.by_trigger),
        "repairs": _json(cell.repairs),
        **{name: getattr(cell, name) for name in COUNTS},
        **{name: getattr(cell.bill, name) for name in Bill.model_fields},
        "usd": cell.bill.usd,
        "chars_per_token": cell.chars_per_token,
        **_scores("canonical_", cell.canonical),
        **_scores("own_", cell.own),
        "own_bound": cell.own_bound,
        "lost": [
            {
                "key": sayable(one.key),
                "kind": sayable(one.kind),
                "call": one.call,
                "position": one.position,
            }
            for one in cell.lost
        ],
        "context": cell.context,
        "boundaries": cell.boundaries,
    }


def _control_row(control: Control) -> dict[str, Any]:
    return {
        **_session(control),
        "limit": control.limit,
        "name": sayable(control.name),
        "budget": control.budget,
        **_scores("", control.scores),
        "bound": control.bound,
    }


def _session(one: Cell | Control) -> dict[str, str | None]:
    return {
        "session": sayable(one.session),
        "namespace": sayable(one.namespace),
        "source": None if one.source is None else sayable(one.source),
    }


def _setup(setup: Setup) -> dict[str, Any]:
    return {
        "policy": sayable(setup.policy),
        "settings": _json(setup.settings),
        "label": sayable(setup.label),
        "summariser": sayable(setup.summariser),
        "model": None if setup.model is None else sayable(setup.model),
        "limit": setup.limit,
        "budget": setup.budget,
    }


def _scores(prefix: str, scores: Scores) -> dict[str, float | None]:
    return {prefix + name: getattr(scores, name) for name in (*_counted(), *RATIOS)}


def _session_types() -> dict[str, str]:
    return dict.fromkeys(("session", "namespace", "source"), "text")


def _score_types(prefix: str) -> dict[str, str]:
    counts = {prefix + name: "count" for name in _counted()}
    return counts | {prefix + name: "number" for name in RATIOS}


def _counted() -> Sequence[str]:
    return tuple(Scores.model_fields)


def _json(document: object) -> str:
    return json.dumps(document, ensure_ascii=True, sort_keys=True)
