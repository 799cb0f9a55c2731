"""Owners of groups and hash slots, computed as PROTOCOL.md describes them and compared with its vectors."""

from __future__ import annotations

import pathlib
import unittest
from typing import Iterator, List, Tuple

from kvcache.placement import Node, Placement, group_bounds, slot

_PROTOCOL = pathlib.Path(__file__).resolve().parents[2] / "PROTOCOL.md"


def owners(placement: Placement, key: bytes, copies: int) -> List[Node]:
    """The servers of a group's copies, which this client does not read yet."""
    rest = [placement.nodes[node] for node in placement.order(key)]
    chosen: List[Node] = []
    while rest and len(chosen) < copies:
        zones = {node.zone for node in chosen}
        hosts = {node.host for node in chosen}
        choices = [node for node in rest if node.zone not in zones]
        choices = choices or [node for node in rest if node.host not in hosts] or rest
        chosen.append(choices[0])
        rest.remove(choices[0])
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
        placement = Placement("", [])
        count = 0
        for question, answer in _vectors():
            kind, *words = question.split(" ")
            if kind in ("cluster", "node"):
                if kind == "cluster":
                    cluster, nodes = "".join(answer), []
                else:
                    weight, zone, host = (answer + ["", ""])[:3]
                    nodes.append(Node(words[0], float(weight), zone, host))
                placement = Placement(cluster, nodes)
                continue
            count += 1
            with self.subTest(question):
                if kind == "groups":
                    bounds = sorted({group_bounds(block, int(words[0])) for block in range(2049)})
                    self.assertEqual(answer, [str(start) for start, _ in bounds[: len(answer)]])
                    self.assertEqual([start for start, _ in bounds[1:]], [end for _, end in bounds[:-1]])
                elif kind == "order":
                    ranked = placement.order(bytes.fromhex(words[0]))
                    self.assertEqual(answer, [nodes[node].name for node in ranked])
                elif kind == "owners":
                    kept = owners(placement, bytes.fromhex(words[0]), int(words[1]))
                    self.assertEqual(answer, [node.name for node in kept])
                elif kind == "slot":
                    self.assertEqual(answer, [str(slot(words[0].encode()))])
                elif kind == "slot-owner":
                    self.assertEqual(answer, [nodes[placement.slot_owner(int(words[0]))].name])
                else:
                    self.assertEqual("runs", kind)
                    slots = [placement.slot_owner(number) for number in range(0, 16_384, 16)]
                    self.assertEqual(answer, [str(slots.count(node)) for node in range(len(nodes))])
        self.assertGreater(count, 20)


if __name__ == "__main__":
    unittest.main()
