"""The client of a cluster against three real servers, which are killed, stopped, drained and joined."""

from __future__ import annotations

import random
import signal
import threading
import time
import unittest
from typing import List, Optional
from unittest import mock

import kvcache
from kvcache import BlockShape, Chain, Client, ClusterClient, ConnectionLost, KvCacheError, Result
from kvcache.memory import address_of

from tests import test_connectors
from tests.content import content
from tests.serving import Cluster, ServedTest, until
from tests.test_client import check_sent, pool

SHAPE = BlockShape(layers=1, heads=1, dim=64, tokens=16)


def serving(client: ClusterClient) -> int:
    return len(client.view.serving)


class ClusterTest(unittest.TestCase):
    cluster: Cluster

    @classmethod
    def setUpClass(cls) -> None:
        cls.cluster = Cluster()

    @classmethod
    def tearDownClass(cls) -> None:
        cls.cluster.close()

    def setUp(self) -> None:
        self.client = self.connect()
        until(lambda: serving(self.client) == 3 and all(each.connected for each in self.client._route.serving), "three")
        self.values = self.client.namespace("model", layout=self.id())
        self.blocks = self.client.blocks("model", SHAPE, layout=self.id())

    def connect(self) -> ClusterClient:
        client = kvcache.connect(self.cluster.address)
        assert isinstance(client, ClusterClient)
        self.addCleanup(client.close)
        return client

    def block(self, chain: Chain, index: int) -> bytes:
        return content(chain.key(index), SHAPE.block_bytes)

    def fill(self, chain: Chain) -> None:
        for index in range(len(chain)):
            self.assertTrue(self.blocks.put(chain, index, self.block(chain, index)).stored, index)

    def check(self, chain: Chain, found: List[bytearray], begin: int = 0) -> None:
        for index, block in enumerate(found, begin):
            self.assertEqual(block, self.block(chain, index))

    def test_values_come_back_from_the_servers_of_their_slots(self) -> None:
        keys = [b"key %d" % number for number in range(60)]
        for key in keys:
            self.assertEqual(self.values.put(key, content(key, 5000)), Result.COPIED)
        for key in keys:
            self.assertEqual(self.values.get(key), content(key, 5000))
            self.assertTrue(self.values.contains(key) and self.values.contains_now(key))
        target = bytearray(5000)
        self.assertTrue(self.values.get_into(keys[0], memoryview(target)))
        self.assertEqual(target, content(keys[0], 5000))
        with self.values.view(keys[1]) as pieces:
            self.assertEqual(b"".join(pieces or ()), content(keys[1], 5000))
        shares = []
        for node in self.cluster.nodes:
            with Client(node.address) as alone:
                shares.append(len(alone.namespace("model", layout=self.id()).listing()))
        self.assertEqual(sum(shares), len(keys))
        self.assertTrue(all(shares), shares)
        self.assertEqual(self.values.usage(), (60, sum(5000 + len(key) for key in keys)))
        self.assertEqual(len(self.values.listing()), 60)
        self.assertEqual(self.values.match([*keys[:40], b"absent", *keys[40:]]), 40)
        self.assertEqual(self.values.match([]), 0)
        answers: List[Optional[int]] = []
        self.values.submit_match([*keys[:17], b"absent", *keys], answers.append)
        until(lambda: (self.client.poll(), answers)[1], "the answer")
        self.assertEqual(answers, [17])
        self.values.pin(keys, 10)
        self.assertTrue(self.values.delete(keys[0]))
        self.assertFalse(self.values.delete(keys[0]))
        self.assertEqual(self.values.delete_all(keys[:11]), 10)
        self.assertEqual(self.values.drop(), 49)
        self.assertEqual(self.values.usage(), (0, 0))

    def test_blocks_of_a_chain_lie_in_groups_at_all_servers(self) -> None:
        chain = self.blocks.chain(range(1, 16 * 600 + 6))
        other = self.connect().blocks("model", SHAPE, layout=self.id())
        self.assertEqual(self.blocks.match(chain).blocks, 0)
        self.fill(chain)
        self.assertEqual(self.blocks.match(chain).blocks, 600)
        again = other.chain(range(1, 16 * 600 + 6))
        self.assertEqual(other.match(again).blocks, 600)
        self.check(again, other.get(again))
        self.check(again, other.get(again, 5, 521), 5)
        self.assertEqual(len(other.get(again, 5, 521)), 516)
        ranges = other.get_range(again, 64, 128, 3, 590)
        self.assertEqual(ranges, [self.block(again, index)[64:192] for index in range(3, 590)])
        with other.view(again, 100, 300) as shown:
            self.assertEqual([bytes(each) for each in shown], [self.block(again, index) for index in range(100, 300)])
        parts = self.blocks._parts(chain, 0, 600)
        self.assertEqual([part.begin for part in parts], [0, 8, 32, 128, 512])
        self.assertGreater(len({part.blocks._client for part in parts}), 1)
        self.assertEqual(other.drop(again, 40), 560)
        self.assertEqual(self.blocks.match(chain).blocks, 40)
        grown = again.copy()
        grown.extend(range(9000, 9000 + 16 * 3))
        self.assertEqual(other.match(grown).blocks, 40)
        self.assertEqual(self.blocks.namespace.drop(), 40)
        self.assertEqual(other.match(again).blocks, 0)

    def test_the_java_client_finds_what_this_one_puts(self) -> None:
        """By the placement's vectors; and the group's key is that of the same block at its server."""
        chain = self.blocks.chain(range(1, 16 * 40 + 1))
        self.fill(chain)
        for part in self.blocks._parts(chain, 0, len(chain)):
            with Client(f"{part.blocks._client.server}") as alone:
                groups = alone.blocks("model", SHAPE, layout=f"{self.id()}, fourfold groups")
                mixed = bytes(a ^ b for a, b in zip(chain.key(part.first), groups.namespace.digest))
                self.assertEqual(part.chain.key(0), mixed)
                self.assertEqual(groups.match(part.chain).blocks, part.count)

    def test_an_engines_keys_are_a_chain(self) -> None:
        hashed = self.blocks.chain(range(16 * 10))
        self.assertEqual(self.blocks.match(hashed).blocks, 0)
        hashed.set_hashes([b"hash %03d" % number for number in range(10)])
        (first, second) = self.blocks._parts(hashed, 0, 10)
        self.assertEqual(first.chain.keys_and_hashes(0, 1)[16:], b"hash 000")
        self.assertEqual(second.chain.keys_and_hashes(1, 2)[16:], b"hash 009")
        self.assertEqual(hashed.copy().keys_and_hashes(0, 10), hashed.keys_and_hashes(0, 10))
        chain = self.blocks.chain_of_keys([b"engine %d" % number for number in range(50)])
        self.fill(chain)
        self.assertEqual(self.blocks.match(chain).blocks, 50)
        self.check(chain, self.blocks.get(chain))

    def test_blocks_are_put_without_waiting(self) -> None:
        chain = self.blocks.chain(range(1, 16 * 200 + 1))
        results: List[Optional[Result]] = []
        for index in range(len(chain)):
            self.assertTrue(self.blocks.submit_put(chain, index, self.block(chain, index), results.append, 1))
        until(lambda: (self.client.poll(), len(results) == 200)[1], "all puts")
        self.assertEqual(set(results), {Result.COPIED})
        self.check(chain, self.blocks.get(chain))

    def test_pages_go_through_shared_memory_or_are_sent(self) -> None:
        memory, file = pool(64 << 12)
        self.addCleanup(file.close)
        mover = kvcache.open_mover(self.client, self.values)
        self.addCleanup(mover.close)
        self.assertTrue(mover.add(address_of(memory), memory.nbytes))
        self.assertTrue(mover.maps)
        begin = address_of(memory)
        pages = [(b"page %d" % number, [(begin + (number << 12), 4096)]) for number in range(64)]
        for number, (key, _) in enumerate(pages):
            memory[number << 12 : (number + 1) << 12] = content(key, 4096)
        began = time.monotonic()
        self.assertEqual(mover.run(True, pages, 10), [Result.COPIED] * 64)
        self.assertLess(time.monotonic() - began, 3, "replies are heard as they come")
        before = bytes(memory)
        memory[:] = bytes(memory.nbytes)
        results = mover.run(False, [*pages[:10], (b"absent", [(begin, 4096)]), *pages[10:]], 10)
        self.assertEqual(results, [*[Result.COPIED] * 10, Result.ABSENT, *[Result.COPIED] * 54])
        self.assertEqual(bytes(memory), before)
        with self.assertRaises(ValueError):
            mover.submit(True, [(b"k", [(begin, 0)])], lambda results, error: None)
        with mock.patch("kvcache.client.try_open", return_value=None), ClusterClient(self.cluster.address) as sent:
            self.assertFalse(sent.shares_memory)
            check_sent(self, sent, sent.namespace("model", layout=f"{self.id()} sent"))

    def test_what_cannot_be_is_named(self) -> None:
        for addresses, words in ((",", "one server or more"), ([], "one server or more"), ("a:b,c", "allowed: host")):
            with self.subTest(addresses), self.assertRaisesRegex(ValueError, words):
                ClusterClient(addresses)
        with self.assertRaisesRegex(TypeError, "allowed: a str, or a list"):
            ClusterClient([1])  # type: ignore[list-item]
        with self.assertRaisesRegex(TypeError, "one that these blocks made"):
            self.blocks.match(Chain(self.blocks.namespace.digest, 16))
        with self.assertRaisesRegex(KvCacheError, "no regions"):
            self.values.submit_store(None, [])  # type: ignore[arg-type]
        with self.assertRaisesRegex(ConnectionLost, "127.0.0.1:1"):
            ClusterClient(["127.0.0.1:1"])
        client = self.connect()
        values = client.namespace("model")
        client.close()
        with self.assertRaisesRegex(ConnectionLost, "closed"):
            values.get(b"k")
        self.assertRegex(repr(client), "closed")
        self.assertRegex(repr(self.client), "3 of 3 servers connected")


