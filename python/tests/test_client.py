"""The client against real servers."""

from __future__ import annotations

import array
import ctypes
import json
import mmap
import os
import pathlib
import random
import re
import shutil
import signal
import socket
import ssl
import subprocess
import tempfile
import threading
import time
import unittest
import urllib.request
from typing import List, Optional
from unittest import mock

import kvcache
from kvcache import Blocks, BlockShape, Chain, Client, ConnectionLost, KvCacheError, Rejected, Result, Status, open_mover, wire
from kvcache.blocks import namespace_digest
from kvcache.connection import Connection, Reply
from kvcache.memory import address_of
from kvcache.mover import Mover
from kvcache.shared import Stage

from tests.content import content
from tests.serving import ServedTest, Server, free_port, until


def pool(size: int):
    """Shared memory as an engine has it, in a file of /dev/shm; and the file, which the caller removes."""
    file = tempfile.NamedTemporaryFile(dir="/dev/shm", prefix="kvcache-test-", suffix=".pool")
    file.truncate(size)
    return memoryview(mmap.mmap(file.fileno(), size)), file


def keys_of(chain: Chain) -> List[str]:
    return [chain.key(index).hex() for index in range(len(chain))]


def check_sent(test: unittest.TestCase, client: Client, values: kvcache.Namespace) -> None:
    """Moves values in one piece and in three through private memory, more than one thread and window take at a time."""
    size, count = 700_001, 40
    mine = memoryview(bytearray(content(b"sent", size * count)))
    got = memoryview(bytearray(size * count))

    def pages(memory: memoryview) -> list:
        begin = address_of(memory)
        found = []
        for number in range(count):
            at = begin + number * size
            pieces = [(at, size)] if number % 2 else [(at, 5), (at + 5, size - 12), (at + size - 7, 7)]
            found.append((b"sent %d" % number, pieces))
        return found

    mover = open_mover(client, values)
    test.assertEqual(mover.run(True, pages(mine), 20), [Result.COPIED] * count)
    absent = (b"absent", [(address_of(got), 1)])
    other = (b"sent 1", [(address_of(got), size - 1)])
    results = mover.run(False, [absent, *pages(got), other], 20)
    test.assertEqual(results, [Result.ABSENT, *[Result.COPIED] * count, Result.OTHER_SIZE])
    test.assertEqual(got, mine)
    mover.close()


