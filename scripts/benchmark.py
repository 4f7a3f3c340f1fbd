"""Measures cutbank beside hand-written SQL: the same blocks, op by op, equally durable."""

import argparse
import json
import sys
from dataclasses import asdict
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.appends import append, turn
from benchmarks.audits import audits
from benchmarks.backtests import backtests
from benchmarks.compacting import compacting
from benchmarks.counting import counting
from benchmarks.disk import disk
from benchmarks.figure import Figure, Options
from benchmarks.growth import growth
from benchmarks.idle import idle
from benchmarks.imports import imports
from benchmarks.log_verbs import log_verbs
from benchmarks.loop import loop
from benchmarks.machine import load, machine
from benchmarks.policies import policies
from benchmarks.postgres import postgres
from benchmarks.read_models import read_models
from benchmarks.replays import replays
from benchmarks.sessions import sessions
from benchmarks.tables import printed
from benchmarks.transcripts import transcripts
from benchmarks.views import view
from benchmarks.writers import writers
from rich.console import Console

PARTS = {
    part.__name__: part
    for part in (
        *(append, turn, view, log_verbs, growth, sessions, writers, imports, transcripts, disk),
        *(postgres, read_models, counting, compacting, policies, replays, loop, idle),
        *(audits, backtests),
    )
}
SMALL, USUAL, LARGE = "100,400", "100,1000,10000,100000", "100,1000,10000,100000,1000000"


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--smoke", action="store_true", help="every part, small, in seconds")
    parser.add_argument("--large", action="store_true", help=f"what grows, up to {LARGE[-7:]}")
    parser.add_argument("--sizes", help=f"blocks, or sessions, of what grows: {USUAL}")
    parser.add_argument("--only", action="append", choices=PARTS, help="may be repeated")
    parser.add_argument("--dir", type=Path, help="folder on the disk to measure")
    parser.add_argument("--json", type=Path, help="also write the figures to this file")
    parser.add_argument("--check", action="store_true", help="exit 1 where anything grows")
    return parser.parse_args()


def main() -> int:
    given = arguments()
    sizes = given.sizes or (SMALL if given.smoke else LARGE if given.large else USUAL)
    console = Console(width=None if sys.stdout.isatty() else 120)
    figures: list[Figure] = []
    said: list[str] = []
    with TemporaryDirectory(dir=given.dir, prefix="cutbank-benchmark-") as made:
        options = Options(
            folder=Path(made),
            sizes=sorted(int(size) for size in sizes.split(",")),
            ops=100 if given.smoke else 2_000,
            blocks=300 if given.smoke else 10_000,
            processes=3 if given.smoke else 15,
            smoke=given.smoke,
            large=given.large,
        )
        where = machine(options.folder)
        for name in given.only or PARTS:
            for found in PARTS[name](options):
                if isinstance(found, Figure):
                    figures.append(found)
                else:
                    said.append(found)
                    console.print(found)
        where["load after"] = load()
    with_what = ", ".join(f"{name} {value}" for name, value in where.items())
    console.print(printed(figures), with_what)
    if given.json:
        report = {"where": where, "said": said, "figures": [asdict(one) for one in figures]}
        given.json.write_text(json.dumps(report, indent=1) + "\n")
    grown = any(figure.unit == "exponent" and not figure.met for figure in figures)
    return int(given.check and grown)


if __name__ == "__main__":
    sys.exit(main())
