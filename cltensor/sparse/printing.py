"""How a sparse tensor is written out, character for character as torch writes it."""

from __future__ import annotations

from typing import Any

from .. import dtypes, printing
from ..memory_format import sparse_coo, sparse_csr
from ..runtime import home_type


def _part(name: str, t: Any, indent: int) -> str:
    opening = f"{name}=tensor("
    t = t.detach()
    if not t.numel():
        return f"{opening}[], size={tuple(t.shape)})"
    return f"{opening}{printing._contents(t, indent + len(opening), printing._options)})"


def _parts(s: Any) -> list[tuple[str, Any]]:
    if s.layout is sparse_coo:
        return [("indices", s._indices()), ("values", s._values())]
    pointer, plain, _ = s._pattern.compressed
    names = (
        ("crow_indices", "col_indices")
        if s.layout is sparse_csr
        else ("ccol_indices", "row_indices")
    )
    return [(names[0], pointer), (names[1], plain), ("values", s._values())]


def sparse_str(s: Any) -> str:
    """Return the printed form of a sparse tensor."""
    prefix = "tensor(" if type(s).__name__ == "SparseTensor" else f"{type(s).__name__}("
    indent = len(prefix)
    text = prefix + (",\n" + " " * indent).join(_part(name, t, indent) for name, t in _parts(s))
    suffixes = [] if s.device.type == home_type() else [f"device='{s.device}'"]
    suffixes += [f"size={tuple(s.shape)}", f"nnz={s._nnz()}"]
    default = dtypes.get_default_dtype()
    usual = (default, dtypes.to_complex(default), dtypes.int64, dtypes.bool)
    if s.dtype not in usual:
        suffixes.append(f"dtype={s.dtype}")
    suffixes.append(f"layout={s.layout}")
    if s.grad_fn is not None:
        suffixes.append(f"grad_fn=<{type(s.grad_fn).__name__}>")
    elif s.requires_grad:
        suffixes.append("requires_grad=True")
    column = len(text) - text.rfind("\n") + 1
    apart = s.layout is sparse_coo
    for suffix in suffixes:
        if apart or column + len(suffix) + 2 > printing._options.linewidth:
            text += ",\n" + " " * indent + suffix
            column, apart = indent + len(suffix), False
        else:
            text += ", " + suffix
            column += len(suffix) + 2
    return text + ")"
