"""Random faults of a server while engines work with it."""

from __future__ import annotations

import collections
import contextlib
import logging
import os
import random
import signal
import tempfile
import threading
from collections.abc import Iterator
from typing import Callable, Counter, List, Tuple

from tests.serving import Server, until

_KINDS = ("killed", "stopped", "slow", "full", "key", "password")
_WEIGHTS = (4, 4, 8, 28, 28, 28)
"""A server that is killed takes seconds to come back."""

_SOON_SECONDS = 0.2
_RUNS_SECONDS, _STANDS_SECONDS = 0.01, 0.05
"""A server that is slow gets a fraction of its time."""


@contextlib.contextmanager
def secrets() -> Iterator[Tuple[str, str]]:
    """Files with the server's secret, and with another one."""
    with tempfile.TemporaryDirectory(prefix="kvcache-faults-") as folder:
        files: List[str] = []
        for word in ("right", "wrong"):
            files.append(os.path.join(folder, word))
            with open(os.open(files[-1], os.O_CREAT | os.O_WRONLY, 0o600), "w") as file:
                file.write(word * 4)
        yield files[0], files[1]


@contextlib.contextmanager
def logged(name: str) -> Iterator[List[logging.LogRecord]]:
    """What a logger says of warnings and errors."""
    records: List[logging.LogRecord] = []
    handler = logging.Handler(logging.WARNING)
    handler.emit = records.append  # type: ignore[method-assign]
    logger = logging.getLogger(name)
    logger.addHandler(handler)
    try:
        yield records
    finally:
        logger.removeHandler(handler)


class Faults:
    """Faults of a server, one after the other.

    Killed, stopped and slow happen to the server, at a random moment of the work. What is full, a name that no server
    takes, and a wrong password are the work's own to do.
    """

    def __init__(self, server: Server, seed: int) -> None:
        self._server = server
        self.chosen = random.Random(seed)
        self.counts: Counter[str] = collections.Counter()
        self._seed = seed

    def run(self, count: int, work: Callable[[str], None], connected: Callable[[], bool]) -> None:
        """Has so many faults.

        :param work: what engines do, by the name of the fault; may raise nothing
        :param connected: whether all engines have a session again
        """
        for _ in range(count):
            kind = self.chosen.choices(_KINDS, _WEIGHTS)[0]
            self.counts[kind] += 1
            try:
                with self._away(kind) if kind in ("killed", "stopped") else self._slow(kind == "slow"):
                    work(kind)
                if kind in ("killed", "stopped"):
                    work(kind)
                    self._server.start() if kind == "killed" else self._server.signal(signal.SIGCONT)
                    until(connected, "the next sessions")
            except BaseException as failed:
                raise AssertionError(f"fault {self.total()} ({kind}) of seed {self._seed}") from failed

    @contextlib.contextmanager
    def _away(self, kind: str) -> Iterator[None]:
        """Has the server go while the work runs, and be gone afterwards."""
        begin = self._server.kill if kind == "killed" else lambda: self._server.signal(signal.SIGSTOP)
        timer = threading.Timer(self.chosen.random() * _SOON_SECONDS, begin)
        timer.start()
        try:
            yield
        finally:
            timer.join()

    @contextlib.contextmanager
    def _slow(self, slow: bool) -> Iterator[None]:
        over = threading.Event()

        def stand() -> None:
            while not over.wait(_RUNS_SECONDS):
                self._server.signal(signal.SIGSTOP)
                over.wait(_STANDS_SECONDS)
                self._server.signal(signal.SIGCONT)

        thread = threading.Thread(target=stand)
        if slow:
            thread.start()
        try:
            yield
        finally:
            over.set()
            if slow:
                thread.join()

    def told(self) -> str:
        """Returns the seed and how many faults there were of each kind."""
        kinds = ", ".join(f"{count} {kind}" for kind, count in sorted(self.counts.items()))
        return f"seed {self._seed}: {self.total()} faults ({kinds})"

    def total(self) -> int:
        return sum(self.counts.values())
