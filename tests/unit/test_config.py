"""The record of CLTENSOR_* variables: defaults, values, and errors that name the variable."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from cltensor.config import Config, from_env, parse_bytes


def test_defaults() -> None:
    assert from_env({}) == Config()
    assert from_env({"CLTENSOR_DEBUG": "", "CLTENSOR_DEVICE": " "}) == Config()


def test_every_variable() -> None:
    found = from_env(
        {
            "CLTENSOR_DEVICE": "opencl:1",
            "CLTENSOR_EAGER": "1",
            "CLTENSOR_DEBUG": "4",
            "CLTENSOR_CACHE_DIR": "/some/where",
            "CLTENSOR_CACHE_SIZE": "64M",
            "CLTENSOR_CPU": "intel",
            "CLTENSOR_POOL_CAP": "1.5g",
        }
    )
    assert found == Config("opencl:1", True, 4, Path("/some/where"), 64 << 20, "intel", 3 << 29)


def test_frozen() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        Config().debug = 3


@pytest.mark.parametrize(
    ("text", "count"), [("0", 0), ("123", 123), ("2k", 2048), ("1MiB", 1 << 20), ("3 GB", 3 << 30)]
)
def test_bytes(text: str, count: int) -> None:
    assert parse_bytes("X", text) == count


@pytest.mark.parametrize("text", ["x", "-1", "1q", "k", "inf", "nan"])
def test_bad_bytes(text: str) -> None:
    with pytest.raises(ValueError, match="X must be a number of bytes"):
        parse_bytes("X", text)


@pytest.mark.parametrize(
    ("name", "value"), [("EAGER", "maybe"), ("DEBUG", "5"), ("DEBUG", "on"), ("CACHE_SIZE", "big")]
)
def test_errors_name_the_variable(name: str, value: str) -> None:
    with pytest.raises(ValueError, match=f"CLTENSOR_{name}"):
        from_env({f"CLTENSOR_{name}": value})


def test_relative_cache_folder_becomes_absolute() -> None:
    assert from_env({"CLTENSOR_CACHE_DIR": "here"}).cache_dir == Path("here").absolute()
