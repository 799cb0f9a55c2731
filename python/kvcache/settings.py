"""The settings that all connectors take."""

from __future__ import annotations

import hashlib
import importlib.metadata
import logging
import re
from collections.abc import Mapping
from typing import Any, Dict, Tuple, Union

from kvcache.client import Client
from kvcache.cluster import ClusterClient, connect
from kvcache.errors import KvCacheError

logger = logging.getLogger(__name__)

NAMES = ("address", "tenant", "secret_file", "tls", "timeout")
"""Server as ``host`` or ``host:port``, or servers of a cluster with commas between them or as a list; tenant that the
engine speaks for; file with the secret, where the server asks for one; whether to use TLS; seconds after which a job has failed."""


def split(settings: Mapping[str, Any]) -> Tuple[Dict[str, Any], Dict[str, Any]]:
    """Splits settings into those of the client and all others."""
    mine = {name: value for name, value in settings.items() if name in NAMES}
    return mine, {name: value for name, value in settings.items() if name not in NAMES}


_MOST_LAYOUT_BYTES = 440


def identity(form: str, *, model: Any, dtype: Any, revision: Any = "", **facts: Any) -> Dict[str, str]:
    """Returns the fields of the namespace of an engine's blocks, for ``Client.namespace`` and ``Client.blocks``.

    Blocks of engines that differ in one fact are apart.

    :param form: the connector, and the number of the form in which it stores blocks
    :param model: its name or path; ``revision`` where one was chosen
    :param dtype: of the keys and values as they are kept, by the engine's name: fp8_e4m3, not uint8
    :param facts: all else that must match, by name: quantisation of the weights, tokens a block, sizes and ranks of
        the parallelism, layout of a block
    :raises ValueError: where one is None, as blocks could be taken for another engine's; names it
    """
    told = {"model": model, "dtype": dtype, "revision": revision, **facts}
    unknown = [name for name, fact in told.items() if fact is None]
    if unknown or not model:
        names = ", ".join(unknown) or "model"
        raise ValueError(
            f"{form}: {names} cannot be read in the engine's configuration, so its blocks could be taken for those of"
            " another engine" + ("" if model else '; set "model"')
        )
    layout = " ".join((form, *(f"{name}={fact}" for name, fact in facts.items())))
    if len(layout.encode()) > _MOST_LAYOUT_BYTES:
        digest = hashlib.sha256(layout.encode()).hexdigest()
        layout = f"{form} sha256={digest}"
    return {"model": str(model), "revision": str(revision), "dtype": str(dtype), "layout": layout}


def _installed(package: str) -> str:
    """Returns a package and its version, or nothing where it is not installed."""
    try:
        return f"{package} {importlib.metadata.version(package)}"
    except importlib.metadata.PackageNotFoundError:
        return ""


def check_version(package: str, oldest: str, newest: str) -> None:
    """Warns where an engine's version is none of those that its connector was tried with.

    :param oldest: with as many numbers as count, such as 0.29 or 0.5.3
    """
    try:
        version = importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return
    ranks = [tuple(int(each) for each in re.findall(r"\d+", text)) for text in (oldest, version, newest)]
    low, here, high = (rank[: oldest.count(".") + 1] for rank in ranks)
    if not low <= here <= high:
        logger.warning(
            "KVCache was tried with %s %s to %s, and this is %s: what has another name there is refused or not used",
            package,
            oldest,
            newest,
            version,
        )


def open_client(settings: Mapping[str, Any], connector: str, *packages: str) -> Union[Client, ClusterClient]:
    """Opens a client of a server, or of a cluster where several are named.

    An engine starts without its cache: a server that does not answer is only logged.

    :param connector: which, as the server's operators see it beside the engine's version
    :param packages: names under which the engine may be installed
    """
    secret = None
    if settings.get("secret_file"):
        try:
            with open(settings["secret_file"], "rb") as file:
                secret = file.readline().rstrip(b"\r\n")
        except OSError as missing:
            path = settings["secret_file"]
            raise ValueError(f"secret_file = {path!r}: {missing.strerror}; allowed: a file to read") from None
    client = connect(
        settings.get("address", "127.0.0.1"),
        tenant=settings.get("tenant", ""),
        secret=secret,
        tls=bool(settings.get("tls", False)),
        timeout=float(settings.get("timeout", 10.0)),
        lazy=True,
        program=", ".join([*filter(None, map(_installed, packages)), connector]),
    )
    try:
        client.connect()
    except KvCacheError as failed:
        logger.warning("KVCache: %s; going on without it until it answers", failed)
    else:
        logger.info("KVCache: %r", client)
        if isinstance(client, Client) and not client.shares_memory:
            logger.warning(
                "KVCache: blocks are sent, as %s shares no memory with this process: another host or user, or"
                " transport.shared_memory",
                client.server,
            )
    return client
