"""The settings that all connectors take."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any, Dict, Tuple

from kvcache.client import Client
from kvcache.errors import KvCacheError

logger = logging.getLogger(__name__)

NAMES = ("address", "tenant", "secret_file", "tls", "timeout")
"""Server as ``host`` or ``host:port``; tenant that the engine speaks for; file with the secret, where the server asks for one;
whether to use TLS; seconds after which a job has failed."""


def split(settings: Mapping[str, Any]) -> Tuple[Dict[str, Any], Dict[str, Any]]:
    """Splits settings into those of the client and all others."""
    mine = {name: value for name, value in settings.items() if name in NAMES}
    return mine, {name: value for name, value in settings.items() if name not in NAMES}


def open_client(settings: Mapping[str, Any]) -> Client:
    """Opens a client. An engine starts without its cache: a server that does not answer is only logged."""
    secret = None
    if settings.get("secret_file"):
        with open(settings["secret_file"], "rb") as file:
            secret = file.readline().rstrip(b"\r\n")
    client = Client(
        settings.get("address", "127.0.0.1"),
        tenant=settings.get("tenant", ""),
        secret=secret,
        tls=bool(settings.get("tls", False)),
        timeout=float(settings.get("timeout", 10.0)),
        lazy=True,
    )
    try:
        client.connect()
    except KvCacheError as failed:
        logger.warning("KVCache: %s; going on without it until it answers", failed)
    return client