class SingleServerTest(ServedTest):
    def test_a_server_in_no_cluster_says_so(self) -> None:
        with self.assertRaisesRegex(KvCacheError, "is in no cluster"):
            kvcache.connect([self.server.address])
        with kvcache.connect(self.server.address) as client:
            self.assertIsInstance(client, Client)


class ChangingClusterTest(unittest.TestCase):
    """Servers come and go while threads put and read: no call fails, no byte is wrong."""

    def test_kills_stops_joins_and_drains(self) -> None:
        cluster = Cluster()
        self.addCleanup(cluster.close)
        client = ClusterClient(cluster.address, timeout=3)
        self.addCleanup(client.close)
        client.watch()
        until(lambda: serving(client) == 3, "three servers")
        values = client.namespace("model")
        blocks = client.blocks("model", SHAPE)
        ended = threading.Event()
        faults: List[str] = []
        counts = {"found": 0, "calls": 0}

        def work(seed: int) -> None:
            random_of = random.Random(seed)
            while not ended.is_set():
                number = random_of.randrange(40)
                try:
                    key = b"value %d" % number
                    values.put(key, content(key, 3000))
                    value = values.get(key)
                    if value is not None and value != content(key, 3000):
                        faults.append(f"{key!r} has other bytes")
                    chain = blocks.chain(range(1000 * number, 1000 * number + 16 * 90))
                    have = blocks.match(chain).blocks
                    for index in range(have, len(chain)):
                        if not blocks.put(chain, index, content(chain.key(index), SHAPE.block_bytes)).stored:
                            break
                    found = blocks.get(chain)
                    if any(block != content(chain.key(at), SHAPE.block_bytes) for at, block in enumerate(found)):
                        faults.append(f"chain {number} has other bytes")
                    counts["found"] += len(found)
                    counts["calls"] += 1
                except Exception as failed:
                    faults.append(f"{type(failed).__name__}: {failed}")
                    time.sleep(0.1)

        threads = [threading.Thread(target=work, args=(seed,)) for seed in range(2)]
        for each in threads:
            each.start()
        try:
            time.sleep(1)
            cluster.nodes[0].kill()  # the one whose view is followed, too
            until(lambda: serving(client) == 2, "two servers", 60)
            cluster.nodes[0].start()
            until(lambda: serving(client) == 3, "three servers again", 90)
            cluster.nodes[1].signal(signal.SIGSTOP)
            until(lambda: serving(client) == 2, "two servers while one stands still", 90)
            cluster.nodes[1].signal(signal.SIGCONT)
            until(lambda: serving(client) == 3, "three servers after it goes on", 90)
            cluster.join()
            until(lambda: serving(client) == 4, "four servers", 90)
            cluster.nodes[2].signal(signal.SIGTERM)  # which drains it
            until(lambda: serving(client) == 3, "three servers, one drained", 90)
            before = counts["calls"]
            until(lambda: counts["calls"] > before + 20, "calls after all of it")
        finally:
            ended.set()
            for each in threads:
                each.join()
        self.assertEqual(faults, [])
        self.assertGreater(counts["found"], 1000)
        addresses = {node.address for node in cluster.nodes if node is not cluster.nodes[2]}
        self.assertEqual({each.address for each in client.view.serving}, addresses)
        for node in cluster.nodes:
            node.kill()
        begin = time.monotonic()
        with self.assertRaises(ConnectionLost):
            until(lambda: values.get(b"value 1") and False, "the loss of all", 60)
        self.assertLess(time.monotonic() - begin, 30)
        self.assertFalse(values.contains_now(b"value 1"))


    def test_a_call_to_a_server_that_stands_still_ends_when_the_view_drops_it(self) -> None:
        cluster = Cluster()
        self.addCleanup(cluster.close)
        client = ClusterClient(cluster.address, timeout=300)
        self.addCleanup(client.close)
        until(lambda: serving(client) == 3 and all(each.connected for each in client._route.serving), "three")
        values = client.namespace("model")
        stopped = cluster.nodes[1]
        owned = (b"key %d" % number for number in range(1000))
        key = next(each for each in owned if getattr(client._route.of_value(each), "server") == stopped.address)
        found: List[Optional[bytearray]] = []
        stopped.signal(signal.SIGSTOP)
        try:
            call = threading.Thread(target=lambda: found.append(values.get(key)), daemon=True)
            # Asking the dropped server for its own view would end the call as well, by the answer that does not come.
            with mock.patch.object(client, "_larger", lambda view: view):
                call.start()
                until(lambda: found, "the end of the call", 60)
        finally:
            stopped.signal(signal.SIGCONT)
        self.assertEqual(found, [None])
        self.assertEqual(serving(client), 2)


class ConnectedTest:
    """Has tests of a connector run with a cluster in place of their server."""

    server: Cluster

    @classmethod
    def setUpClass(cls) -> None:
        cls.server = Cluster()

    @classmethod
    def tearDownClass(cls) -> None:
        cls.server.close()


class VllmTest(ConnectedTest, test_connectors.VllmTest):
    test_a_server_that_is_gone_costs_hits_only = None
    test_an_engine_that_is_killed_gives_its_memory_back = None


class SglangTest(ConnectedTest, test_connectors.SglangTest):
    pass


class LmcacheTest(ConnectedTest, test_connectors.LmcacheTest):
    pass


if __name__ == "__main__":
    unittest.main()
