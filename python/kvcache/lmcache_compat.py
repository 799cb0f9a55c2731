"""LMCache's classes that the adapter uses, where each version has them, and the versions that it was tested with."""

from __future__ import annotations

import importlib.metadata
import logging
import re
from typing import Optional, Tuple

OLDEST, NEWEST = "0.5.3", "0.5.6"
"""The adapter's tests ran with both, as they were released."""

try:
    try:
        from lmcache.lmcache_native import Bitmap
    except ImportError:  # the module was renamed after 0.5.3
        from lmcache.native_storage_ops import Bitmap
    from lmcache.v1.distributed.api import KeyEntry, KeyListPage, ObjectKey
    from lmcache.v1.distributed.internal_api import L2StoreResult
    from lmcache.v1.distributed.l2_adapters.base import L2AdapterInterface
except ImportError as missing:
    raise ImportError(
        f"kvcache.lmcache was tested with LMCache {OLDEST} to {NEWEST}; this one lacks what it needs: {missing}"
    ) from missing

__all__ = [
    "Bitmap",
    "KeyEntry",
    "KeyListPage",
    "L2AdapterInterface",
    "L2StoreResult",
    "ObjectKey",
    "check_version",
]

logger = logging.getLogger(__name__)


def _numbers(version: str) -> Tuple[int, ...]:
    return tuple(int(each) for each in re.findall(r"\d+", version)[:3])


def check_version() -> None:
    """Warns where the installed LMCache is none of the versions from ``OLDEST`` to ``NEWEST``."""
    found: Optional[str] = None
    try:
        found = importlib.metadata.version("lmcache")
    except importlib.metadata.PackageNotFoundError:
        return  # a copy of its source has no version
    if not _numbers(OLDEST) <= _numbers(found) <= _numbers(NEWEST):
        logger.warning("LMCache is %s; kvcache.lmcache was tested with %s to %s", found, OLDEST, NEWEST)
