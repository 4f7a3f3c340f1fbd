"""What a payload takes on the disk."""

from contextlib import closing

from .figure import Figure, Found, Options, named
from .twins import Twins


def disk(options: Options) -> Found:
    """The closed database's bytes for each byte of the raw bodies."""
    for compress, most in ((False, 1.15), (True, 0.6)):
        folder = options.folder / f"disk-{compress}"
        with closing(Twins(folder, compress=compress)) as both:
            payload = both.fill(options.blocks)
        ours, raw = (
            (folder / f"{name}.db").stat().st_size / payload for name in ("cutbank", "raw")
        )
        what = named("disk per payload", compress)
        yield Figure(what, "bytes/byte", ours, raw, ours / raw, f"<= {most}", ours <= most)
