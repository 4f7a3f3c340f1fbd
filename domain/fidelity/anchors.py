"""Finds facts in a text: paths, names, numbers, errors and the like, and how they are spelled."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from enum import StrEnum
from typing import NamedTuple

_EXTENSIONS = """
    adoc asm astro avif awk bash bat bazel bib bmp c cc cfg cjs class clj cmake cmd conf cpp cs
    css csv cts cu cxx dart db deb diff dll docx ejs el elm env erl ex exe exs fish fs gem gif
    go gql gradle graphql groovy gz h hbs hcl hh hpp hs htm html ico ini ipynb jar java jl jpeg
    jpg js json json5 jsonc jsonl jsx kt kts less lisp lock log lua m4 markdown md mdx mjs mk ml
    mod mp3 mp4 mts nim nix parquet patch pdf pem php pickle pkl pl plist pm png po pom pptx
    proto ps1 psd1 pxd py pyc pyi pyx rb rs rst sass scala scm scss sh snap sol spec sql sqlite
    sqlite3 star sum svelte svg swift tar tcl tex tf tfvars tgz thrift toml tpl ts tsv tsx ttf
    txt vue wasm wav webm webp whl woff woff2 xlsx xml yaml yml zig zip zsh
"""
"""Extensions by which a name is recognized as a file."""

_UNITS = """
    ns us µs ms s sec secs seconds min mins minutes h hours days
    B kB KB MB GB TB KiB MiB GiB TiB bytes
    px em rem pt rows lines files tests tokens chars characters
