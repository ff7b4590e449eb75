"""`Function.apply` with names and defaults of arguments: results, errors and gradients are torch's."""

from __future__ import annotations

from typing import Any

import pytest
from parity.oracle import ct, th

CALLS = """
A.apply(x)
A.apply(x, (1,))
A.apply(x, scale=5)
A.apply(x=x, scale=5)
A.apply()
A.apply(x, 1, 2, 3)
A.apply(x, foo=3)
grad(A.apply(x).sum(), x)
grad(A.apply(x, scale=4).sum(), x)
vmap(A.apply)(y)
vmap(lambda a: A.apply(a, scale=2))(y)
vmap(G.apply)(y)
vmap(lambda a: G.apply(a, scale=2))(y)
B.apply(x)
B.apply(x, scale=2)
B.apply(x=x)
B.apply(x=x, scale=2)
B.apply(x, shift=2)
B.apply(x, foo=1)
B.apply(x, 2, scale=3)
B.apply(scale=3)
grad(B.apply(x, scale=x).sum(), x)
grad(B.apply(x.detach(), scale=x).sum(), x)
K.apply(x, scale=3)
N.apply(x)
N.apply(x, scale=3)
""".strip().splitlines()


def names(torch: Any, seen: list[Any]) -> dict[str, Any]:
    """Return Functions with defaults: with a context of its own, with a rule for vmap, with forward's context, by name only."""

    class A(torch.autograd.Function):
        @staticmethod
        def forward(x: Any, places: Any = (2,), scale: Any = 3) -> Any:
            return x * scale

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            ctx.scale = inputs[2]

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g * ctx.scale, None, None

        @staticmethod
        def vmap(info: Any, in_dims: Any, *args: Any) -> Any:
            seen.append((in_dims, args[1:]))
            return A.apply(*args), in_dims[0]

    class G(A):
        generate_vmap_rule = True
        vmap = torch.autograd.Function.vmap

    class B(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any, scale: Any = 3, shift: Any = 0) -> Any:
            seen.append(ctx.needs_input_grad)
            ctx.scale = scale
            return x * scale + shift

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g * ctx.scale, g, None

    class K(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any, *, scale: Any = 3) -> Any:
            return x * scale

    class N(torch.autograd.Function):
        @staticmethod
        def forward(x: Any, *, scale: Any = 3) -> Any:
            return x * scale

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            seen.append(len(inputs))

    return {"A": A, "G": G, "B": B, "K": K, "N": N}


@pytest.mark.parametrize("call", CALLS)
def test_arguments(call: str) -> None:
    def told(torch: Any) -> list[str]:
        seen: list[Any] = []
        given = {"x": torch.ones(3, requires_grad=True), "y": torch.ones(2, 3), "grad": torch.autograd.grad, "vmap": torch.func.vmap}  # fmt: skip
        try:
            made = repr(eval(call, given | names(torch, seen)))
        except TypeError as error:
            made = str(error).rpartition("<locals>.")[2]
        return [made, str(seen)]

    assert told(ct) == told(th)
