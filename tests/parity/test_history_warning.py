"""Converting a tensor that requires grad to a Python number warns as in torch; so do deprecated orders of arguments."""

from __future__ import annotations

import warnings
from typing import Any

import pytest
from parity.oracle import th
from support import ct


@pytest.fixture(autouse=True)
def _always() -> Any:
    for torch in (th, ct):
        torch.set_warn_always(True)
    yield
    for torch in (th, ct):
        torch.set_warn_always(False)


@pytest.mark.parametrize(
    "line", ["float(r)", "int(r)", "bool(r)", "complex(r)", "r.item()", "r.tolist()", "float(r * 2)", "'%f' % r", "float(r.detach())"],
)  # fmt: skip
@pytest.mark.parametrize("enabled", [True, False])
def test_warning(line: str, enabled: bool) -> None:
    found = []
    for torch in (th, ct):
        r = torch.tensor(2.0, requires_grad=True)
        with torch.set_grad_enabled(enabled), warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            eval(line, {"r": r})
        found.append([(w.category, str(w.message).partition(" (Triggered")[0]) for w in seen])
    assert found[1] == found[0]


@pytest.mark.parametrize(
    "line", ["torch.addcmul(r, 2, r, r)", "torch.addcdiv(r, 2, r, r)", "torch.add(r, 2, r)", "torch.addmv(1, r, 2, torch.ones(1, 1), r)"],
)  # fmt: skip
def test_old_places_of_numbers_warn_each_time(line: str) -> None:
    found = []
    for torch in (th, ct):
        r = torch.tensor([2.0])
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            results = [eval(line, {"r": r, "torch": torch}).tolist() for _ in range(2)]
        found.append((results, [(w.category, str(w.message).partition(":")[0]) for w in seen]))
    assert found[1] == found[0] and len(found[0][1]) == 2
