"""The line of every value in a TOML file is found, whatever stands around it."""

import tomllib
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cutbank.adapters.settings.listing import list_effective_settings
from cutbank.adapters.settings.load_settings import load_settings
from cutbank.adapters.settings.toml_file import find_lines
from cutbank.domain.errors import InvalidSettingError


def paths_in(value: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    if path:
        yield path
    if isinstance(value, dict | list):
        below = value.items() if isinstance(value, dict) else enumerate(value)
        for key, one in below:
            yield from paths_in(one, (*path, key))


LINES = '''\
title = "a # b"  # c = 3
"quoted \\"key\\"".'and dotted' . bare-1 = 1
inline = { a = 1, b.c = [ 2, { d = 3 } ], "e}" = "}" }
many = [
  1, # one ]
  [ 2,
    3 ],
  { x = """
[no]
y = 1""" },
  { z = [
      4 ] },
]
quoted = [ """a"""", "b", """"c""""", "d" ]
when = 1979-05-27 07:32:00.5Z
[table]
text = """
[[not.one]]
key = "value" \\""" """""
literal = \'\'\'
[nor.this]
\\\'\'\'
after = 4
[[list.of]]
a = 5
[list.of.below]
b = 6
[[list.of.below2]]
c = 7
[[list.of.below2]]
[[list.of]]
a = 8
'''


def test_lines_are_found_whatever_stands_around_them() -> None:
    lines = find_lines(LINES)

    assert set(lines) == set(paths_in(tomllib.loads(LINES)))
    text = LINES.split("\n")
    by_line = {path: text[line - 1].strip() for path, line in lines.items()}
    assert by_line['quoted "key"', "and dotted", "bare-1"].startswith('"quoted')
    assert by_line["inline", "b", "c", 1, "d"].startswith("inline")
    assert by_line["many", 0] == "1, # one ]"
    assert by_line["many", 1, 1] == "3 ],"
    assert by_line["many", 3, "z", 0] == "4 ] },"
    assert by_line["many", 2] == '{ x = """'
    assert by_line["table", "after"] == "after = 4"
    assert by_line["list", "of", 0, "below", "b"] == "b = 6"
    assert by_line["list", "of", 0, "below2", 0, "c"] == "c = 7"
    assert by_line["list", "of", 1, "a"] == "a = 8"


@given(st.text(alphabet="ab.=[]{}\"'#\n\\ ,1", max_size=60))
def test_lines_are_found_in_whatever_is_toml(text: str) -> None:
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return

    assert set(find_lines(text)) == set(paths_in(document))


ODD_VALUES = ["3", "-1.5", "nan", "true", "1979-05-27", '"x"', '""', "[]", '["x", 3]', "[[]]"]
ODD_VALUES += ["[{}]", "{}", "{x = 1}", '{x = {"" = [1]}}', '{on = ["failed"], command = "x"}']
NAMED = ["compaction", "summary.chain", "pins.kinds", "models", "hooks.commands", "hooks", "x"]
NAMED += ["compaction.settings", "tokens", "summary.time_limit", "context", "shadow.policies"]


@given(st.dictionaries(st.sampled_from(NAMED), st.sampled_from(ODD_VALUES), max_size=4))
def test_whatever_a_file_says_is_settings_or_a_named_mistake(
    tmp_path_factory: pytest.TempPathFactory, said: dict[str, str]
) -> None:
    file = tmp_path_factory.getbasetemp() / "any.toml"
    file.write_text("\n".join(f"{key} = {value}" for key, value in said.items()), encoding="utf-8")

    wrong: tuple[str, ...] = ()
    try:
        assert list(list_effective_settings(load_settings(file, {})))
    except InvalidSettingError as error:
        wrong = error.mistakes

    assert all(one.startswith(f"{file}:") for one in wrong)
