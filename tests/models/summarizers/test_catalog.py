"""Summarizers are found by name, those of other packages as well."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from installed_packages import install_package
from summarizer_talk import items_of, material_of, steps

from cutbank import CommandSummarizer, ExtractiveSummarizer, InvalidSettingError, get_summarizer
from cutbank.adapters.models import llm_summarizer
from cutbank.adapters.models.llm_summarizer import LlmSummarizer
from cutbank.adapters.models.summarizer_catalog import list_summarizer_names
from cutbank.adapters.settings.compaction_settings import SummarySettings
from cutbank.domain.summaries.summarizer import Draft

PACKAGE = """
from cutbank.domain.errors import InvalidSettingError
from cutbank.domain.summaries.summarizer import Draft

class Shouts:
    name = "shouts"
    def __init__(self, mark="!"):
        self.mark = mark
    def summarize(self, material):
        return Draft(f"{len(material.removed_items)} BLOCKS{self.mark}")

def picky(**options):
    raise InvalidSettingError("picky: nothing pleases it")

def fails(**options):
    raise RuntimeError("out of order")

not_callable = 3
nothing = object
"""
ENTRY_POINTS = """
[cutbank.summarizers]
shouts = acme_notes:Shouts
picky = acme_notes:picky
fails = acme_notes:fails
missing = acme_notes:missing
unimportable = acme_gone:Anything
not-callable = acme_notes:not_callable
nothing = acme_notes:nothing
llm = acme_notes:Shouts
"""


@pytest.fixture(autouse=True)
def _package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    install_package(tmp_path, "acme_notes", ENTRY_POINTS, PACKAGE)
    monkeypatch.syspath_prepend(tmp_path)
    yield
    sys.modules.pop("acme_notes", None)


def test_the_built_in_ones_are_found() -> None:
    llm = get_summarizer("llm", model="anthropic:x", window=5_000)
    command = get_summarizer("command", argv="notes --brief 'all of it'")

    assert get_summarizer("extractive") == ExtractiveSummarizer()
    assert llm == LlmSummarizer("anthropic:x", window=5_000)
    assert command == CommandSummarizer(("notes", "--brief", "all of it"))


def test_a_package_brings_its_own() -> None:
    shouts = get_summarizer("shouts", mark="?")

    draft = shouts.summarize(material_of(items_of(*steps(1))))

    assert shouts.name == "shouts"
    assert draft == Draft("4 BLOCKS?")
    assert SummarySettings(chain=("shouts", "extractive")).chain[0] == "shouts"
    assert list_summarizer_names().count("llm") == 1


def test_what_cannot_be_had_says_why() -> None:
    rows: list[tuple[str, dict[str, object], str]] = [
        ("lmm", {}, "there are extractive, listing, llm, command, shouts, picky, fails"),
        ("llm", {}, "llm: model is missing"),
        ("command", {}, "command: argv is missing"),
        ("command", {"argv": "it's"}, 'argv cannot be "it\'s"; it takes a program'),
        ("llm", {"model": "a:b", "temprature": 1}, "llm has no option 'temprature'; it has model"),
        ("extractive", {"model": "x"}, "extractive has no option 'model'; it has none"),
        ("picky", {}, "picky: nothing pleases it"),
        ("fails", {}, "'fails' (acme_notes:fails) cannot be made: RuntimeError: out of order"),
        ("missing", {}, "cannot be made: AttributeError"),
        ("unimportable", {}, "cannot be made: ModuleNotFoundError"),
        ("not-callable", {}, "cannot be made: TypeError"),
        ("nothing", {}, "is not a summarizer: it needs a `name` and `summarize`"),
    ]
    for name, options, says in rows:
        with pytest.raises(InvalidSettingError) as caught:
            get_summarizer(name, **options)

        assert says in str(caught.value), name
        assert "\n" not in str(caught.value), name


def test_without_the_extra_llm_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(llm_summarizer, "find_spec", lambda name: None)

    with pytest.raises(InvalidSettingError, match=r"run: pip install 'cutbank\[llm\]'"):
        get_summarizer("llm", model="anthropic:x")
