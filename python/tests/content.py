"""Bytes that follow from their key, so that each value that comes back can be checked."""

from __future__ import annotations

import hashlib

_PERIOD = 4099
"""A prime: a block that lies at the wrong place of a page differs."""


def content(key: bytes, size: int) -> bytes:
    """Returns the one value of a key and size."""
    period = hashlib.shake_128(key).digest(_PERIOD)
    return (period * (size // _PERIOD + 1))[:size]
