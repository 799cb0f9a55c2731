"""Owners of groups and hash slots, computed as PROTOCOL.md describes them and compared with its vectors."""

from __future__ import annotations

import hashlib
import math
import pathlib
import unittest
from typing import Iterator, List, NamedTuple, Tuple

_PROTOCOL = pathlib.Path(__file__).resolve().parents[2] / "PROTOCOL.md"
_MASK = (1 << 64) - 1


class Node(NamedTuple):
    name: str
    weight: float
    zone: str
    host: str


def _power_of_two(number: int) -> int:
    return 1 << (number.bit_length() - 1) if number else 0


def group_start(block: int, block_tokens: int) -> int:
    first = max(1, _power_of_two(128 // block_tokens))
    largest = max(first, _power_of_two(8192 // block_tokens))
    if block >= largest:
        return block // largest * largest
    start = 0
    following = first
    while following <= block:
        start, following = following, 4 * following
    return start


def _uniform(cluster: str, name: str, key: bytes) -> float:
    digest = hashlib.sha256(cluster.encode() + b"\0" + name.encode()).digest()
    high, low = int.from_bytes(key[:8], "big"), int.from_bytes(key[8:], "big")
    mixed = int.from_bytes(digest[:8], "big") ^ high ^ (low << 32 & _MASK | low >> 32)
    mixed = (mixed ^ mixed >> 30) * 0xBF58476D1CE4E5B9 & _MASK
    mixed = (mixed ^ mixed >> 27) * 0x94D049BB133111EB & _MASK
    mixed ^= mixed >> 31
    return ((mixed >> 12) + 0.5) * 2.0**-52


def order(cluster: str, nodes: List[Node], key: bytes) -> List[Node]:
    def rank(node: Node) -> Tuple[float, bytes]:
        return node.weight / math.log(_uniform(cluster, node.name, key)), node.name.encode()

    return sorted(nodes, key=rank)


def owners(cluster: str, nodes: List[Node], key: bytes, copies: int) -> List[Node]:
    rest = order(cluster, nodes, key)
    chosen: List[Node] = []
    while rest and len(chosen) < copies:
        zones = {node.zone for node in chosen}
        hosts = {node.host for node in chosen}
        choices = [node for node in rest if node.zone not in zones]
        choices = choices or [node for node in rest if node.host not in hosts] or rest
        chosen.append(choices[0])
        rest.remove(choices[0])
    return chosen


def slot(key: bytes) -> int:
    start = key.find(b"{")
    end = key.find(b"}", start + 1)
    if start >= 0 and end > start + 1:
        key = key[start + 1 : end]
    crc = 0
    for byte in key:
        crc ^= byte << 8
        for _ in range(8):
            crc = crc << 1 ^ (0x11021 if crc & 0x8000 else 0)
    return crc % 16384


def slot_owners(cluster: str, nodes: List[Node]) -> List[Node]:
    """Returns the owner of each run of 16 slots."""
    total = 0.0
    for node in sorted(nodes, key=lambda node: node.name.encode()):
        total += node.weight
    caps = {node.name: 1126.4 * node.weight / total for node in nodes}
    runs = {node.name: 0 for node in nodes}
    chosen = []
    for run in range(1024):
        key = run.to_bytes(16, "big")
        owner = next(node for node in order(cluster, nodes, key) if runs[node.name] < caps[node.name])
        runs[owner.name] += 1
        chosen.append(owner)
    return chosen


def _vectors() -> Iterator[Tuple[str, List[str]]]:
    """Yields the question and the answer of each line."""
    block = _PROTOCOL.read_text(encoding="utf-8").split("```placement\n")[1].split("```")[0]
    for line in block.splitlines():
        question, _, answer = line.partition(" =")
        yield question, answer.split()


@unittest.skipUnless(_PROTOCOL.exists(), "PROTOCOL.md is not beside the package")
class PlacementTest(unittest.TestCase):
    def test_vectors(self) -> None:
        cluster, nodes = "", []  # type: str, List[Node]
        slots: List[Node] = []
        count = 0
        for question, answer in _vectors():
            kind, *words = question.split(" ")
            if kind == "cluster":
                cluster, nodes, slots = "".join(answer), [], []
                continue
            if kind == "node":
                weight, zone, host = (answer + ["", ""])[:3]
                nodes.append(Node(words[0], float(weight), zone, host))
                continue
            count += 1
            with self.subTest(question):
                if kind == "groups":
                    starts = sorted({group_start(block, int(words[0])) for block in range(2049)})
                    self.assertEqual(answer, [str(start) for start in starts[: len(answer)]])
                elif kind == "order":
                    ranked = order(cluster, nodes, bytes.fromhex(words[0]))
                    self.assertEqual(answer, [node.name for node in ranked])
                elif kind == "owners":
                    kept = owners(cluster, nodes, bytes.fromhex(words[0]), int(words[1]))
                    self.assertEqual(answer, [node.name for node in kept])
                elif kind == "slot":
                    self.assertEqual(answer, [str(slot(words[0].encode()))])
                else:
                    slots = slots or slot_owners(cluster, nodes)
                    if kind == "slot-owner":
                        self.assertEqual(answer, [slots[int(words[0]) // 16].name])
                    else:
                        self.assertEqual("runs", kind)
                        counts = [sum(owner is node for owner in slots) for node in nodes]
                        self.assertEqual(answer, [str(runs) for runs in counts])
        self.assertGreater(count, 20)


if __name__ == "__main__":
    unittest.main()
