"""What an engine has reset, and the server has not dropped yet."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Sequence
from typing import Any, Callable

from kvcache.client import Namespace
from kvcache.errors import KvCacheError

logger = logging.getLogger(__name__)

_PAUSE_SECONDS = 1.0


class Reset:
    """Drops an engine's namespaces, also where the server does not answer when it is asked first.

    As long as a drop is pending, nothing of the namespaces may be found or stored. Threads: any.

    :param namespaces: returns what is to be dropped
    """

    def __init__(self, client: Any, namespaces: Callable[[], Sequence[Namespace]]) -> None:
        self._client = client
        self._namespaces = namespaces
        self._lock = threading.Lock()
        self._resets = 0
        self._ask_at = 0.0
        self.pending = False

    def begin(self) -> None:
        """Has nothing be found from now on."""
        with self._lock:
            self._resets += 1
            self._ask_at = 0.0
            self.pending = True

    def drop(self) -> bool:
        """Waits for the drop; returns whether nothing is pending then."""
        reset = self._resets
        try:
            for each in self._namespaces():
                each.drop()
        except KvCacheError as failed:
            logger.debug("not dropped: %s", failed)
            return False
        self._dropped(reset)
        return True

    def _dropped(self, reset: int) -> None:
        with self._lock:
            self.pending = self.pending and reset != self._resets

    def ask(self) -> None:
        """Asks the server again for a drop that is pending, once a second. Never waits."""
        self._client.poll()
        with self._lock:
            if not self.pending or time.monotonic() < self._ask_at:
                return
            self._ask_at = time.monotonic() + _PAUSE_SECONDS
            reset = self._resets
        namespaces = list(self._namespaces())
        left = [len(namespaces)]

        def hear(done: bool) -> None:
            with self._lock:
                left[0] -= done
                over = left[0] == 0
            if over:
                self._dropped(reset)

        for each in namespaces:
            each.submit_drop(hear)
