"""The client against real servers."""

from __future__ import annotations

import ctypes
import mmap
import os
import random
import shutil
import signal
import ssl
import subprocess
import tempfile
import threading
import time
import unittest

import kvcache
from kvcache import Client, ConnectionLost, KvCacheError, Rejected, Result
from kvcache.memory import address_of
from kvcache.mover import Mover

from tests.content import content
from tests.serving import ServedTest, Server, free_port, until


def pool(size: int):
    """Shared memory as an engine has it, in a file of /dev/shm; and the file, which the caller removes."""
    file = tempfile.NamedTemporaryFile(dir="/dev/shm", prefix="kvcache-test-", suffix=".pool")
    file.truncate(size)
    return memoryview(mmap.mmap(file.fileno(), size)), file


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

    def test_namespaces_are_apart(self) -> None:
        other = self.client.namespace("model", layout="another")
        self.values.put(b"k", b"mine")
        self.assertIsNone(other.get(b"k"))
        self.assertIs(self.client.namespace("model", layout="another"), other)

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
            ("/dev/null", "is not memory"),
            ("/dev/shm/none", "does not exist"),
            ("relative", "allowed: an absolute path"),
        ):
            region = self.client.region(path)
            self.assertRegex(str(region.error), words)
            job = self.values.submit_load(region, [(b"k", [(0, 1)])])
            self.assertTrue(job.done)
            self.assertIs(job.error, region.error)
            region.close()

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
        for address in ("nowhere", "host:0", "host:70000", ":7420"):
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
            (lambda: self.client.namespace("m", layout="x" * 513), "is no text of up to 512 bytes"),
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
        with self.assertRaisesRegex(ConnectionLost, "the client is closed"):
            values.get(b"k")


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

    def test_a_stopped_server_fails_jobs_in_time_and_touches_nothing_later(self) -> None:
        server = Server("64MiB")
        self.addCleanup(server.close)
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
        server = Server("256MiB")
        self.addCleanup(server.close)
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

    def test_a_job_outlives_an_impatient_wait(self) -> None:
        server = Server("64MiB")
        self.addCleanup(server.close)
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
            with self.assertRaisesRegex(ConnectionLost, "no TLS; allowed: TLS"):
                Client(server.address)
            with self.assertRaisesRegex(ConnectionLost, "CERTIFICATE_VERIFY_FAILED"):
                Client(server.address, tls=True)


class DiskTest(unittest.TestCase):
    def test_values_on_a_disk_are_loaded_while_later_requests_go_on(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            server = Server("64MiB", "--disk", f"{folder}:512MiB", "--set", "admission=always")
            self.addCleanup(server.close)
            client = Client(server.address)
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
            region = client.region("/dev/shm/none")
            self.assertRegex(str(region.error), "another host, or shares no memory")


class PackageTest(unittest.TestCase):
    def test_version_is_that_of_the_project(self) -> None:
        self.assertRegex(kvcache.__version__, r"^\d+\.\d+\.\d+$")


if __name__ == "__main__":
    unittest.main()
