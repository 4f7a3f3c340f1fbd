"""Where cache points fall among the blocks of a view."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from vector_files import FOLDERS, lines_of

from cutbank.projections.rendering.anthropic_cached import find_cache_points


def test_two_points_stand_near_the_tail() -> None:
    rows: list[tuple[list[str | None], tuple[int, ...]]] = [
        ([], ()),
        ([None], (0,)),
        ([None, None], (0, 1)),
        ([None, None, None], (0, 2)),
        ([None] * 9, (6, 8)),
        ([None, "a", "a", None], (2, 3)),
        (["", "", "", ""], (1, 3)),
        (["a", "a", "a"], (2,)),
        (["a", "b", "a"], (0, 2)),
    ]
    for paths, points in rows:
        assert find_cache_points(paths) == points


@given(paths=st.lists(st.sampled_from([None, "", "a", "b"])))
def test_no_point_parts_what_shows_one_path(paths: list[str | None]) -> None:
    points = find_cache_points(paths)

    assert points[-1:] == ((len(paths) - 1,) if paths else ())
    assert len(points) <= 2
    for point in points[:-1]:
        assert not paths[point] or paths[point + 1] != paths[point]


@FOLDERS
def test_cache_points_of_the_vectors(folder: str) -> None:
    for vector in lines_of(folder, "kdcube"):
        expected: dict[str, Any] = vector["expected"]
        shown: list[str] = expected["render"]["rendered_ids"]
        path_of = {block["id"]: block["meta"].get("path") for block in vector["input"]}
        summary = expected["summary_block"] or {}
        paths = [path_of.get(one, summary.get("path")) for one in shown]

        points = find_cache_points(paths)

        assert [shown[at] for at in points] == expected["render"]["cache_point_ids"], vector[
            "vector"
        ]
