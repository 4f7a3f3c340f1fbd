"""Defines which summarizers write summaries, and with which limits."""

import re
from importlib.metadata import entry_points
from typing import Literal, Self

from pydantic import field_validator, model_validator

from .section import (
    VALUE_PLACEHOLDER,
    Section,
    SettingPath,
    TextTuple,
    describe_unknown_name,
    make_contradiction,
    section_setting,
)

SUMMARIZER_NAMES = ("extractive", "llm", "command")
"""The built-in summarizers; users' own are entry points of the group below."""
ENTRY_POINT_GROUP = "cutbank.summarizers"

_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}")


class SummarySettings(Section):
    """Who writes the text that stands for what left, and how."""

    chain: TextTuple = section_setting(
        ("extractive",), "summarizers in the order in which they are tried, until one succeeds"
    )
    time_limit: float = section_setting(
        120.0,
        "how long one summarizer may take, retries and waits included",
        unit="seconds",
        least=0.1,
    )
    retries: int = section_setting(
        3, "more of them after a failure that may pass", unit="attempts", least=0, most=100
    )
    backoff: float = section_setting(
        1.0,
        "the wait before the first retry; twice as long each time, up to 30",
        unit="seconds",
        least=0,
        most=30,
    )
    model: str | None = section_setting(
        None, "writes the summaries of `llm`; none is a cheaper one than the agent's"
    )
    base_url: str | None = section_setting(
        None, "where the provider of `llm` listens; none is its usual address"
    )
    key_from: str | None = section_setting(
        None, "the variable that holds the key of `llm`; none is the provider's usual one"
    )
    source: Literal["previous", "originals"] = section_setting(
        "previous", "read the blocks behind an earlier summary from that summary, or from the log"
    )
    prompt: Literal["fresh", "iterative", "served-prefix", "policy"] = section_setting(
        "fresh",
        "rewrite, update the earlier one, continue the served request, or as the policy says",
    )
    streamed: bool = section_setting(
        True, "have the answers of `llm` come in pieces, so that one without an end is ended"
    )
    with_facts: bool = section_setting(True, "hand the facts that `extractive` finds to the model")
    command: TextTuple = section_setting(
        (), "the program of the summarizer `command`, and its arguments; no shell reads them"
    )
    instructions: str | None = section_setting(
        None, "what the model gets in addition to its prompt, for each summary"
    )

    @field_validator("chain")
    @classmethod
    def _check_summarizers(cls, chain: tuple[str, ...]) -> tuple[str, ...]:
        if not chain:
            raise ValueError("names no summarizer; `extractive` needs nothing")
        known = set(SUMMARIZER_NAMES)
        if not known.issuperset(chain):
            known |= {one.name for one in entry_points(group=ENTRY_POINT_GROUP)}
        found: list[tuple[SettingPath, str]] = []
        for index, name in enumerate(chain):
            if name not in known:
                wrong = describe_unknown_name(name, sorted(known), "summarizer")
                found.append(((index,), f"{VALUE_PLACEHOLDER}, which {wrong}"))
            elif name in chain[:index]:
                found.append(((index,), f"names {name} a second time: leave it out"))
            elif "extractive" in chain[:index]:
                wrong = "comes after extractive, which needs nothing: move it forward"
                found.append(((index,), wrong))
        if found:
            raise make_contradiction(*found)
        return chain

    @field_validator("key_from")
    @classmethod
    def _check_variable(cls, name: str | None) -> str | None:
        if name is not None and not _VARIABLE.fullmatch(name):
            # Do not repeat the value, which may be the key itself.
            raise ValueError("is not the name of a variable, such as MY_PROVIDER_KEY")
        return name

    @model_validator(mode="after")
    def _check_combination(self) -> Self:
        found: list[tuple[SettingPath, str]] = []
        if "command" in self.chain and not self.command:
            found.append((("chain",), "names command, and summary.command names no program"))
        if self.command and not self.command[0].strip():
            found.append((("command", 0), "is empty; it takes the name of a program"))
        if self.source == "originals" and self.prompt != "fresh":
            wrong = (
                f"is {self.prompt}, which builds on the earlier summary, and summary.source is "
                f"originals, which passes it by: change one of them"
            )
            found.append((("prompt",), wrong))
        if found:
            raise make_contradiction(*found)
        return self
