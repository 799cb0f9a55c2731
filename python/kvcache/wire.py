"""Frames of the protocol, version 1: little-endian, a header of 32 bytes, a body and a payload."""

from __future__ import annotations

import enum
import struct
from collections.abc import Sequence
from typing import List, Tuple, Union

PACKAGE_VERSION = "0.1.0"
MAGIC = b"KVC1"
HEADER = struct.Struct("<4sHHQIIQ")
HEADER_BYTES = HEADER.size
DEFAULT_PORT = 7420
MAX_BODY_BYTES = 4 << 20
MAX_PAYLOAD_BYTES = 256 << 20
MAX_KEYS = 8192
MAX_KEY_BYTES = 4096

ERROR, HELLO, AUTH, PING, RENEW, SHARE, STAGE = 0, 1, 2, 3, 4, 5, 7
REGISTER, DROP_NAMESPACE, REGION, DROP_REGION, VIEW = 8, 9, 12, 13, 14
CHAIN, MATCH, ACQUIRE, PROGRESS = 16, 17, 18, 19
READ, DATA, RELEASE, DROP_CHAIN, PLACES, COPY, READ_RANGE = 20, 21, 22, 23, 25, 27, 28
PUT, PUT_STAGED = 35, 37
GET_OBJECT, CONTAINS_OBJECT, DROP_OBJECT, PUT_OBJECT = 41, 42, 43, 44
PUT_OBJECT_STAGED, HINT_OBJECTS, MATCH_OBJECTS = 45, 46, 47
STATS, LIST_OBJECTS, DROP_OBJECTS = 48, 52, 53

SHARED_MEMORY = 1
STAGING = 4
"""Capability bit of servers with memory that puts are written into."""

MAX_RANGE_BYTES = 16 << 20
MAX_RANGES = 8192
"""Of one READ_RANGE, all bytes and blocks."""

NO_CHECKSUM = 1


class Code(enum.IntEnum):
    """A number of the protocol that is shown by its name, in every version of Python."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}.{self.name}"

    __str__ = __repr__

    def __format__(self, spec: str) -> str:
        return format(str(self), spec)


class Result(Code):
    """What became of one value or block. The server answers the first six for a value of a job.

    True where the value is where it was wanted: ``COPIED`` and ``PRESENT``. The numbers are those of the protocol.
    """

    COPIED = 0
    PRESENT = 1
    ABSENT = 2
    OTHER_SIZE = 3
    NO_ROOM = 4
    DECLINED = 5
    BUSY = 6
    NO_PARENT = 7
    FOREIGN = 8

    @property
    def stored(self) -> bool:
        """Whether the server has the value after a store."""
        return self in (Result.COPIED, Result.PRESENT)

    def __bool__(self) -> bool:
        return self.stored


COPY_RESULTS = tuple(Result)[: Result.DECLINED + 1]
"""By their codes in a reply to COPY."""


def copy_results(reply: bytes) -> List[Result]:
    """What became of the values of a COPY; raises LookupError where the server answers what is not known here."""
    (count,) = _U32.unpack_from(reply)
    return [COPY_RESULTS[each] for each in reply[8 : 8 + count]]


def put_result(reply: bytes) -> Result:
    """What became of a put, by the outcomes of reserving and filling, and the cause of the first."""
    reserved, filled, cause = reply[:3]
    if reserved == 0:
        return Result.COPIED if filled < 2 else Result.NO_ROOM
    if reserved == 2:
        return Result.FOREIGN if cause else Result.BUSY
    if reserved == 4:
        return Result.DECLINED if cause else Result.NO_ROOM
    return {1: Result.PRESENT, 3: Result.NO_PARENT}.get(reserved, Result.NO_ROOM)


_U16 = struct.Struct("<H")
_U32 = struct.Struct("<I")


def text(value: str) -> bytes:
    """A text of the protocol: its length in two bytes, then UTF-8."""
    encoded = value.encode()
    if len(encoded) > 0xFFFF:
        raise ValueError(f"a text of {len(encoded)} bytes; allowed: 0 to {0xFFFF}")
    return _U16.pack(len(encoded)) + encoded


def read_text(body: bytes, at: int) -> Tuple[str, int]:
    """Returns a text and where it ends."""
    (length,) = _U16.unpack_from(body, at)
    begin = at + 2
    return body[begin : begin + length].decode("utf-8", "replace"), begin + length


def key(value: Union[bytes, bytearray, memoryview]) -> bytes:
    """Checks a key."""
    if not isinstance(value, (bytes, bytearray, memoryview)):
        raise TypeError(f"a key is {type(value).__name__}; allowed: bytes")
    plain = value if type(value) is bytes else bytes(value)
    if not 1 <= len(plain) <= MAX_KEY_BYTES:
        raise ValueError(f"a key of {len(plain)} bytes; allowed: 1 to {MAX_KEY_BYTES}")
    return plain


def nanos(seconds: float, most: float = 10 * 365 * 86_400, name: str = "seconds") -> int:
    """Checks a time, and returns it in nanoseconds."""
    if not isinstance(seconds, (int, float)) or not 0 <= seconds <= most:
        raise ValueError(f"{name} = {seconds!r:.100}; allowed: 0 to {most:g}")
    return int(seconds * 1e9)


def keys(values: Sequence[bytes]) -> bytes:
    """Keys of objects, each behind its length."""
    if set(map(type, values)) - {bytes}:
        values = [key(each) for each in values]
    lengths = set(map(len, values))
    for size in lengths:
        if not 1 <= size <= MAX_KEY_BYTES:
            raise ValueError(f"a key of {size} bytes; allowed: 1 to {MAX_KEY_BYTES}")
    if len(lengths) == 1:
        length = _U32.pack(lengths.pop())
        return length + length.join(values)
    return b"".join(_U32.pack(len(key)) + key for key in values)


def header(kind: int, request: int, body: int, payload: int = 0, deadline: int = 0) -> bytes:
    """The header of a request."""
    if body > MAX_BODY_BYTES:
        raise ValueError(f"a body of {body} bytes; allowed: 0 to {MAX_BODY_BYTES}; send fewer keys at a time")
    if payload > MAX_PAYLOAD_BYTES:
        raise ValueError(f"a value of {payload} bytes; allowed: 1 to {MAX_PAYLOAD_BYTES}")
    return HEADER.pack(MAGIC, kind, 0, request, body, payload, deadline)
