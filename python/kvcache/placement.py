"""Which server of a cluster has a block or a value, computed as PROTOCOL.md describes it."""

from __future__ import annotations

import binascii
import hashlib
import math
from collections.abc import Sequence
from typing import List, NamedTuple, Optional, Tuple

_MASK = (1 << 64) - 1
_FIRST_TOKENS = 128
_MOST_TOKENS = 8192
_RUNS = 1024
_RUN_SLOTS = 16
_MOST_RUNS = 1126.4
"""Of a server with all the weight: 1.1 times the runs."""

GROUPS = "fourfold groups"
"""Ends the layout of a namespace in which servers keep groups of blocks."""


class Node(NamedTuple):
    """A server that owns something."""

    name: str
    weight: float
    zone: str
    host: str


def _power_of_two(number: int) -> int:
    return 1 << (number.bit_length() - 1) if number else 0


def group_bounds(block: int, block_tokens: int) -> Tuple[int, int]:
    """Returns the first block of the group that a block belongs to, and the one behind its last."""
    first = max(1, _power_of_two(_FIRST_TOKENS // block_tokens))
    largest = max(first, _power_of_two(_MOST_TOKENS // block_tokens))
    if block >= largest:
        start = block // largest * largest
        return start, start + largest
    start, end = 0, first
    while end <= block:
        start, end = end, min(4 * end, largest)
    return start, end


def groups_layout(layout: str) -> str:
    """Returns the layout of the namespace that keeps the groups of one with this layout."""
    return f"{layout}, {GROUPS}" if layout else GROUPS


def slot(key: bytes) -> int:
    """Returns the slot of a value's key, as in Redis Cluster."""
    start = key.find(b"{")
    end = key.find(b"}", start + 1)
    if start >= 0 and end > start + 1:
        key = key[start + 1 : end]
    return binascii.crc_hqx(key, 0) % (_RUNS * _RUN_SLOTS)


class Placement:
    """The servers of a view that own blocks and values, and which of them has what. Servers are named by their index.

    Threads: any.
    """

    def __init__(self, cluster: str, nodes: Sequence[Node]) -> None:
        self.nodes = list(nodes)
        self._names = [node.name.encode() for node in nodes]
        seeds = (hashlib.sha256(cluster.encode() + b"\0" + name).digest()[:8] for name in self._names)
        self._seeds = [int.from_bytes(seed, "big") for seed in seeds]
        self._runs: Optional[List[int]] = None

    def _rank(self, node: int, high: int, low: int) -> Tuple[float, bytes]:
        mixed = self._seeds[node] ^ high ^ (low << 32 & _MASK | low >> 32)
        mixed = (mixed ^ mixed >> 30) * 0xBF58476D1CE4E5B9 & _MASK
        mixed = (mixed ^ mixed >> 27) * 0x94D049BB133111EB & _MASK
        mixed ^= mixed >> 31
        # The highest score, -weight / ln(...), comes first.
        return self.nodes[node].weight / math.log(((mixed >> 12) + 0.5) * 2.0**-52), self._names[node]

    def order(self, key: bytes) -> List[int]:
        """Returns the servers in the order for a key of 16 bytes; the first one owns what has this key."""
        high, low = int.from_bytes(key[:8], "big"), int.from_bytes(key[8:], "big")
        return sorted(range(len(self.nodes)), key=lambda node: self._rank(node, high, low))

    def slot_owner(self, number: int) -> int:
        """Returns the server of a slot; there has to be one."""
        if self._runs is None:
            self._runs = self._owners_of_runs()
        return self._runs[number // _RUN_SLOTS]

    def _owners_of_runs(self) -> List[int]:
        total = 0.0
        for node in sorted(range(len(self.nodes)), key=self._names.__getitem__):
            total += self.nodes[node].weight
        most = [_MOST_RUNS * node.weight / total for node in self.nodes]
        counts = [0] * len(self.nodes)
        owners = []
        for run in range(_RUNS):
            owner = next(node for node in self.order(run.to_bytes(16, "big")) if counts[node] < most[node])
            counts[owner] += 1
            owners.append(owner)
        return owners
