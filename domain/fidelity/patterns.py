"""Defines how facts are spelled, as one alternation, so that no character counts twice."""

import re

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
      (?P<url>        (?<!\w) [A-Za-z][A-Za-z0-9+.-]*+://[^\s<>"'`()\[\]{{}}|\\]* )
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
