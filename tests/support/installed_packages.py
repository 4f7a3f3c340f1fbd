"""Lays packages with entry points where Python finds them, as an installer does."""

from pathlib import Path


def install_package(site: Path, name: str, entry_points: str, code: str | None = None) -> None:
    """Write `name` 1.2 into `site`, with a module of its name where it has code."""
    if code is not None:
        (site / f"{name}.py").write_text(code, encoding="utf-8")
    info = site / f"{name}-1.2.dist-info"
    info.mkdir()
    metadata = f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.2\n"
    (info / "METADATA").write_text(metadata, encoding="utf-8")
    (info / "entry_points.txt").write_text(entry_points, encoding="utf-8")
