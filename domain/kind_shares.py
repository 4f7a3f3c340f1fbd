"""Sums blocks and tokens by kind."""

from collections.abc import Iterable
from dataclasses import dataclass

from .blocks import Kind


@dataclass(frozen=True, slots=True)
class KindShare:
    kind: Kind
    blocks: int
    tokens: int


def compute_kind_shares(sizes: Iterable[tuple[Kind, int]]) -> tuple[KindShare, ...]:
    kinds: dict[Kind, list[int]] = {}
    for kind, tokens in sizes:
        kinds.setdefault(kind, []).append(tokens)
    shares = [KindShare(kind, len(tokens), sum(tokens)) for kind, tokens in kinds.items()]
    return tuple(sorted(shares, key=lambda share: -share.tokens))