class ClientTest(ServedTest):
    host_bytes = "128MiB"

    def setUp(self) -> None:
        self.client = Client(self.server.address)
        self.addCleanup(self.client.close)
        self.values = self.client.namespace("model", layout=self.id())

    def test_values_come_back_as_they_were_put(self) -> None:
        for size in (1, 100, 65_535, 65_536, 1_000_000, 3 << 20):
            key = b"key %d" % size
            self.assertEqual(self.values.put(key, content(key, size)), Result.COPIED)
            self.assertEqual(self.values.get(key), content(key, size))
            target = bytearray(size)
            self.assertTrue(self.values.get_into(key, memoryview(target)))
            self.assertEqual(target, content(key, size))
            self.assertFalse(self.values.get_into(key, memoryview(bytearray(size + 1))))
            with self.values.view(key) as pieces:
                self.assertEqual(b"".join(pieces), content(key, size))
            self.assertTrue(self.values.contains(key))
            self.assertTrue(self.values.delete(key))
            self.assertFalse(self.values.contains(key))
            self.assertIsNone(self.values.get(key))
            self.assertFalse(self.values.delete(key))

    def test_operators_see_the_program_and_how_long_its_requests_take(self) -> None:
        with Client(self.server.address, program="engine 7") as client:
            values = client.namespace("seen", layout=self.id())
            values.put(b"k", b"v")
            url = f"http://127.0.0.1:{self.server.port}"
            with urllib.request.urlopen(f"{url}/v1/prefixes", timeout=10) as reply:
                found = [each["clients"] for each in json.load(reply)["namespaces"] if each["name"] == "seen"]
            self.assertEqual(found, [[f"engine 7, kvcache {kvcache.__version__}"]])
            with urllib.request.urlopen(f"{url}/v1/stats", timeout=10) as reply:
                self.assertGreater(json.load(reply)["latency"]["transport put_object"]["count"], 0)
        for address in ("redis://127.0.0.1:7420", "7420", "127.0.0.1:7420 127.0.0.1:7430", "a;b"):
            with self.subTest(address), self.assertRaisesRegex(ValueError, "allowed: host or host:port without a scheme"):
                Client(address)
        with self.assertRaisesRegex(KvCacheError, "the server has no secret; leave it out"):
            Client(self.server.address, secret=b"sixteen bytes of it")
        with self.assertRaisesRegex(ValueError, "program has 201 bytes"):
            Client(self.server.address, program="p" * 201)

    def test_namespaces_are_apart(self) -> None:
        other = self.client.namespace("model", layout="another")
        self.values.put(b"k", b"mine")
        self.assertIsNone(other.get(b"k"))
        self.assertIs(self.client.namespace("model", layout="another"), other)

    def test_values_of_private_memory_are_sent(self) -> None:
        check_sent(self, self.client, self.values)

    def test_values_are_listed_counted_and_deleted_by_digest(self) -> None:
        values = self.client.namespace("listed", layout=self.id())
        self.assertEqual((values.listing(), values.usage()), ({}, (0, 0)))
        keys = [b"%d" % number for number in range(20)]
        for key in keys:
            values.put(key, b"v" * 100)
        expected = {values.key_digest(key)[:16]: 100 + len(key) for key in keys}
        with mock.patch("kvcache.client._MOST_LISTED", 7):
            self.assertEqual(values.listing(), expected)
        self.assertEqual(values.usage(), (20, sum(expected.values())))
        self.assertEqual(values.delete_all([*keys[:3], b"absent"]), 3)
        self.assertEqual(self.values.delete_digests(list(expected)), 0)
        self.assertEqual(len(values.listing()), 17)

    def test_a_prefix_of_flat_keys_is_counted(self) -> None:
        keys = [b"%d" % number for number in range(9000)]
        for key in keys[:5] + keys[6:9]:
            self.values.put(key, b"v")
        self.assertEqual(self.values.match(keys), 5)
        self.assertEqual(self.values.match(keys[6:], pin_seconds=60), 3)
        self.assertEqual(self.values.match([]), 0)

    def test_look_ups_in_shared_memory_agree_with_the_server(self) -> None:
        self.assertTrue(self.client.shares_memory)
        keys = [b"look %d" % number for number in range(300)]
        for key in keys[::3]:
            self.values.put(key, b"v")
        for number, key in enumerate(keys):
            self.assertEqual(self.values.contains_now(key), number % 3 == 0)

    def test_region_copies_are_right(self) -> None:
        view, file = pool(8 << 20)
        with file:
            region, base = self.client.region_of(view[4096:])
            self.assertEqual((region.path, base), (file.name, 4096))
            for number, size in enumerate((1, 4095, 70_000, 1 << 20)):
                key = b"region %d" % size
                view[:size] = content(key, size)
                first, second = size // 3, size - size // 3
                spans = [(0, first), (first, second)] if first else [(0, size)]
                self.assertEqual(self.values.store(region, [(key, spans)]), [Result.COPIED])
                self.assertEqual(self.values.store(region, [(key, spans)]), [Result.PRESENT])
                at = 4 << 20
                missing = b"missing %d" % number
                results = self.values.load(region, [(key, [(at, size)]), (missing, [(0, 1)])])
                self.assertEqual(results, [Result.COPIED, Result.ABSENT])
                self.assertEqual(view[at : at + size], content(key, size))
                self.assertEqual(self.values.load(region, [(key, [(0, size + 1)])]), [Result.OTHER_SIZE])
                self.assertEqual(self.values.get(key), content(key, size))

    def test_a_run_of_several_messages_ends_after_all_of_them(self) -> None:
        """Also where one fails: the pages are the server's until each is done."""
        memory, file = pool(3 << 12)
        self.addCleanup(file.close)
        mover = open_mover(self.client, self.values)
        self.addCleanup(mover.close)
        self.assertTrue(mover.add(address_of(memory), memory.nbytes))
        pages = [(b"run %d" % number, [(address_of(memory) + (number << 12), 4096)]) for number in range(3)]
        wait, waited = self.client.wait, []

        def fail_first(job: kvcache.Job) -> List[Result]:
            waited.append(wait(job))
            if len(waited) == 1:
                raise KvCacheError("the first fails")
            return waited[-1]

        with mock.patch("kvcache.wire.MAX_KEYS", 1):
            self.assertEqual(mover.run(True, pages, 10), [Result.COPIED] * 3)
            with mock.patch.object(self.client, "wait", fail_first), self.assertRaisesRegex(KvCacheError, "the first"):
                mover.run(True, pages, 10)
        self.assertEqual(waited, [[Result.PRESENT]] * 3)

    def test_a_memfd_is_a_region(self) -> None:
        descriptor = os.memfd_create("kvcache-test")
        os.ftruncate(descriptor, 1 << 20)
        view = memoryview(mmap.mmap(descriptor, 1 << 20))
        region, base = self.client.region_of(view)
        self.assertIsNone(region.error)
        self.assertEqual((region.size, base), (1 << 20, 0))
        view[:100] = content(b"memfd", 100)
        self.assertEqual(self.values.store(region, [(b"memfd", [(0, 100)])]), [Result.COPIED])
        self.assertEqual(self.values.get(b"memfd"), content(b"memfd", 100))
        os.close(descriptor)

    def test_what_is_no_region_says_why(self) -> None:
        with self.assertRaisesRegex(KvCacheError, "no shared mapping"):
            self.client.region_of(memoryview(bytearray(100)))
        for path, words in (
            ("/dev/zero", "is not memory"),
            ("/dev/shm/none", "does not exist"),
            ("relative", "allowed: an absolute path"),
        ):
            region = self.client.region(path)
            self.assertRegex(str(region.error), words)
            job = self.values.submit_load(region, [(b"k", [(0, 1)])])
            self.assertTrue(job.done)
            self.assertIs(job.error, region.error)
            region.close()

    def test_whatever_fails_the_session_comes_back(self) -> None:
        connect = self.client._connect
        failures = [ValueError("no descriptor"), RuntimeError("anything")]

        def failing() -> Connection:
            if failures:
                raise failures.pop()
            return connect()

        with mock.patch.object(self.client, "_connect", failing):
            self.client._connection.fail("for this test")
            until(lambda: self.client.connected, "a session")
        self.assertEqual([], failures)

    def test_rows_out_of_range_are_rejected_and_the_session_goes_on(self) -> None:
        view, file = pool(1 << 20)
        with file:
            region, _ = self.client.region_of(view)
            with self.assertRaisesRegex(
                Rejected, "INVALID: object 0 has 2 bytes from 1048575 on; allowed: up to 1048576"
            ):
                self.values.store(region, [(b"k", [((1 << 20) - 1, 2)])])
            os.truncate(file.name, 4096)
            with self.assertRaisesRegex(Rejected, "GONE: .*cut short"):
                self.values.store(region, [(b"k", [(0, 1 << 20)])])
            os.truncate(file.name, 1 << 20)
        self.assertFalse(self.values.contains(b"k"))
        self.values.put(b"k", b"v")
        self.assertEqual(self.values.get(b"k"), b"v")

    def test_a_dropped_region_is_not_used_any_more(self) -> None:
        view, file = pool(4096)
        with file:
            region, _ = self.client.region_of(view)
            region.close()
            with self.assertRaisesRegex(Rejected, "GONE: region"):
                self.values.store(region, [(b"k", [(0, 1)])])

    def test_many_threads_share_a_client(self) -> None:
        wrong = []

        def work(number: int) -> None:
            for turn in range(60):
                key = b"thread %d %d" % (number, turn)
                size = 100 + 9_000 * (turn % 9)
                self.values.put(key, content(key, size))
                found = self.values.get(key)
                if found is not None and found != content(key, size):
                    wrong.append(key)

        threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
        for each in threads:
            each.start()
        for each in threads:
            each.join(120)
        self.assertEqual(wrong, [])
        self.assertTrue(self.client.connected)

    def test_jobs_in_flight_are_done_by_poll(self) -> None:
        view, file = pool(16 << 20)
        with file:
            region, _ = self.client.region_of(view)
            jobs = [self.values.submit_store(region, [(b"poll %d" % n, [(n << 16, 1 << 16)])]) for n in range(64)]
            until(lambda: (self.client.poll(), all(job.done for job in jobs))[1], "all jobs")
            self.assertEqual([job.results for job in jobs], [[Result.COPIED]] * 64)

    def test_hints_are_taken_without_a_wait(self) -> None:
        self.values.put(b"h", b"v")
        self.values.expect([b"h"])
        self.values.pin([b"h"], 10)
        self.values.pin([b"h"], 0)
        self.values.label([b"h"], "agent", session=7, turn=2)
        self.values.forget([b"h"])
        self.assertEqual(self.values.get(b"h"), b"v")
        with self.assertRaisesRegex(ValueError, "kind = 'x'; allowed: agent"):
            self.values.label([b"h"], "x")

    def test_bad_arguments_are_named(self) -> None:
        for address in ("", ":", "host:", "host:0", "host:70000", ":7420", "[::1", "[]:1"):
            with self.assertRaisesRegex(ValueError, "address = "):
                Client(address)
        with self.assertRaisesRegex(ValueError, "timeout = 0"):
            Client(self.server.address, timeout=0)
        with self.assertRaisesRegex(ValueError, "a key of 0 bytes; allowed: 1 to 4096"):
            self.values.match([b""])
        with self.assertRaisesRegex(ConnectionLost, "no server at 127.0.0.1"):
            Client(f"127.0.0.1:{free_port()}")

    def test_arguments_that_cannot_be_are_named_and_the_session_goes_on(self) -> None:
        view, file = pool(1 << 20)
        self.addCleanup(file.close)
        region, _ = self.client.region_of(view)
        with Client(self.server.address) as second:
            foreign = second.namespace("model")
            with self.assertRaisesRegex(ValueError, "the region is of another client"):
                foreign.store(region, [(b"k", [(0, 1)])])
        for call, words in (
            (lambda: self.values.put(b"k", b""), "a value of 0 bytes; allowed: 1 to"),
            (lambda: self.values.put("k", b"v"), "a key is str; allowed: bytes"),
            (lambda: self.values.get(b"x" * 4097), "a key of 4097 bytes"),
            (lambda: self.values.contains(b""), "a key of 0 bytes"),
            (lambda: self.values.match([None]), "a key is NoneType"),
            (lambda: self.values.submit_match([b"k"] * 8193, print), "8193 keys; allowed: 0 to 8192"),
            (lambda: self.values.match([b"k"], pin_seconds=-1), "seconds = -1; allowed: 0 to 3600"),
            (lambda: self.values.expect([b"k"], float("nan")), "seconds = nan"),
            (lambda: self.values.label([b"k"], "chat", session=-1), "session = -1"),
            (lambda: self.values.store(region, []), "0 values; allowed: 1 to 8192"),
            (lambda: self.values.store(region, [(b"k", [(-1, 1)])]), "a span of 1 bytes from -1 on"),
            (lambda: self.values.load(region, [(b"k", [(0, 1 << 63)])]), "a span of 9223372036854775808 bytes"),
            (lambda: self.values.get_into(b"k", b"read-only"), "the buffer is read-only"),
            (lambda: self.client.region_of(memoryview(b"read-only")), "the buffer is read-only"),
            (lambda: self.client.region(None), "path is NoneType"),
            (lambda: self.client.namespace(""), 'model = ""; allowed: a name'),
            (
                lambda: self.client.namespace("m", layout="x" * 513),
                "^layout has 513 bytes as UTF-8; allowed: up to 512$",
            ),
            (lambda: self.client.namespace(5), "model is int; allowed: a str"),
            (lambda: self.values.store(None, [(b"k", [(0, 1)])]), "region is NoneType; allowed: a Region"),
            (lambda: self.values.store(region, None), "values is NoneType; allowed: a sequence of"),
            (lambda: self.values.store(region, [b"k"]), r"values\[0\] = b'k'; allowed: \(key, spans\)"),
            (lambda: self.values.store(region, [("k", [(0, 1)])]), "a key is str; allowed: bytes"),
            (lambda: self.values.load(region, [(b"k", [(1.0, 1)])]), r"spans of values\[0\] = \[\(1.0, 1\)\]; allowed"),
            (lambda: self.values.load(region, [(b"k", (0, 1))]), r"spans of values\[0\] = \(0, 1\); allowed: a list"),
            (lambda: self.values.submit_load(region, [(b"k", [(0, 1)])], timeout="x"), "timeout = 'x'; allowed: 0 to"),
            (
                lambda: self.values.submit_load(region, [(b"k", [(0, 1)])], on_done=5),
                "on_done is int; allowed: a function",
            ),
            (lambda: self.values.submit_match([b"k"], None), "callback is NoneType; allowed: a function"),
            (lambda: Client(7420), "address = 7420; allowed: a str, host or host:port"),
            (lambda: Client(self.server.address, timeout="x"), "timeout = 'x'; allowed: more than 0"),
            (lambda: Client(self.server.address, secret="of text"), "secret is str; allowed: bytes"),
            (lambda: Client(self.server.address, timeout=float("inf")), "timeout = inf"),
            (lambda: Client(f"127.0.0.1:{self.server.port}", timeout=2), "is it the server's transport.listen"),
        ):
            with self.subTest(words), self.assertRaisesRegex((ValueError, TypeError, KvCacheError), words):
                call()
        self.values.put(memoryview(b"bytes"), b"v")
        self.assertEqual(self.values.get(b"bytes"), b"v")

    def test_a_callback_may_fail_but_not_wait(self) -> None:
        view, file = pool(1 << 20)
        self.addCleanup(file.close)
        region, _ = self.client.region_of(view)
        told = []

        def waits(job: kvcache.Job) -> None:
            try:
                self.values.get(b"absent")
            except KvCacheError as failed:
                told.append(str(failed))

        def fails(job: kvcache.Job) -> None:
            raise RuntimeError("of the callback")

        self.client.wait(self.values.submit_store(region, [(b"a", [(0, 1)])], on_done=waits))
        self.assertEqual(told, ["a callback may not wait for the server; use a method that begins with submit"])
        with self.assertLogs("kvcache.connection", "ERROR") as logs:
            self.client.wait(self.values.submit_store(region, [(b"b", [(0, 1)])], on_done=fails))
        self.assertIn("a callback has failed", logs.output[0])
        self.assertEqual(self.values.get(b"b"), bytes(view[:1]))

    def test_a_server_of_another_protocol_is_told_at_once(self) -> None:
        with socket.create_server(("127.0.0.1", 0)) as other:

            def answer() -> None:
                accepted, _ = other.accept()
                with accepted:
                    accepted.recv(1)
                    accepted.sendall(b"-ERR\r\n")  # shorter than a header
                    accepted.recv(1 << 16)

            thread = threading.Thread(target=answer)
            thread.start()
            began = time.monotonic()
            with self.assertRaisesRegex(ConnectionLost, "not a frame of this protocol; is it the server's transport"):
                Client("127.0.0.1:%d" % other.getsockname()[1], timeout=60)
            self.assertLess(time.monotonic() - began, 30)
            thread.join(60)

    def test_a_fork_takes_a_client_of_its_own(self) -> None:
        self.values.put(b"k", b"v")
        child = os.fork()
        if child == 0:
            code = 1
            try:
                self.values.get(b"k")
            except KvCacheError as failed:
                code = 0 if "belongs to the process that forked" in str(failed) else 2
            try:
                self.client.close()
            finally:
                os._exit(code)
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), 0)
        self.assertEqual(self.values.get(b"k"), b"v")

    def test_a_file_that_was_unlinked_is_found_by_its_descriptor(self) -> None:
        view, file = pool(1 << 20)
        os.unlink(file.name)
        self.addCleanup(lambda: open(file.name, "w").close() or file.close())
        region, base = self.client.region_of(view)
        self.assertIn("/fd/", region.path)
        self.assertEqual(self.values.store(region, [(b"k", [(base, 10)])]), [Result.COPIED])

    def test_memory_that_is_mapped_anew_is_another_region(self) -> None:
        mover = Mover(self.client, self.values)
        place = mmap.mmap(-1, 1 << 20)
        address = address_of(memoryview(place))
        del place
        libc = ctypes.CDLL(None, use_errno=True)
        libc.mmap.restype = ctypes.c_void_p
        libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
        for word in (b"ONE!", b"TWO!"):
            descriptor = os.memfd_create("kvcache-test")
            os.ftruncate(descriptor, 1 << 20)
            os.write(descriptor, word)
            fixed = mmap.MAP_SHARED | 0x10
            self.assertEqual(libc.mmap(address, 1 << 20, 3, fixed, descriptor, 0), address)
            self.assertTrue(mover.add(address, 1 << 20))
            self.assertEqual(mover.run(True, [(word, [(address, 4)])], 10), [Result.COPIED])
            self.assertEqual(self.values.get(word), word)
            libc.munmap(ctypes.c_void_p(address), ctypes.c_size_t(1 << 20))
            os.close(descriptor)

    def test_a_client_that_is_closed_says_so(self) -> None:
        client = Client(self.server.address)
        values = client.namespace("closed")
        client.close()
        view, file = pool(4096)
        self.addCleanup(file.close)
        for call in (
            lambda: values.get(b"k"),
            lambda: client.namespace("closed"),
            lambda: client.namespace("another"),
            lambda: client.blocks("another", BlockShape(1, 1, 8, 1)),
            lambda: client.region(file.name),
            lambda: client.region_of(view),
        ):
            with self.assertRaisesRegex(ConnectionLost, "the client is closed"):
                call()