"""
"""Units of numbers; singular units say too little."""

_NAME = r"[A-Za-z_$][\w$]*"
_PART_CHARACTER = r"[\w.@~+$%-]"
MAX_FACT_CHARS = 200


def _join_alternatives(words: str) -> str:
    return "|".join(sorted(words.split(), key=len, reverse=True))


ANCHOR_PATTERN = re.compile(
    rf"""
      (?P<url>        (?<!\w) [A-Za-z][A-Za-z0-9+.-]*+://[^\s<>"'`()\[\]{{}}|\\\u2026]* )
    | (?P<uuid>       (?<!\w) [0-9a-fA-F]{{8}}(?:-[0-9a-fA-F]{{4}}){{3}}-[0-9a-fA-F]{{12}} (?!\w) )
    | (?P<time>       (?<![\w.]) (?:
                          \d{{4}}-\d\d-\d\d
                              (?:T\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:?\d\d)?)?
                        | \d{{1,2}}:\d\d(?::\d\d(?:\.\d+)?)?
                      ) (?!\w) )
    | (?P<flag>       (?<![\w-]) --[A-Za-z][\w-]* )
    | (?P<path>       (?<![\w/.@~+$%-]) {_PART_CHARACTER}*+(?:/++{_PART_CHARACTER}++)+ )
    | (?P<file>       (?<![\w.]) \.?\w[\w.-]*
                      \.(?:{_join_alternatives(_EXTENSIONS)}) (?![\w(-]|\.\w) )
    | (?P<hash>       (?<!\w) (?=[a-fA-F]*\d)(?=\d*[a-fA-F]) [0-9a-fA-F]{{7,64}} (?!\w) )
    | (?P<code>       (?<!\w) [A-Z]{{1,4}}\d{{3,5}} (?!\w) )
    | (?P<number>     (?<![\w.]) (?:
                          \#\d+ (?!\w)
                        | v?\d+(?:\.\d+){{2,}}(?:[-+][0-9A-Za-z][\w.]*)? (?!\w)
                        | \d+(?:\.\d+)?[ \t]?(?:%|(?:{_join_alternatives(_UNITS)}) (?!\w))
                        | \d{{5,}} (?!\w|\.\w)
                      ) )
    | (?P<identifier> (?<![\w$]) {_NAME}(?:(?:\.|::|->){_NAME})* )
    """,
    re.VERBOSE,
)
"""At each place, the first alternative that matches wins; a match may turn out not to be a fact."""

UNIT_NUMBER_PATTERN = re.compile(rf"\d[ \t](?:%|(?:{_join_alternatives(_UNITS)})(?!\w))")
"""The only case in which a fact contains white space."""

DISTINCTIVE_PATTERN = re.compile(r"[/\d_]|--|\.\w|[a-z][A-Z]|[A-Z]{2}[a-z]")
"""What every word with a fact in it contains."""

SEPARATORS = "\"'`<)[]{}|\\"
"""Characters that no fact contains; facts end before them as before white space."""
SEPARATORS_OUTSIDE_URLS = SEPARATORS + ",;=!&*?"
"""The same for texts without a URL."""


MAX_LINE_CHARS = 4_000
"""Longer lines are read in pieces of this many characters."""

_MIN_PART_CHARS = 4
"""The shortest tail of a path that counts as a fact, in characters."""


class AnchorKind(StrEnum):
    URL = "url"
    HASH = "hash"
    FLAG = "flag"
    PATH = "path"
    ERROR = "error"
    NUMBER = "number"
    IDENTIFIER = "identifier"


HARD_KINDS = frozenset(
    {AnchorKind.PATH, AnchorKind.URL, AnchorKind.HASH, AnchorKind.ERROR, AnchorKind.NUMBER}
)
"""Kinds that can only be written down after reading them somewhere."""


class Anchor(NamedTuple):
    """A fact and its place in the text."""

    key: str
    """The fact without a session's roots, a diff's `a/`, and inner white space."""
    kind: AnchorKind
    start: int
    end: int


def find_anchors(text: str, roots: tuple[str, ...] = ()) -> Iterator[Anchor]:
    """Yield the facts of a text from left to right, without overlaps.

    `roots` are working directories, longest first, which are removed from paths.
    """
    for start, piece in split_pieces(text):
        for found in ANCHOR_PATTERN.finditer(piece):
            anchor = _READERS[found.lastgroup or ""](found, roots)
            if anchor is not None and len(anchor[0]) <= MAX_FACT_CHARS:
                yield Anchor(anchor[0], anchor[1], start + found.start(), start + anchor[2])


def list_carried_keys(anchor: Anchor) -> tuple[str, ...]:
    """Return the keys that an occurrence carries: its own, and those of its parts."""
    key, kind = anchor[0], anchor[1]
    if kind is AnchorKind.PATH:
        return (key, *_iter_path_tails(key))
    if kind in _NAMES and _NAME_JOINT.search(key):
        # A part may occur twice.
        return tuple(dict.fromkeys((key, *_iter_name_parts(key))))
    return (key,)


def sort_longest_first(roots: Iterable[str]) -> tuple[str, ...]:
    """Return working directories in the order in which paths are compared with them."""
    return tuple(sorted({root.rstrip("/") for root in roots} - {""}, key=len, reverse=True))


def split_pieces(text: str) -> Iterator[tuple[int, str]]:
    """Yield pieces of text that no fact spans, with their offsets."""
    if len(text) <= MAX_LINE_CHARS:
        yield 0, text
        return
    start = at = 0
    for line in text.split("\n"):
        end = at + len(line)
        if len(line) > MAX_LINE_CHARS:
            if start < at:
                yield start, text[start:at]
            for cut in range(at, end, MAX_LINE_CHARS):
                yield cut, text[cut : min(cut + MAX_LINE_CHARS, end)]
            start = end
        at = end + 1
    if start < len(text):
        yield start, text[start:]


# Each reader returns the key, the kind and the end of a match, or None if it is not a fact.

_Reading = tuple[str, AnchorKind, int] | None
_Match = re.Match[str]
_Roots = tuple[str, ...]


def _make_reader(kind: AnchorKind, marks: str = "") -> Callable[[_Match, _Roots], _Reading]:
    """Return a reader that takes a match as it is, without trailing `marks`."""

    def read(found: _Match, _: _Roots) -> _Reading:
        text = found[0].rstrip(marks) if marks else found[0]
        return text, kind, found.start() + len(text)

    return read


def _read_path(found: _Match, roots: _Roots) -> _Reading:
    path = found[0].rstrip(".-+%")
    if not _is_path(path):
        return None
    end = found.start() + len(path)
    key = _strip_root(path, roots).rstrip("/")
    return (key, AnchorKind.PATH, end) if key else None


def _read_number(found: _Match, _: _Roots) -> _Reading:
    return "".join(found[0].split()), AnchorKind.NUMBER, found.end()


def _read_identifier(found: _Match, _: _Roots) -> _Reading:
    name = _SELF_PREFIX.sub("", found[0])
    parts = _NAME_JOINT.split(name)
    if not any(map(_is_distinctive, parts)):
        return None
    is_error = parts[-1].endswith(_ERRORS)
    return name, AnchorKind.ERROR if is_error else AnchorKind.IDENTIFIER, found.end()


_READERS: Mapping[str, Callable[[_Match, _Roots], _Reading]] = {
    "url": _make_reader(AnchorKind.URL, ".,;:!?*"),
    "uuid": _make_reader(AnchorKind.HASH),
    "time": lambda _found, _roots: None,
    "flag": _make_reader(AnchorKind.FLAG, "-_"),
    "path": _read_path,
    "file": _make_reader(AnchorKind.PATH),
    "hash": _make_reader(AnchorKind.HASH),
    "code": _make_reader(AnchorKind.ERROR),
    "number": _read_number,
    "identifier": _read_identifier,
}

# Paths

_HAS_EXTENSION = re.compile(r"[^/.][^/]*\.[A-Za-z][A-Za-z0-9]{0,7}\Z")
_MARKED = re.compile(r"[\d_.-]")


def _is_path(path: str) -> bool:
    """Check that it is a path, and not two words separated by a slash."""
    parts = [part for part in path.split("/") if part.strip(".")]
    if not parts or all(part.isdigit() for part in parts):
        return False
    if path[0] in "/~." and len(parts) >= 2:
        return True
    return (
        len(parts) >= 3
        or _HAS_EXTENSION.search(parts[-1]) is not None
        or _MARKED.search(path) is not None
    )


def _strip_root(path: str, roots: _Roots) -> str:
    for root in roots:
        if path.startswith(root) and path[len(root) :][:1] in {"", "/"}:
            return path[len(root) + 1 :]
    while path.startswith("./"):
        path = path[2:].lstrip("/")
    if path.startswith(("a/", "b/")):
        return path[2:]
    return path


def _iter_path_tails(path: str) -> Iterator[str]:
    at = path.find("/")
    while at >= 0:
        tail = path[at + 1 :]
        if len(tail) < _MIN_PART_CHARS:
            return
        if tail[0] != "/":
            yield tail
        at = path.find("/", at + 1)


# Names

_NAMES = frozenset({AnchorKind.IDENTIFIER, AnchorKind.ERROR})
_SELF_PREFIX = re.compile(r"\A(?:(?:self|this)(?:\.|::|->))+")
_NAME_JOINT = re.compile(r"\.|::|->")
_ERRORS = ("Error", "Exception", "Warning", "Failure", "Panic")
_INNER = re.compile(r"[^_]_+[^_]|[a-z][A-Z]|[A-Z]{2}[a-z]")


def _is_distinctive(part: str) -> bool:
    """Check whether a part of a name is unlikely to occur by chance."""
    return len(part) >= 5 and _INNER.search(part) is not None


def _iter_name_parts(name: str) -> Iterator[str]:
    joints = list(_NAME_JOINT.finditer(name))
    if not joints:
        return
    starts = [0, *(joint.end() for joint in joints)]
    ends = [*(joint.start() for joint in joints), len(name)]
    telling = [_is_distinctive(name[a:b]) for a, b in zip(starts, ends, strict=True)]
    last = len(starts) - 1
    for index, start in enumerate(starts):
        if index and index < last and any(telling[index:]):
            yield name[start:]
        if telling[index]:
            yield name[start : ends[index]]
