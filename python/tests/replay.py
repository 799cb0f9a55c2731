"""Replays a trace through the client of a cluster of three servers: python3 -m tests.replay TRACE [REQUESTS]

Prints the hit ratio as ``./kvcache bench cluster`` counts it: a request reads its full blocks of 4 KiB, every byte of
which is compared, and puts those that are missing.
"""

from __future__ import annotations

import itertools
import json
import sys
import time
from typing import Any, Dict

from kvcache import BlockShape, ClusterClient

from tests.content import content
from tests.serving import Cluster, until

TOKENS = 512
SHAPE = BlockShape(layers=1, heads=1, dim=8, tokens=TOKENS, dtype="int8", planes=1)


def replay(path: str, requests: int, client: ClusterClient) -> Dict[str, Any]:
    blocks = client.blocks("replay", SHAPE)
    asked = hits = later_asked = later_hits = wrong = unstored = 0
    began = time.monotonic()
    with open(path, encoding="utf-8") as lines:
        for number, line in enumerate(itertools.islice(lines, requests)):
            request = json.loads(line)
            full = request["input_length"] // TOKENS
            chain = blocks.chain_of_keys([str(each).encode() for each in request["hash_ids"][:full]])
            expected = [content(chain.key(index), SHAPE.block_bytes) for index in range(full)]
            found = blocks.get(chain, timeout=0.2)
            wrong += sum(block != right for block, right in zip(found, expected))
            for index in range(len(found), full):
                if not blocks.put(chain, index, expected[index]).stored:
                    unstored += full - index
                    break
            able = (request["input_length"] - 1) // TOKENS
            asked += able
            hits += min(len(found), able)
            if number >= requests // 2:
                later_asked += able
                later_hits += min(len(found), able)
    seconds = time.monotonic() - began
    later = {"asked": later_asked, "hits": later_hits}
    ratio = round(hits / asked, 5)
    return {"asked": asked, "hits": hits, "ratio": ratio, "second half": later, "wrong": wrong, "unstored": unstored, "s": seconds}


def main() -> None:
    requests = int(sys.argv[2]) if len(sys.argv) > 2 else 6000
    cluster = Cluster(3, "64MiB")
    try:
        with ClusterClient(cluster.address) as client:
            until(lambda: len(client.view.serving) == 3, "three servers")
            print(json.dumps(replay(sys.argv[1], requests, client)))
    finally:
        cluster.close()


if __name__ == "__main__":
    main()