class StageTest(unittest.TestCase):
    def test_parts_never_overlap_and_all_room_comes_back(self) -> None:
        stage = Stage(memoryview(bytearray(1000)))
        source = random.Random(7)
        held: dict = {}
        for _ in range(5000):
            if held and source.random() < 0.5:
                at = source.choice(list(held))
                stage.give(at)
                del held[at]
                continue
            size = source.randint(1, 300)
            at = stage.take(size, 0.0)
            if at is None:
                self.assertTrue(held, "there is room for any part when none is held")
                continue
            self.assertLessEqual(at + size, 1000)
            for other, length in held.items():
                self.assertTrue(at + size <= other or other + length <= at, (at, size, other, length))
            held[at] = size
        for at in list(held):
            stage.give(at)
        self.assertEqual(stage.take(1000, 0.0), 0)
        self.assertIsNone(stage.take(1, 0.0))
        self.assertIsNone(stage.take(1001, 1.0))

    def test_one_that_waits_gets_the_room_that_is_given_back(self) -> None:
        stage = Stage(memoryview(bytearray(100)))
        self.assertEqual(stage.take(80, 0.0), 0)
        threading.Timer(0.05, stage.give, (0,)).start()
        self.assertEqual(stage.take(90, 20.0), 0)


class ShownTest(unittest.TestCase):
    """What people see of the client's types, and what they are in an ``if``. Needs no server."""

    def test_a_result_is_true_where_the_value_is_there(self) -> None:
        self.assertEqual([each.name for each in Result if each], ["COPIED", "PRESENT"])

    def test_a_result_is_shown_by_its_name(self) -> None:
        self.assertEqual(f"{Result.COPIED} {Result.NO_ROOM!r} {str(Status.BUSY)}", "Result.COPIED Result.NO_ROOM Status.BUSY")
        self.assertEqual([Result.COPIED, Result.FOREIGN], [0, 8])

    def test_an_address_without_a_port_has_the_usual_one(self) -> None:
        for address, shown in (
            ("127.0.0.1", "127.0.0.1:7420"),
            ("cache-host:1", "cache-host:1"),
            ("::1", "[::1]:7420"),
            ("[::1]", "[::1]:7420"),
            ("[::1]:5", "[::1]:5"),
        ):
            with self.subTest(address), Client(address, lazy=True) as client:
                self.assertIn(f"<Client of {shown}, ", repr(client))

    def test_what_the_client_gives_shows_what_it_is(self) -> None:
        with Client(f"127.0.0.1:{free_port()}", tenant="acme", secret=b"hidden", lazy=True) as client:
            values = client.namespace("llama", layout="pages")
            blocks = client.blocks("llama", BlockShape(1, 1, 64, 16))
            region = client.region("/dev/shm/pool")
            job = values.submit_store(region, [(b"k", [(0, 1)])])
            for shown, words in (
                (client, "tenant 'acme', not connected>"),
                (values, "<Namespace 'llama', layout='pages', tenant='acme'>"),
                (blocks, "<Blocks of 4096 bytes, <Namespace 'llama', "),
                (blocks.chain(range(37)), "<Chain of 2 blocks of 16 tokens and 5 tokens more>"),
                (region, "<Region /dev/shm/pool, not registered yet>"),
                (job, "<Job of 1 values, there is no connection to the server now>"),
            ):
                with self.subTest(words):
                    self.assertIn(words, repr(shown))
                    self.assertNotIn("hidden", repr(shown))
        self.assertTrue(repr(client).endswith(", closed>"))


