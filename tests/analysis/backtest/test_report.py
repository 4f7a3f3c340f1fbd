"""The report of a backtest: a whole and harmless page, and JSON that programs read."""

import json
import os
import re
import shlex
import sys
from pathlib import Path

import pytest
from backtests import cell, measured, setup, some_measured, told_apart
from html_pages import Page
from hypothesis import given, settings
from plotly import io as plotly_io
from plotly.offline import get_plotlyjs

from cutbank.adapters.analysis.backtest import report
from cutbank.adapters.analysis.backtest.report import render_report, write_report
from cutbank.domain.backtest_cell import BacktestResult, MissedFact
from cutbank.domain.errors import ExportError


def read(found: BacktestResult) -> Page:
    """The page without the program that draws, which is not ours."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(report, "_load_plotly", str)
        return Page(render_report(found))


def test_the_page_is_whole_and_asks_no_network() -> None:
    html = render_report(told_apart())

    found = Page(html)

    assert html.startswith("<!doctype html>")
    assert found.named("html") == [{"lang": "en"}]
    assert not {"link", "img", "iframe", "object"} & {tag for tag, _ in found.elements}
    assert not any({"src", "href"} & set(attributes) for _, attributes in found.elements)
    assert "default-src 'none'" in next(
        one["content"] for one in found.named("meta") if "http-equiv" in one
    )
    assert len(found.ids) == len(set(found.ids))
    assert len(re.findall(r"plotly\.js v\d", html)) == 1
    assert "rolling-timeline failed at call 3" in found.said
    style = html.partition("</style>")[0]
    assert "@import" not in style
    assert "url(" not in style


def check_drawings(found: Page) -> None:
    for document in found.documents.values():
        assert plotly_io.from_json(document, skip_invalid=False).data


def test_each_drawing_is_valid_and_can_be_read_by_who_does_not_see_it() -> None:
    found = read(told_apart())

    places = [one for one in found.named("div") if one.get("class") == "drawing"]
    assert [one["id"] for one in places] == ["drawing-1", "drawing-2"], "one for each limit"
    assert all(one["role"] == "img" and len(one["aria-label"]) > 20 for one in places)
    check_drawings(found)


def test_no_text_of_a_session_becomes_part_of_the_page(tmp_path: Path) -> None:
    wild = "</script><script>alert(1)</script><img src=x onerror=alert(2)>'\"&<!--"
    half = f"{wild} half \ud83d pair"
    lost = (MissedFact(key=half, kind=wild, call=1, position=2),)
    setups = setup(wild), setup("pi", settings={wild: wild})
    cells = (cell(half, one, lost=lost, why=wild, source=wild) for one in setups)

    page, *_ = write_report(measured(*cells, skipped={wild: wild}), tmp_path)

    found = Page(page.read_text("utf-8").replace(get_plotlyjs(), ""))
    assert len(found.named("script")) == len(found.documents) + 2
    assert not found.named("img")
    assert f"{wild} half \\ud83d pair" in found.said
    for document in found.documents.values():
        assert "<" not in document
        assert "<img" not in str(json.loads(document)), "Plotly obeys tags in labels"


@settings(max_examples=8, deadline=None)
@given(some_measured())
def test_whatever_was_measured_gives_a_page_that_parses(found: BacktestResult) -> None:
    parsed = read(found)

    check_drawings(parsed)
    assert {tag for tag, _ in parsed.elements} <= {
        *("html", "head", "title", "style", "meta", "body", "main", "h1"),
        *("section", "h2", "p", "div", "table", "caption", "thead", "tbody", "tr", "th", "td"),
        *("figure", "figcaption", "script", "details", "summary", "dl", "dt", "dd", "ul", "li"),
        *("br", "code", "pre", "span"),
    }


def test_a_lost_fact_comes_with_the_line_that_shows_it() -> None:
    name = "it's a session"
    lost = (MissedFact(key="src/a.py", kind="path", call=7, position=12),)

    found = read(measured(cell(name, setup(), namespace="other", lost=lost)))

    (line,) = [words for words in found.words if words.startswith("cutbank --namespace")]
    assert shlex.split(line) == ["cutbank", "--namespace", "other", "recall", name, "#12"]


def test_a_backtest_of_nothing_has_a_page() -> None:
    assert "No cell failed." in read(BacktestResult(setups=(setup(),), cells=())).said


def test_the_same_measurements_give_the_same_bytes_however_long_they_took(tmp_path: Path) -> None:
    once = told_apart()
    slower = once.model_copy(
        update={"cells": tuple(one.model_copy(update={"seconds": 9.0}) for one in once.cells)}
    )

    first, again = write_report(once, tmp_path / "a"), write_report(slower, tmp_path / "b")

    assert [path.name for path in first] == ["report.html", "measured.json"]
    for one, other in zip(first, again, strict=True):
        assert one.read_bytes() == other.read_bytes()
    # The stored name of a field that has another one in Python.
    assert "summariser" in json.loads(first[1].read_text())["setups"][0]


def test_a_report_takes_the_place_of_an_earlier_one_whole_or_not_at_all(tmp_path: Path) -> None:
    write_report(measured(cell("earlier", setup())), tmp_path)
    paths = write_report(measured(cell("later", setup())), tmp_path)
    before = {path: path.read_bytes() for path in paths}
    assert "later" in paths[0].read_text("utf-8")
    assert "earlier" not in paths[0].read_text("utf-8")
    assert sorted(tmp_path.iterdir()) == sorted(paths)
    # Of two files the second cannot be written, as on a disk that is full by then.
    in_the_way = tmp_path / f".measured.json.{os.getpid()}.part"
    in_the_way.mkdir()

    with pytest.raises(ExportError, match="cannot be written"):
        write_report(measured(cell("latest", setup())), tmp_path)

    in_the_way.rmdir()
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_what_is_not_installed_is_said_in_one_line_and_nothing_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "plotly.offline", None)

    with pytest.raises(ExportError, match=r"pip install 'cutbank\[backtest\]'"):
        write_report(told_apart(), tmp_path / "report")

    assert not (tmp_path / "report").exists()
