"""What docs/telemetry.md shows is run as it stands there, and what it lists is all there is."""

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

from opentelemetry import metrics

from cutbank.adapters.runtime.telemetry.compaction_telemetry import Result
from cutbank.adapters.runtime.telemetry.instruments import Instruments
from cutbank.adapters.runtime.telemetry.summary_span import Fate
from cutbank.adapters.runtime.telemetry.worker_metrics import CHORES, FATES, INCIDENTS

PAGE = (Path(__file__).parents[1] / "docs" / "telemetry.md").read_text(encoding="utf-8")
TELEMETRY = Path(__file__).parents[1] / "adapters" / "runtime" / "telemetry"
(CODE,) = re.findall(r"^```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
ROWS = dict(re.findall(r"^\| `(cutbank[.a-z_]+)` \| (.*?) \|", PAGE, re.MULTILINE))


def test_the_code_on_the_page_prints_what_it_says(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", CODE], cwd=tmp_path, capture_output=True, check=True, text=True
    )

    # A process of its own: its providers can be set once.
    spans = {
        name: (span, parent)
        for name, span, parent in re.findall(
            r'^    "name": "(.*?)",\n    "context": \{.*?"span_id": "(\w+)".*?"parent_id": (.*?),$',
            done.stdout,
            re.MULTILINE | re.DOTALL,
        )
    }
    assert spans["a turn"][1] == "null"
    assert spans["cutbank.compact"][1] == f'"{spans["a turn"][0]}"'
    assert spans["cutbank.summarise"][1] == f'"{spans["cutbank.compact"][0]}"'
    told = set(re.findall(r'"name": "(cutbank\.\w+\.\w+)"', done.stdout))
    assert told == {
        "cutbank.compaction.duration",
        "cutbank.compaction.tokens_saved",
        "cutbank.summary.duration",
    }


def test_the_page_lists_each_metric_with_its_kind_and_unit() -> None:
    made: dict[str, str] = {}

    class Notes(metrics.NoOpMeter):
        def create_counter(self, name: str, unit: str = "", description: str = "") -> Any:
            made[name] = f"counter, {unit}"

        def create_up_down_counter(self, name: str, unit: str = "", description: str = "") -> Any:
            made[name] = f"up-down counter, {unit}"

        def create_gauge(self, name: str, unit: str = "", description: str = "") -> Any:
            made[name] = f"gauge, {unit}"

        def create_histogram(
            self, name: str, unit: str = "", description: str = "", **_: Any
        ) -> Any:
            made[name] = f"histogram, {unit}"

    Instruments(Notes("cutbank"))

    kinds = ("counter", "gauge", "histogram", "up-down counter")
    assert {name: kind for name, kind in ROWS.items() if kind.startswith(kinds)} == made


def test_the_page_names_what_the_code_names_and_nothing_else() -> None:
    sources = "".join(file.read_text(encoding="utf-8") for file in TELEMETRY.glob("*.py"))
    name = r"((?:cutbank|gen_ai|error)\.[a-z._]+)"

    assert set(re.findall(f"`{name}`", PAGE)) == set(re.findall(f'"{name}"', sources))


def test_the_page_lists_each_word_that_an_attribute_may_say() -> None:
    words = {*Result, *Fate, *FATES.values(), *CHORES.values(), *(one.value for one in INCIDENTS)}

    assert not [word for word in words if f"`{word}`" not in PAGE]