class ChainTest(unittest.TestCase):
    """Keys and digests are those of Java's BlockChain, BlockKey and Namespace, whose tests have the first of each."""

    def test_digests_of_namespaces_never_change(self) -> None:
        plain = namespace_digest(("o", *[""] * 6), None)
        self.assertEqual(plain.hex(), "f09a2415539ea5bd33a93c367612a6739a3be687f7885773b6d45342c7f003ca")
        latent = BlockShape(3, 1, 576, 16, "fp8_e4m3", "layer_kv_token_head", 1)
        every = namespace_digest(("llama", "r", "d", "l", "a", "t", "s"), latent)
        self.assertEqual(every.hex(), "425ded6bafdfd7c234346d245d66a4a21d3f626f2bbb35ed21177e1aa86936fb")

    def test_keys_of_tokens_never_change(self) -> None:
        digest = namespace_digest(("m", "", "bf16", "", "", "", ""), BlockShape(2, 2, 8, 16))
        chain = Chain(digest, 16)
        chain.extend(range(32))
        self.assertEqual(keys_of(chain), ["75bb014ed2ddd7eb3690f227536a08d3", "c22e7aa0fdb5bacbded9b45ddcf45054"])
        chain = Chain(namespace_digest(("m", "", "bf16", "", "", "", ""), BlockShape(2, 2, 8, 4)), 4)
        chain.extend([1, 2, 3, 4, 5, 6, 7, 8, (1 << 31) - 1, 0, 1 << 30, 255, 9])
        self.assertEqual(
            keys_of(chain),
            [
                "0041384848eba32cedf403073503c593",
                "be33b81dd79a341f550771e32194eaf7",
                "10f1f7d6fd65a0f7859c14cbb7ee2318",
            ],
        )

    def test_keys_of_an_engine_never_change(self) -> None:
        chain = Chain(namespace_digest(("m", "", "bf16", "", "", "", ""), BlockShape(2, 2, 8, 4)), 4)
        chain.extend_keys([b"a", b"0123456789"])
        self.assertEqual(keys_of(chain), ["82df55b3b52dbb99576fd7f1ce1ecc44", "44b55aa473d332e15baf6c1cc8caac8c"])
        self.assertEqual(int.from_bytes(chain._entries[40:48], "big"), 3617292328856139833)

    def test_a_chain_that_grows_is_as_if_hashed_at_once(self) -> None:
        generator = random.Random(1)
        for block_tokens in (1, 3, 16):
            tokens = [generator.randrange(1 << 31) for _ in range(200)]
            whole = Chain(bytes(32), block_tokens)
            whole.extend(tokens)
            grown = Chain(bytes(32), block_tokens)
            at = 0
            while at < len(tokens):
                some = generator.randrange(1, 3 * block_tokens + 2)
                part = array.array("i", tokens[at : at + some])
                grown.extend(part if at % 2 else memoryview(part))
                fork = grown.copy()
                fork.extend([7] * block_tokens)
                at += some
                self.assertEqual(len(grown), min(at, 200) // block_tokens)
            self.assertEqual(keys_of(grown), keys_of(whole))

    def test_what_cannot_be_is_named(self) -> None:
        chain = Chain(bytes(32), 4)
        chain.extend([1, 2, 3, 4])
        with self.assertRaisesRegex(ValueError, "tokens or an engine's keys, not both"):
            chain.extend_keys([b"k"])
        for index, words in (
            (1, r"index = 1; allowed: integers from 0 to 0 \(full blocks of the chain: 1\)"),
            (-1, "index = -1; allowed: integers from 0 to 0"),
            (1.0, "index is float; allowed: integers"),
        ):
            with self.assertRaisesRegex((IndexError, TypeError), words):
                chain.key(index)
        with self.assertRaisesRegex(IndexError, r"index = 0; allowed: no number \(full blocks of the chain: 0\)"):
            Chain(bytes(32), 4).key(0)
        for shape, words in (
            (BlockShape(0, 8, 128, 16), "layers = 0; allowed: 1 to 1024"),
            (BlockShape(32, 8, 128, 16, "f64"), "dtype = 'f64'; allowed: f32, f16, bf16"),
            (BlockShape(32, 8, 128, 16, order="token"), "order = 'token'; allowed: layer_kv_head_token"),
            (BlockShape(1024, 4096, 128, 16), "a block of 34359738368 bytes; allowed: 1 to 268435456"),
        ):
            with self.assertRaisesRegex(ValueError, words):
                shape.check()

    def test_only_tokens_from_0_to_2_31_are_hashed(self) -> None:
        range_of = "allowed: integers from 0 to 2147483647"
        any_of = "allowed: a sequence of integers from 0 to 2147483647, an array"
        for tokens, words in (
            ([1 << 31], r"tokens\[0\] = 2147483648; " + range_of),
            ([1, 2, -1], r"tokens\[2\] = -1; " + range_of),
            (array.array("i", [0, -(1 << 31)]), r"tokens\[1\] = -2147483648; " + range_of),
            (memoryview(array.array("i", [-5])), r"tokens\[0\] = -5; " + range_of),
            ([1, 2.0], r"tokens\[1\] is float; " + range_of),
            (["1"], r"tokens\[0\] is str; " + range_of),
            (None, "tokens is NoneType; " + any_of),
            (7, "tokens is int; " + any_of),
            ("1234", "tokens is str; " + any_of),
            (b"abcd" * 8, "tokens is bytes; " + any_of),
            (bytearray(32), "tokens is bytearray; " + any_of),
            (memoryview(bytes(32)), "tokens is a memoryview of format 'B' and ndim 1; allowed: format 'i'"),
            (memoryview(bytes(16)).cast("i", [2, 2]), "format 'i' and ndim 2"),
        ):
            chain = Chain(bytes(32), 4)
            with self.subTest(words), self.assertRaisesRegex((ValueError, TypeError), words):
                chain.extend(tokens)
            chain.extend_keys([b"nothing was taken"])
        self.assertEqual(len(chain), 1)


class BlocksTest(ServedTest):
    shape = BlockShape(layers=1, heads=1, dim=64, tokens=16)

    def setUp(self) -> None:
        self.client = Client(self.server.address)
        self.addCleanup(self.client.close)
        self.blocks = self.client.blocks("model", self.shape, layout=self.id())

    def fill(self, blocks: Blocks, chain: Chain, count: int) -> None:
        for index in range(count):
            self.assertTrue(blocks.put(chain, index, self.block(chain, index)).stored)

    def block(self, chain: Chain, index: int) -> bytes:
        return content(chain.key(index), self.shape.block_bytes)

    def matched(self, chain: Chain, blocks: Optional[Blocks] = None) -> int:
        """Blocks in memory, of which shared memory and the server must say the same."""
        blocks = blocks or self.blocks
        found = blocks.match(chain)
        self.assertEqual(blocks._match_by_message(chain), found)
        return found.host

    def test_blocks_come_back_as_they_were_put(self) -> None:
        chain = self.blocks.chain(range(160))
        self.fill(self.blocks, chain, 7)
        self.assertEqual(self.blocks.put(chain, 3, self.block(chain, 3)), Result.PRESENT)
        self.assertEqual(self.matched(chain), 7)
        expected = [self.block(chain, index) for index in range(7)]
        self.assertEqual(self.blocks.get(chain), expected)
        self.assertEqual(self.blocks.get(chain, 2, 5), expected[2:5])
        self.assertEqual(self.blocks.get(chain, 7), [])
        with self.blocks.view(chain, 5) as pieces:
            self.assertEqual([bytes(each) for each in pieces], expected[5:])
            self.assertTrue(all(each.readonly for each in pieces))
        self.assertEqual(self.blocks.drop(chain, 4), 3)
        self.assertEqual(self.matched(chain), 4)
        self.assertEqual(self.blocks.get(chain, 4), [])

    def test_blocks_are_gathered_and_put_without_waiting(self) -> None:
        shape = BlockShape(layers=4, heads=1, dim=1024, tokens=16, dtype="int8", planes=1)  # 64 KiB
        blocks = self.client.blocks(self.id(), shape)
        chain = blocks.chain(range(16 * 40))
        wanted = [content(b"%d" % number, shape.block_bytes) for number in range(40)]
        third = shape.block_bytes // 3
        results: list = []
        for number, data in enumerate(wanted):
            copy = bytearray(data)
            pieces = [copy[:third], memoryview(copy)[third : 2 * third], bytes(copy[2 * third :])]
            self.assertTrue(blocks.submit_put(chain, number, pieces, results.append, 5.0))
            copy[:] = bytes(len(copy))  # written again at once

        def collected() -> bool:
            self.client.poll()
            return len(results) == 40

        until(collected, "the results of all puts")
        self.assertEqual(results, [Result.COPIED] * 40)
        self.assertEqual(blocks.get(chain), wanted)
        self.assertEqual(blocks.put(chain, 3, [wanted[3][:5], wanted[3][5:]]), Result.PRESENT)
        with self.assertRaisesRegex(ValueError, f"a block of 7 bytes; allowed: {shape.block_bytes}"):
            blocks.submit_put(chain, 0, [b"1234", b"567"], results.append)
        self.client.close()
        self.assertFalse(blocks.submit_put(chain, 0, wanted[0], results.append))

    def test_a_chain_that_the_server_did_not_keep_is_sent_again_after_a_put_without_waiting(self) -> None:
        chain = self.blocks.chain(range(48))
        results: list = []

        def refuse(*arguments: object) -> None:
            reply = arguments[5]
            reply.status, reply.body = Status.BUSY, wire.text("no room for chains") + b"\1"
            reply.callback(reply)

        slots = self.blocks._chain_slots()
        with mock.patch.object(slots, "send", lambda *arguments: refuse(slots, *arguments)):
            with mock.patch.object(slots, "forget") as forget:
                self.assertTrue(self.blocks.submit_put(chain, 0, self.block(chain, 0), results.append, 5.0))
        self.assertEqual((results, forget.call_count), ([None], 1))
        self.assertTrue(self.blocks.submit_put(chain, 0, self.block(chain, 0), results.append, 5.0))

    def test_a_dropped_namespace_is_empty_for_all(self) -> None:
        values, others = self.client.namespace(self.id()), self.client.namespace(self.id() + " other")
        for number in range(10):
            values.put(b"%d" % number, b"value")
        others.put(b"0", b"value")
        self.assertEqual(values.drop(), 10)
        self.assertEqual([values.contains(b"%d" % number) for number in range(10)], [False] * 10)
        self.assertTrue(others.contains(b"0"))
        heard: list = []
        values.put(b"1", b"again")
        values.submit_drop(heard.append)

        def answered() -> bool:
            self.client.poll()
            return bool(heard)

        until(answered, "the answer")
        self.assertEqual((heard, values.contains(b"1")), ([True], False))

    def test_ranges_of_blocks_come_back_as_they_were_put(self) -> None:
        blocks = self.client.blocks("ranges", BlockShape(layers=4, heads=8, dim=64, tokens=64))
        size = blocks.shape.block_bytes
        chain = blocks.chain(range(64 * 6))
        for index in range(5):
            self.assertTrue(blocks.put(chain, index, content(chain.key(index), size)).stored)
        whole = [content(chain.key(index), size) for index in range(5)]
        for offset, length in ((0, 1), (size - 1, 1), (100, 5000), (0, size)):
            for timeout in (0, 5):
                ranges = blocks.get_range(chain, offset, length, timeout=timeout)
                self.assertEqual(ranges, [each[offset : offset + length] for each in whole])
        self.assertEqual(blocks.get_range(chain, 8, 16, begin=2, end=4), [each[8:24] for each in whole[2:4]])
        self.assertEqual(blocks.get_range(chain, 8, 16, begin=6), [])
        self.assertEqual(blocks.get_range(blocks.chain([7] * 640), 8, 16, timeout=5), [])
        with mock.patch("kvcache.wire.MAX_RANGE_BYTES", 15):
            self.assertEqual(blocks.get_range(chain, 8, 16, timeout=5), [each[8:24] for each in whole])
        for offset, length in ((-1, 1), (0, 0), (size, 1), (0, size + 1)):
            with self.assertRaisesRegex(IndexError, f"allowed: 1 byte and more of 0 to {size}"):
                blocks.get_range(chain, offset, length)
        with self.assertRaisesRegex(TypeError, "size is str; allowed: an integer"):
            blocks.get_range(chain, 0, "1")
        with self.assertRaisesRegex(IndexError, "begin = 7; allowed: integers from 0 to 6"):
            blocks.get_range(chain, 0, 1, begin=7)

    def test_large_blocks_go_through_shared_memory(self) -> None:
        blocks = self.client.blocks("large", BlockShape(layers=8, heads=8, dim=64, tokens=64))
        chain = blocks.chain(range(192))
        data = [content(chain.key(index), blocks.shape.block_bytes) for index in range(3)]
        for index in range(3):
            self.assertEqual(blocks.put(chain, index, data[index]), Result.COPIED)
        self.assertIsNotNone(self.client._stage)
        self.assertEqual(blocks.get(chain), data)

    def test_a_prefix_of_any_length_is_found(self) -> None:
        chain = self.blocks.chain(range(16 * 40))
        self.assertEqual(self.matched(chain), 0)
        for index in range(40):
            self.assertTrue(self.blocks.put(chain, index, self.block(chain, index)).stored)
            self.assertEqual(self.matched(chain), index + 1)
        self.assertEqual(self.matched(self.blocks.chain()), 0)
        fork = self.blocks.chain(range(16 * 9))
        fork.extend([5] * 16 * 3)
        self.assertEqual(self.matched(fork), 9)

    def test_a_block_needs_its_parent(self) -> None:
        chain = self.blocks.chain(range(48))
        self.assertEqual(self.blocks.put(chain, 1, self.block(chain, 1)), Result.NO_PARENT)
        self.assertEqual(self.matched(chain), 0)

    def test_keys_of_another_namespace_are_absent(self) -> None:
        other = self.client.blocks("model", self.shape, layout="another")
        self.assertNotEqual(other.namespace.digest, self.blocks.namespace.digest)
        mine, foreign = self.blocks.chain(range(80)), other.chain(range(80))
        self.fill(self.blocks, mine, 5)
        self.assertEqual(self.matched(foreign, other), 0)
        with self.assertRaisesRegex(ValueError, "the chain is of another namespace"):
            other.match(mine)
        forged = other.chain()
        forged._entries = mine._entries
        self.assertEqual(self.matched(forged, other), 0)
        self.assertEqual(other.get(forged), [])
        self.assertEqual(other.put(forged, 0, self.block(mine, 0)), Result.FOREIGN)

    def test_keys_that_begin_in_the_middle_of_a_chain_are_absent(self) -> None:
        keys = [b"engine %d" % number for number in range(12)]
        chain = self.blocks.chain_of_keys(keys)
        self.fill(self.blocks, chain, 12)
        self.assertEqual(self.matched(chain), 12)
        for begin in (1, 5, 11):
            unchained = self.blocks.chain_of_keys(keys[begin:])
            self.assertEqual(self.matched(unchained), 0)
            self.assertEqual(self.blocks.get(unchained), [])
        grown = self.blocks.chain_of_keys(keys[:4])
        grown.extend_keys(keys[4:])
        self.assertEqual(self.matched(grown), 12)

    def test_many_chains_share_what_a_connection_has_sent(self) -> None:
        generator = random.Random(5)
        chains = [self.blocks.chain(range(16 * 8))]
        self.fill(self.blocks, chains[0], 8)
        for number in range(200):
            chain = generator.choice(chains[-40:]).copy()
            chain.extend([number] * 16 * generator.randrange(4))
            length = generator.randrange(9)
            if number % 3 == 0:
                chain = self.blocks.chain([*range(16 * length), *[1000 + number] * 16])
            chains.append(chain)
            self.assertEqual(self.matched(chain), sum(a == b for a, b in zip(keys_of(chain), keys_of(chains[0]))))

    def test_a_chain_that_the_server_did_not_keep_is_sent_again(self) -> None:
        chain = self.blocks.chain(range(16 * 4))
        self.fill(self.blocks, chain, 4)
        blocks = self.client.blocks("long", BlockShape(1, 1, 8, 1))
        with self.assertRaisesRegex(
            Rejected, "a chain of .*; allowed"
        ):  # by its blocks, or by the memory of a small server
            blocks._match_by_message(blocks.chain(array.array("i", bytes(4_800_000))))
        self.assertEqual(self.matched(chain), 4)
        for number in range(15):  # fewer than a client tells of, more than a server with 512 MiB of heap keeps
            long = blocks.chain(array.array("i", [number] * 120_000))
            self.assertEqual(self.matched(long, blocks), 0)
        self.assertEqual(self.matched(chain), 4)

    def test_evictions_shorten_prefixes_and_no_byte_is_wrong(self) -> None:
        blocks = self.client.blocks("evicted", BlockShape(layers=4, heads=8, dim=64, tokens=64))
        size = blocks.shape.block_bytes
        chains = [blocks.chain([number] * 64 * 8) for number in range(60)]
        wrong, stop = [], threading.Event()

        def read() -> None:
            while not stop.is_set():
                for chain in chains:
                    found = blocks.match(chain).host
                    for index, got in enumerate(blocks.get(chain)):
                        if got != content(chain.key(index), size):
                            wrong.append((chain, index))
                    if not 0 <= found <= 8:
                        wrong.append(found)

        reader = threading.Thread(target=read)
        reader.start()
        try:
            for chain in chains:
                for index in range(8):
                    if not blocks.put(chain, index, content(chain.key(index), size)).stored:
                        break
        finally:
            stop.set()
            reader.join(60)
        self.assertEqual(wrong, [])
        lengths = [self.matched(chain, blocks) for chain in chains]
        self.assertLess(sum(lengths), 60 * 8)
        self.assertGreater(sum(lengths), 60)
        for chain, length in zip(chains, lengths):
            self.assertEqual(len(blocks.get(chain)), length)

    def test_arguments_that_cannot_be_are_named(self) -> None:
        chain = self.blocks.chain(range(32))
        with self.assertRaisesRegex(ValueError, "a block of 3 bytes; allowed: 4096"):
            self.blocks.put(chain, 0, b"abc")
        block = bytes(self.shape.block_bytes)

        def view(*arguments) -> None:
            with self.blocks.view(*arguments):
                pass

        for call, words in (
            (
                lambda: self.blocks.put(chain, 2, block),
                r"index = 2; allowed: integers from 0 to 1 \(full blocks of the chain: 2\)",
            ),
            (lambda: self.blocks.put(chain, -1, block), "index = -1; allowed: integers from 0 to 1"),
            (lambda: self.blocks.put(chain, 1.0, block), "index is float; allowed: integers from 0 to 1"),
            (lambda: self.blocks.put(chain, "1", block), "index is str; allowed: integers from 0 to 1"),
            (lambda: self.blocks.drop(chain, -1), r"begin = -1; allowed: integers from 0 to 2 \(full"),
            (lambda: self.blocks.drop(chain, 99), "begin = 99; allowed: integers from 0 to 2"),
            (lambda: self.blocks.drop(chain, None), "begin is NoneType; allowed: integers from 0 to 2"),
            (lambda: self.blocks.get(chain, -1), "begin = -1; allowed: integers from 0 to 2"),
            (lambda: self.blocks.get(chain, 3), "begin = 3; allowed: integers from 0 to 2"),
            (lambda: view(chain, 0.5), "begin is float; allowed: integers from 0 to 2"),
            (lambda: view(chain, 0, -1), "end = -1; allowed: integers from 0 to"),
            (lambda: self.blocks.get(chain, timeout="x"), "timeout = 'x'; allowed: 0 to 86400"),
            (lambda: self.blocks.match([1, 2, 3]), "chain is list; allowed: a Chain"),
            (lambda: self.blocks.get(None), "chain is NoneType; allowed: a Chain"),
            (lambda: self.blocks.chain(None), "tokens is NoneType"),
            (lambda: self.client.blocks("q", None), "shape is NoneType; allowed: a BlockShape"),
            (lambda: self.client.blocks("model", BlockShape(1, 0, 1, 1)), "heads = 0; allowed: 1 to 4096"),
        ):
            with self.subTest(words), self.assertRaisesRegex((ValueError, TypeError, IndexError), words):
                call()
        self.assertEqual(self.blocks.drop(chain, 2), 0)
        self.assertEqual(self.blocks.drop(self.blocks.chain()), 0)
        self.assertEqual(self.blocks.get(chain, 2), [])


class ServerDeathTest(unittest.TestCase):
    def test_a_killed_server_costs_jobs_and_the_next_one_serves(self) -> None:
        server = Server("64MiB")
        self.addCleanup(server.close)
        client = Client(server.address, timeout=5)
        self.addCleanup(client.close)
        values = client.namespace("model")
        view, file = pool(16 << 20)
        self.addCleanup(file.close)
        region, _ = client.region_of(view)
        self.assertEqual(values.store(region, [(b"k", [(0, 1 << 20)])]), [Result.COPIED])
        server.signal(signal.SIGSTOP)  # so that no job ends before the kill, however busy the machine is
        jobs = [values.submit_store(region, [(b"j%d" % n, [(0, 8 << 20)])]) for n in range(20)]
        server.kill()
        until(lambda: (client.poll(), all(job.done for job in jobs))[1], "the end of all jobs", 10)
        self.assertTrue(any(isinstance(job.error, ConnectionLost) for job in jobs))
        self.assertIsNone(values.contains_now(b"k"))
        self.assertIsInstance(values.submit_load(region, [(b"k", [(0, 1 << 20)])]).error, ConnectionLost)
        server.start()
        until(lambda: client.connected, "the session with the next server")
        self.assertEqual(values.load(region, [(b"k", [(0, 1 << 20)])]), [Result.ABSENT])
        view[:5] = b"again"
        self.assertEqual(values.store(region, [(b"k", [(0, 5)])]), [Result.COPIED])
        self.assertEqual(values.get(b"k"), b"again")

    def test_a_secret_is_proved_and_a_wrong_one_refused(self) -> None:
        with tempfile.NamedTemporaryFile("w") as secrets:
            os.chmod(secrets.name, 0o600)
            secrets.write("0123456789abcdef\n")
            secrets.flush()
            server = Server("64MiB", "--set", f"transport.secret_file={secrets.name}")
            self.addCleanup(server.close)
            with self.assertRaisesRegex(KvCacheError, "asks for a secret"):
                Client(server.address)
            with self.assertRaisesRegex(Rejected, "UNAUTHORIZED"):
                Client(server.address, secret=b"another one of sixteen")
            with Client(server.address, secret=b"0123456789abcdef") as client:
                values = client.namespace("model")
                values.put(b"k", b"v")
                self.assertEqual(values.get(b"k"), b"v")
                check_sent(self, client, values)


class StoppedServerTest(ServedTest):
    host_bytes = "256MiB"

    def setUp(self) -> None:
        self.addCleanup(self.server.signal, signal.SIGCONT)

    def test_a_stopped_server_fails_jobs_in_time_and_touches_nothing_later(self) -> None:
        server = self.server
        client = Client(server.address, timeout=2)
        self.addCleanup(client.close)
        values = client.namespace("model")
        view, file = pool(16 << 20)
        self.addCleanup(file.close)
        region, _ = client.region_of(view)
        view[: 1 << 20] = content(b"k", 1 << 20)
        self.assertEqual(values.store(region, [(b"k", [(0, 1 << 20)])]), [Result.COPIED])
        server.signal(signal.SIGSTOP)
        began = time.monotonic()
        load = values.submit_load(region, [(b"k", [(4 << 20, 1 << 20)])])
        store = values.submit_store(region, [(b"late", [(8 << 20, 1 << 20)])])
        until(lambda: (client.poll(), load.done and store.done)[1], "the end of both jobs", 10)
        self.assertLess(time.monotonic() - began, 5)
        self.assertIsInstance(load.error, ConnectionLost)
        mine = content(b"mine", 1 << 20)
        view[4 << 20 : 5 << 20] = mine
        view[8 << 20 : 9 << 20] = mine
        server.signal(signal.SIGCONT)
        until(lambda: client.connected, "the next session")
        time.sleep(0.5)
        self.assertEqual(view[4 << 20 : 5 << 20], mine)
        self.assertFalse(values.contains(b"late"))
        self.assertEqual(values.load(region, [(b"k", [(0, 1 << 20)])]), [Result.COPIED])

    def test_rows_are_the_servers_until_a_job_is_done_whatever_ends_it(self) -> None:
        """A stopped server goes on after the client has given the connection up: what it then does, it does to jobs
        that are not done."""
        server = self.server
        size = 32 << 20
        view, file = pool(size)
        self.addCleanup(file.close)
        reader = Client(server.address)
        self.addCleanup(reader.close)
        for turn in range(6):
            client = Client(server.address, timeout=1)
            values = client.namespace("turns")
            region, _ = client.region_of(view)
            view[:] = b"A" * size
            key = b"turn %d" % turn
            server.signal(signal.SIGSTOP)
            job = values.submit_store(region, [(key, [(0, size)])], timeout=8)
            if turn % 2:
                with self.assertRaises(ConnectionLost):
                    values.get(b"another")
                self.assertFalse(job.done)
                server.signal(signal.SIGCONT)
                until(lambda: (job._connection.poll(), job.done)[1], "the end of the job", 12)
                client.close()
            else:
                server.signal(signal.SIGCONT)
                client.close()
            self.assertTrue(job.done)
            view[:] = b"B" * size
            time.sleep(0.05)
            found = reader.namespace("turns").get(key)
            self.assertTrue(found is None or found == b"A" * size, "the value is torn")

    def test_what_a_full_socket_left_goes_though_another_thread_waits_for_a_late_reply(self) -> None:
        with mock.patch("kvcache.client.try_open", return_value=None), Client(self.server.address) as client:
            values = client.namespace("full sockets")
            connection = client._connected()
            late = Reply(time.monotonic() + 60)
            waits = threading.Thread(target=lambda: connection.wait(late, 6, gives_up=False))
            waits.start()
            time.sleep(0.2)
            began = time.monotonic()
            self.assertEqual(values.put(b"large", bytes(48 << 20)), Result.COPIED)
            self.assertLess(time.monotonic() - began, 4)
            late.done = True
            waits.join()

    def test_a_job_outlives_an_impatient_wait(self) -> None:
        server = self.server
        client = Client(server.address)
        self.addCleanup(client.close)
        values = client.namespace("model")
        view, file = pool(1 << 20)
        self.addCleanup(file.close)
        region, _ = client.region_of(view)
        server.signal(signal.SIGSTOP)
        job = values.submit_store(region, [(b"k", [(0, 100)])])
        with self.assertRaisesRegex(KvCacheError, "not done within 0.2 s; it goes on"):
            client.wait(job, 0.2)
        server.signal(signal.SIGCONT)
        self.assertEqual(client.wait(job), [Result.COPIED])


@unittest.skipUnless(shutil.which("openssl"), "openssl is not here; apt-get install openssl")
class TlsTest(unittest.TestCase):
    def test_values_go_through_tls_and_an_unknown_certificate_is_refused(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            certificate, key = f"{folder}/c.pem", f"{folder}/k.pem"
            request = [
                "openssl",
                "req",
                "-x509",
                "-newkey",
                "rsa:2048",
                "-nodes",
                "-days",
                "2",
                "-subj",
                "/CN=localhost",
            ]
            request += ["-addext", "subjectAltName=IP:127.0.0.1", "-keyout", key, "-out", certificate]
            subprocess.run(request, check=True, stderr=subprocess.DEVNULL)
            os.chmod(key, 0o600)
            tls = [f"transport.tls.certificate={certificate}", f"transport.tls.key={key}"]
            server = Server("64MiB", "--set", tls[0], "--set", tls[1])
            self.addCleanup(server.close)
            with Client(server.address, tls=ssl.create_default_context(cafile=certificate)) as client:
                values = client.namespace("model")
                for size in (1, 70_000, 3 << 20):
                    key_of = b"tls %d" % size
                    values.put(key_of, content(key_of, size))
                    self.assertEqual(values.get(key_of), content(key_of, size))
                check_sent(self, client, values)
            with self.assertRaisesRegex(ConnectionLost, "no TLS; allowed: TLS"):
                Client(server.address)
            with self.assertRaisesRegex(ConnectionLost, "CERTIFICATE_VERIFY_FAILED"):
                Client(server.address, tls=True)


class DiskTest(ServedTest):
    @classmethod
    def setUpClass(cls) -> None:
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.server = Server("64MiB", "--disk", f"{folder.name}:512MiB", "--set", "admission=always")

    def test_values_on_a_disk_are_loaded_while_later_requests_go_on(self) -> None:
        client = Client(self.server.address)
        self.addCleanup(client.close)
        values = client.namespace("model")
        size, count = 1 << 20, 160
        view, file = pool(8 * size)
        self.addCleanup(file.close)
        region, _ = client.region_of(view)
        keys = [b"disk %d" % number for number in range(count)]
        for key in keys:
            view[:size] = content(key, size)
            until(lambda key=key: values.store(region, [(key, [(0, size)])])[0].stored, "room for a value")
        present = [key for key in keys if values.contains(key)]
        self.assertGreater(len(present), 80, "64 MiB of them fit in memory")
        loaded = 0
        for begin in range(0, len(present), 8):
            part = present[begin : begin + 8]
            view[:] = bytes(8 * size)
            job = values.submit_load(region, [(key, [(row * size, size)]) for row, key in enumerate(part)])
            self.assertTrue(client._request(3, b"") == b"")
            for row, (key, result) in enumerate(zip(part, client.wait(job))):
                if result == Result.COPIED:
                    loaded += 1
                    self.assertEqual(view[row * size : (row + 1) * size], content(key, size))
        self.assertGreater(loaded, 80)
        self.assertEqual(values.get(present[0]), content(present[0], size))

    def test_blocks_on_a_disk_are_waited_for(self) -> None:
        client = Client(self.server.address)
        self.addCleanup(client.close)
        blocks = client.blocks("model", BlockShape(layers=8, heads=8, dim=64, tokens=64))
        size = blocks.shape.block_bytes
        chains: list[Chain] = []
        cold: list[Chain] = []

        def puts_until_many_are_cold() -> bool:
            for _ in range(40):
                chain = blocks.chain([len(chains)] * 64 * 4)
                chains.append(chain)
                for index in range(4):
                    data = content(chain.key(index), size)
                    until(lambda: blocks.put(chain, index, data).stored, "room for a block")
                time.sleep(0.1)
            matches = [(chain, blocks.match(chain)) for chain in chains]
            cold[:] = [chain for chain, match in matches if match.disk > 0 and match.blocks == 4]
            return len(cold) > 10

        # 64 MiB of them fit in memory. Puts drop blocks that wait for a slow disk, so they leave it time.
        until(puts_until_many_are_cold, "chains on the disk")

        def comes_whole(chain: Chain) -> bool:
            got = blocks.get(chain, timeout=10)
            self.assertEqual(got, [content(chain.key(index), size) for index in range(len(got))])
            return len(got) == 4

        for chain in cold:
            self.assertEqual(blocks.match(chain), blocks._match_by_message(chain))
        # What a slow disk has not written yet keeps its room, and others come in part.
        until(lambda: sum(map(comes_whole, cold)) > len(cold) // 2, "most of what is on the disk comes whole")

    def test_ranges_of_blocks_on_a_disk_are_read_where_they_lie(self) -> None:
        client = Client(self.server.address)
        self.addCleanup(client.close)
        blocks = client.blocks("ranges", BlockShape(layers=8, heads=8, dim=64, tokens=64))
        size, layer = blocks.shape.block_bytes, blocks.shape.block_bytes // 8
        chains: list[Chain] = []

        def puts_until_some_are_cold() -> bool:
            for _ in range(10):
                chain = blocks.chain([len(chains)] * 64 * 10)
                chains.append(chain)
                for index in range(10):
                    data = content(chain.key(index), size)
                    until(lambda: blocks.put(chain, index, data).stored, "room for a block")
                time.sleep(0.1)
            return sum(blocks.match(chain).disk for chain in chains) > 40

        until(puts_until_some_are_cold, "blocks on the disk")
        on_disk = read = 0
        for chain in chains:
            before = blocks.match(chain)
            ranges = blocks.get_range(chain, 3 * layer, layer, begin=1, timeout=10)
            whole = [content(chain.key(1 + index), size) for index in range(len(ranges))]
            self.assertEqual(ranges, [each[3 * layer : 4 * layer] for each in whole])
            on_disk += before.disk
            read += max(0, 1 + len(ranges) - before.host)
        self.assertGreater(read, on_disk // 2)
        with urllib.request.urlopen(f"http://127.0.0.1:{self.server.port}/metrics") as reply:
            parts = re.findall(rb"^kv_disk_parts_total\S* ([\d.]+)$", reply.read(), re.MULTILINE)
        self.assertGreater(sum(map(float, parts)), on_disk // 2)


class SendingTest(unittest.TestCase):
    """A server that shares no memory, as on another host."""

    def test_values_are_sent_where_no_memory_is_shared(self) -> None:
        server = Server("64MiB", "--set", "transport.shared_memory=off")
        self.addCleanup(server.close)
        with Client(server.address) as client:
            self.assertFalse(client.shares_memory)
            values = client.namespace("model")
            generator = random.Random(3)
            for number in range(40):
                key = b"sent %d" % number
                size = generator.randrange(1, 2 << 20)
                self.assertEqual(values.put(key, content(key, size)), Result.COPIED)
                self.assertEqual(values.get(key), content(key, size))
            self.assertIsNone(values.contains_now(b"sent 39"))
            self.assertTrue(values.contains(b"sent 39"))
            with self.assertRaisesRegex(KvCacheError, "shares no memory"):
                with values.view(b"sent 39"):
                    pass
            blocks = client.blocks("model", BlockShape(layers=4, heads=8, dim=64, tokens=64))
            chain = blocks.chain(range(64 * 5))
            for index in range(4):
                data = content(chain.key(index), blocks.shape.block_bytes)
                self.assertEqual(blocks.put(chain, index, data), Result.COPIED)
            self.assertEqual(blocks.match(chain), kvcache.Match(0, 4, 0))
            expected = [content(chain.key(index), blocks.shape.block_bytes) for index in range(4)]
            self.assertEqual(blocks.get(chain), expected)
            with blocks.view(chain, 1, 3) as pieces:
                self.assertEqual(pieces, expected[1:3])
            region = client.region("/dev/shm/none")
            self.assertRegex(str(region.error), "another host, runs as another user, or does not")


class PackageTest(unittest.TestCase):
    def test_version_is_that_of_the_project(self) -> None:
        project = pathlib.Path(__file__).resolve().parents[1] / "pyproject.toml"
        self.assertIn(f'version = "{kvcache.__version__}"', project.read_text())


if __name__ == "__main__":
    unittest.main()
