"""Builds wheel and source archive with the standard library alone, for pip and for ``./kvcache python-dist``.

The same sources give the same bytes.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import io
import pathlib
import re
import sys
import tarfile
import zipfile

_HERE = pathlib.Path(__file__).resolve().parent
_TIME = (2026, 1, 1, 0, 0, 0)
_ENTRY_POINTS = b"[vllm.general_plugins]\nkvcache = kvcache.vllm_compat:register\n"


def _project() -> dict:
    """The plain settings of pyproject.toml; Python before 3.11 has no reader for it."""
    text = (_HERE / "pyproject.toml").read_text(encoding="utf-8")
    found = dict(re.findall(r'^([a-z-]+) = "(.*)"$', text, re.MULTILINE))
    lists = re.findall(r"^([a-z-]+) = \[(.*?)\]$", text, re.MULTILINE | re.DOTALL)
    return {**found, **{name: re.findall(r'"([^"]*)"', body) for name, body in lists}}


def _metadata() -> str:
    project = _project()
    lines = [
        "Metadata-Version: 2.4",
        f"Name: {project['name']}",
        f"Version: {project['version']}",
        f"Summary: {project['description']}",
        f"License-Expression: {project['license']}",
        "License-File: LICENSE",
        f"Requires-Python: {project['requires-python']}",
        f"Keywords: {','.join(project['keywords'])}",
        *(f"Classifier: {each}" for each in project["classifiers"]),
        "Description-Content-Type: text/markdown",
        "",
        (_HERE / "README.md").read_text(encoding="utf-8"),
    ]
    return "\n".join(lines)


def _license() -> bytes:
    beside = _HERE / "LICENSE"
    return (beside if beside.exists() else _HERE.parent / "LICENSE").read_bytes()


def _sources(*folders: str) -> list:
    found = []
    for folder in folders:
        found += [
            path for path in sorted((_HERE / folder).rglob("*")) if path.suffix == ".py" or path.name == "py.typed"
        ]
    return found


def build_wheel(wheel_directory: str, config_settings: object = None, metadata_directory: object = None) -> str:
    """Builds the wheel, and returns the name of its file."""
    project = _project()
    stem = f"{project['name']}-{project['version']}"
    info = f"{stem}.dist-info"
    files = {path.relative_to(_HERE).as_posix(): path.read_bytes() for path in _sources("kvcache")}
    files[f"{info}/METADATA"] = _metadata().encode()
    files[f"{info}/WHEEL"] = b"Wheel-Version: 1.0\nGenerator: kvcache\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    files[f"{info}/entry_points.txt"] = _ENTRY_POINTS
    files[f"{info}/licenses/LICENSE"] = _license()
    records = []
    name = f"{stem}-py3-none-any.whl"
    with zipfile.ZipFile(pathlib.Path(wheel_directory) / name, "w", zipfile.ZIP_DEFLATED) as wheel:
        for path, content in files.items():
            digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
            records.append(f"{path},sha256={digest},{len(content)}")
            _add(wheel, path, content)
        _add(wheel, f"{info}/RECORD", "\n".join([*records, f"{info}/RECORD,,", ""]).encode())
    return name


def _add(wheel: zipfile.ZipFile, path: str, content: bytes) -> None:
    entry = zipfile.ZipInfo(path, _TIME)
    entry.external_attr = 0o644 << 16
    entry.compress_type = zipfile.ZIP_DEFLATED
    wheel.writestr(entry, content)


def build_sdist(sdist_directory: str, config_settings: object = None) -> str:
    """Builds the source archive, and returns the name of its file."""
    project = _project()
    stem = f"{project['name']}-{project['version']}"
    files = {path.relative_to(_HERE).as_posix(): path.read_bytes() for path in _sources("kvcache", "tests")}
    for plain in ("pyproject.toml", "build_backend.py", "README.md"):
        files[plain] = (_HERE / plain).read_bytes()
    files["LICENSE"] = _license()
    files["PKG-INFO"] = _metadata().encode()
    name = f"{stem}.tar.gz"
    path = pathlib.Path(sdist_directory) / name
    with open(path, "wb") as file, gzip.GzipFile("", "wb", fileobj=file, mtime=0) as packed:
        with tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as archive:
            for source, content in sorted(files.items()):
                entry = tarfile.TarInfo(f"{stem}/{source}")
                entry.size = len(content)
                entry.mode = 0o644
                archive.addfile(entry, io.BytesIO(content))
    return name


if __name__ == "__main__":
    target = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else "dist")
    target.mkdir(parents=True, exist_ok=True)
    for built in (build_wheel(str(target)), build_sdist(str(target))):
        print(target / built)
