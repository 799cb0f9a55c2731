"""What can go wrong between this process and a server."""

from __future__ import annotations

from kvcache.wire import Code


class Status(Code):
    """The status of a reply; numbers that are not known count as FAILED."""

    OK = 0
    UNSUPPORTED = 1
    INVALID = 2
    UNAUTHORIZED = 3
    FORBIDDEN = 4
    GONE = 5
    CORRUPT = 6
    BUSY = 7
    FAILED = 8

    @classmethod
    def of(cls, code: int) -> Status:
        return cls(code) if 0 <= code <= 8 else cls.FAILED


class KvCacheError(Exception):
    """Anything that this package raises."""


class ConnectionLost(KvCacheError):
    """There is no server at the address, or the connection to it has ended. Later calls connect again."""


class Rejected(KvCacheError):
    """The server rejected a request; the text names the value and what is allowed."""

    def __init__(self, status: Status, text: str, of_chain: bool = False) -> None:
        super().__init__(f"{status.name}: {text}")
        self.status = status
        self.text = text
        self.of_chain = of_chain
        """Whether the cause is a chain that the server lacks or did not keep."""
