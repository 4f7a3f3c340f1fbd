"""Parses a model's reply into a summary: handles, sections, no surrounding text."""

import re
from dataclasses import dataclass

from ....domain.ranges import Ranges
from ....domain.summaries.extraction.clean_text import make_printable

_NUMBER = r"#?\d{1,15}(?:\s*[-\u2013\u2014]\s*#?\d{1,15})?"
_CITATION = re.compile(
    rf" ?[(\[](?=\s*#)\s*({_NUMBER}(?:(?:\s*(?:[,;&]|and)\s*|\s+){_NUMBER})*)\s*[)\]](?!\()",
    re.IGNORECASE,
)
_RUN = re.compile(r"#?(\d{1,15})(?:\s*[-\u2013\u2014]\s*#?(\d{1,15}))?")
_THOUGHTS = re.compile(r"<(think|thinking|analysis|scratchpad)>.*?</\1>", re.DOTALL | re.IGNORECASE)
_FRAME = re.compile(r"</?(?:summary|notes|answer)>", re.IGNORECASE)
_FENCED = re.compile(r"```(?:markdown|md)?\n(.*)\n```", re.DOTALL | re.IGNORECASE)
_LISTS = re.compile(r"<(read-files|modified-files)>.*?(?:</\1>|\Z)", re.DOTALL)
_HEADING = re.compile(
    r"#{1,2}\s+(?P<first>.*?)\s*#*|\*\*(?P<split>(?:Turn|Task) Context \([a-z ]+\)):?\*\*:?"
)
"""Also matches the separate line above a split turn's summary."""
_RULE = re.compile(r"\n-{3,}\Z")


@dataclass(frozen=True, slots=True)
class CitedText:
    text: str
    cites: Ranges

    @property
    def sections(self) -> dict[str, str]:
        """The text under each heading; text before the first is left out."""
        return split_sections(self.text)


def parse_reply(reply: str, covers: Ranges) -> CitedText:
    """Parse a model's reply: spell handles uniformly, and remove those of other blocks.

    Lists of files are removed too, since exact ones are added later.
    """
    text = strip_frame(reply)
    cited: list[tuple[int, int]] = []

    def respelt(found: re.Match[str]) -> str:
        named = Ranges(_parse_runs(found[1])) & covers
        cited.extend(named.runs)
        return f" ({str(named).replace(' ', ', ')})" if named else ""

    lines = (_CITATION.sub(respelt, line).rstrip() for line in text.split("\n"))
    return CitedText(_BLANK.sub("\n\n", "\n".join(lines)).strip(), Ranges(cited))


def strip_frame(reply: str) -> str:
    """Return a model's reply without thoughts, file lists and wrapping."""
    text = _LISTS.sub("", _THOUGHTS.sub("", make_printable(reply))).strip()
    if fenced := _FENCED.fullmatch(text):
        text = fenced[1]
    return _FRAME.sub("", text).strip()


_BLANK = re.compile(r"\n{3,}")


def _parse_runs(numbers: str) -> list[tuple[int, int]]:
    runs = [(int(a), int(b or a)) for a, b in _RUN.findall(numbers)]
    return [(first, last) for first, last in runs if 1 <= first <= last]


def split_sections(text: str) -> dict[str, str]:
    """Return the parts of a Markdown text by first or second level heading, without file lists."""
    sections: dict[str, list[str]] = {}
    under: list[str] | None = None
    for line in _FRAME.sub("", _LISTS.sub("", text)).split("\n"):
        if heading := _HEADING.fullmatch(line.strip()):
            named = heading["split"] or heading["first"].strip("*: ")
            under = sections.setdefault(named, [])
        elif under is not None:
            under.append(line)
    bodies = {
        heading: _RULE.sub("", "\n".join(lines).strip()).strip()
        for heading, lines in sections.items()
    }
    return {heading: body for heading, body in bodies.items() if heading and body}
