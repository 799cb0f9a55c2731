"""Servers for tests: real ones, each with ports of its own.

``KVCACHE_TEST_SERVER`` is the command that ``serve`` and its options are appended to; without it, ``./kvcache`` of this
checkout.
"""

from __future__ import annotations

import ctypes
import os
import pathlib
import random
import shlex
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import unittest
import urllib.request
from typing import List, Optional

_ROOT = pathlib.Path(__file__).resolve().parents[2]
_START_SECONDS = 180


def end_with_parent() -> None:
    """Has the process that calls it end when the tests are killed, and cannot end it."""
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)


def free_ports(count: int) -> List[int]:
    """Different ports, below those that the system gives to sockets without a wish: nothing else gets one meanwhile."""
    ports: List[int] = []
    while len(ports) < count:
        port = random.randrange(10_000, 30_000)
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
        if port not in ports:
            ports.append(port)
    return ports


def free_port() -> int:
    return free_ports(1)[0]


class Server:
    """A server process; ``kill`` ends it as a power cut would, ``start`` begins another at the same ports."""

    def __init__(self, host_bytes: str = "64MiB", *options: str, waits: bool = True) -> None:
        self.port, self.transport = free_ports(2)
        self.address = f"127.0.0.1:{self.transport}"
        self._options = ["--host-bytes", host_bytes, *options]
        self._log = tempfile.NamedTemporaryFile("w+", prefix="kvcache-test-", suffix=".log")
        self.process: Optional[subprocess.Popen] = None
        self.launch()
        if waits:
            self.await_start()

    def command(self) -> List[str]:
        command = os.environ.get("KVCACHE_TEST_SERVER")
        words = shlex.split(command) if command else [str(_ROOT / "kvcache")]
        listen = ["--port", str(self.port), "--transport", self.address]
        return [*words, "serve", *listen, *self._options]

    def start(self) -> None:
        self.launch()
        self.await_start()

    def launch(self) -> None:
        """Begins a process, which ends with the thread that calls this."""
        self._log.seek(0)
        self._log.truncate()
        self.process = subprocess.Popen(
            self.command(), stdout=self._log, stderr=subprocess.STDOUT, start_new_session=True, preexec_fn=end_with_parent
        )

    def await_start(self) -> None:
        assert self.process is not None
        end = time.monotonic() + _START_SECONDS
        while time.monotonic() < end:
            if "serves at" in self.log():
                return
            if self.process.poll() is not None:
                break
            time.sleep(0.05)
        self.kill()
        raise AssertionError(f"the server did not start:\n{self.log()}")

    def log(self) -> str:
        with open(self._log.name, encoding="utf-8") as log:
            return log.read()

    def pid(self) -> int:
        assert self.process is not None
        return self.process.pid

    def signal(self, number: int) -> None:
        os.killpg(self.pid(), number)
        if number == signal.SIGSTOP:  # a thread may be in the middle of a copy until it has heard of it
            until(self._is_stopped, "the server to stop")

    def _is_stopped(self) -> bool:
        states = []
        for task in pathlib.Path(f"/proc/{self.pid()}/task").iterdir():
            states.append((task / "stat").read_text().rpartition(")")[2].split()[0])
        return set(states) == {"T"}

    def kill(self) -> None:
        assert self.process is not None
        if self.process.poll() is None:
            self.signal(signal.SIGKILL)
            self.process.wait()

    def close(self) -> None:
        assert self.process is not None
        if self.process.poll() is None:
            self.signal(signal.SIGCONT)
            self.signal(signal.SIGTERM)
            try:
                self.process.wait(30)
            except subprocess.TimeoutExpired:
                self.kill()
        self._log.close()
        for left in pathlib.Path("/dev/shm").glob(f"kvcache-*-{self.transport}"):
            shutil.rmtree(left, ignore_errors=True)  # of a server that was killed

    def meter(self, name: str, *labels: str) -> int:
        """The sum of the server's meters whose names begin so, with labels such as ``result="hit"``."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/metrics", timeout=30) as reply:
            lines = reply.read().decode().splitlines()
        found = [line for line in lines if line.startswith(name) and all(label in line for label in labels)]
        return int(sum(float(line.rpartition(" ")[2]) for line in found))


class ClusterNode(Server):
    """A server of a cluster on this host."""

    def __init__(self, name: str, listen: int, seeds: List[int], host_bytes: str, *options: str) -> None:
        self.name = name
        addresses = ",".join(f"127.0.0.1:{seed}" for seed in seeds)
        settings = [f"name=python-{seeds[0]}", f"node={name}", f"listen=127.0.0.1:{listen}", f"seeds={addresses}"]
        cluster = [word for each in settings for word in ("--set", f"cluster.{each}")]
        super().__init__(host_bytes, *cluster, "--set", "cluster.failure_after=5s", *options, waits=False)


class Cluster:
    """Servers of a cluster, which are started together; ``join`` adds one."""

    def __init__(self, count: int = 3, host_bytes: str = "128MiB", *options: str) -> None:
        self._listens = free_ports(count + 1)
        self._options = (host_bytes, *options)
        self.nodes: List[ClusterNode] = []
        try:
            for _ in range(count):
                self._launch()
            for node in self.nodes:
                node.await_start()
        except BaseException:
            self.close()
            raise

    def _launch(self) -> ClusterNode:
        number = len(self.nodes)
        node = ClusterNode(f"kv-{number}", self._listens[number], self._listens[:3], *self._options)
        self.nodes.append(node)
        return node

    def join(self) -> None:
        self._launch().await_start()

    @property
    def address(self) -> str:
        """Of the first two servers."""
        return ",".join(node.address for node in self.nodes[:2])

    def close(self) -> None:
        for node in self.nodes:
            node.close()


class ServedTest(unittest.TestCase):
    """Tests that share a server."""

    server: Server
    host_bytes = "64MiB"

    @classmethod
    def setUpClass(cls) -> None:
        cls.server = Server(cls.host_bytes)

    @classmethod
    def tearDownClass(cls) -> None:
        cls.server.close()


def until(condition, what: str, seconds: float = 60.0) -> None:
    """Waits until something is so."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            raise AssertionError(f"not within {seconds:g} s: {what}")
        time.sleep(0.02)
