"""`cltensor.hub`: checkpoints downloaded from the network and kept in a folder. Code is not downloaded: `load` raises.

The folder is the one given to `set_dir`, else $TORCH_HOME/hub, else `hub` in the platform's cache folder for cltensor.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import sys
import tempfile
import urllib.request
from pathlib import Path
from typing import Any, NoReturn
from urllib.parse import urlparse

__all__ = [
    "download_url_to_file",
    "get_dir",
    "help",
    "list",
    "load",
    "load_state_dict_from_url",
    "set_dir",
]

try:
    from tqdm import tqdm
except ImportError:

    class tqdm:  # type: ignore[no-redef]
        """Progress of a download as a number on stderr, in place of tqdm's bar."""

        def __init__(
            self, total: int | None = None, disable: bool = False, unit: str = "", **options: Any
        ) -> None:
            self.total, self.disable, self.n = total, disable, 0

        def update(self, n: int) -> None:
            """Add n received bytes and show the progress."""
            self.n += n
            if not self.disable:
                shown = f"{100 * self.n / self.total:.1f}%" if self.total else f"{self.n} bytes"
                sys.stderr.write(f"\r{shown}")

        def close(self) -> None:
            """Show nothing from now on."""
            self.disable = True

        def __enter__(self) -> Any:
            return self

        def __exit__(self, *error: Any) -> None:
            if not self.disable:
                sys.stderr.write("\n")


_CHUNK = 1 << 17
HASH_REGEX = re.compile(r"-([a-f0-9]*)\.")  # the hash in the names of torch's model files
_dir: str | None = None


def get_dir() -> str:
    """Return the folder of downloaded files."""
    if _dir is not None:
        return _dir
    return str(Path(_get_torch_home()) / "hub")


def _get_torch_home() -> str:
    home = os.environ.get("TORCH_HOME")
    if home is not None:
        return os.path.expanduser(home)
    import platformdirs

    return platformdirs.user_cache_dir("cltensor")


def set_dir(d: str | os.PathLike[str]) -> None:
    """Set the folder of downloaded files."""
    global _dir
    _dir = os.path.expanduser(d)


def download_url_to_file(
    url: str, dst: str, hash_prefix: str | None = None, progress: bool = True
) -> None:
    """Download a file; `dst` is written whole or not at all.

    RuntimeError when the file's SHA-256 does not begin with `hash_prefix`. `progress` shows the progress on stderr.
    """
    path = Path(dst).expanduser()
    digest = hashlib.sha256()
    request = urllib.request.Request(url, headers={"User-Agent": "cltensor.hub"})
    handle, partial = tempfile.mkstemp(dir=path.parent, prefix=path.name, suffix=".partial")
    try:
        with os.fdopen(handle, "wb") as file, urllib.request.urlopen(request) as source:
            size = source.headers.get("Content-Length")
            with tqdm(
                total=int(size) if size else None, disable=not progress, unit="B", unit_scale=True
            ) as bar:
                while block := source.read(_CHUNK):
                    file.write(block)
                    digest.update(block)
                    bar.update(len(block))
        found = digest.hexdigest()
        if hash_prefix is not None and not found.startswith(hash_prefix):
            raise RuntimeError(
                f'invalid hash value (expected "{hash_prefix}", got "{found[: len(hash_prefix)]}")'
            )
        os.replace(partial, path)
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(partial)


def load_state_dict_from_url(
    url: str,
    model_dir: str | None = None,
    map_location: Any = None,
    progress: bool = True,
    check_hash: bool = False,
    file_name: str | None = None,
    weights_only: bool = True,
) -> Any:
    """Load a checkpoint from the network, or from `model_dir` (`get_dir()/checkpoints`) if it was downloaded before.

    check_hash: verify the download against the part of its SHA-256 in the file's name. Loading is always weights-only.
    """
    from .serialization import load as load_file

    folder = Path(model_dir) if model_dir is not None else Path(get_dir()) / "checkpoints"
    folder.mkdir(parents=True, exist_ok=True)
    name = file_name or os.path.basename(urlparse(url).path)
    path = folder / name
    if not path.exists():
        found = HASH_REGEX.search(name) if check_hash else None
        download_url_to_file(url, str(path), found.group(1) if found else None, progress)
    return load_file(path, map_location=map_location, weights_only=True)


_Trust = bool | str | None


def _refuse(function: str, repo: str) -> NoReturn:
    raise NotImplementedError(
        f"hub.{function}: the code of {repo} is not fetched; define its models with cltensor and use load_state_dict_from_url"
    )


def load(
    repo_or_dir: str, model: str, *args: Any, source: str = "github", trust_repo: _Trust = "check", force_reload: bool = False,
    verbose: bool = True, skip_validation: bool = False, **kwargs: Any,
) -> NoReturn:  # fmt: skip
    """Raise NotImplementedError: code written for torch is not downloaded and run."""
    _refuse("load", repo_or_dir)


def list(
    github: str, force_reload: bool = False, skip_validation: bool = False, trust_repo: _Trust = "check", verbose: bool = True
) -> NoReturn:  # fmt: skip
    """NotImplementedError, as `load`."""
    _refuse("list", github)


def help(
    github: str, model: str, force_reload: bool = False, skip_validation: bool = False, trust_repo: _Trust = "check"
) -> NoReturn:  # fmt: skip
    """NotImplementedError, as `load`."""
    _refuse("help", github)
