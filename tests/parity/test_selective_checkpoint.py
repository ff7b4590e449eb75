"""Selective checkpointing: policies are asked about the same ops as in torch, gradients are those without
checkpointing, and kept results are not computed again.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pytest
from parity.oracle import th
from support import ct, data


def _run(module: Any, ops: Any) -> tuple[Any, Any]:
    """Return the gradients of a small network and, for cltensor, the number of launches of its backward pass.

    The network is checkpointed, with the results of `ops` kept, unless `ops` is None.
    """
    c, f = module.utils.checkpoint, module.nn.functional
    x, w, v = (module.tensor(data(4, 4, seed=s).tolist(), requires_grad=True) for s in range(3))

    def network(x: Any, w: Any, v: Any) -> Any:
        y = f.gelu(f.linear(x, v, v[0]) @ w)
        z = module.softmax(y, -1) * y.pow(2) + f.linear(y, w)
        return f.layer_norm(z, (4,)).tanh()

    if ops is None:
        out = network(x, w, v)
    else:
        context = functools.partial(c.create_selective_checkpoint_contexts, ops)
        out = c.checkpoint(network, x, w, v, use_reentrant=False, context_fn=context)
    value = out.pow(2).sum()
    value.item()
    before = module.stats().launches if module is ct else 0
    value.backward()
    grads = [t.grad.tolist() for t in (x, w, v)]
    return grads, (module.stats().launches - before if module is ct else 0)


@pytest.mark.ours
@pytest.mark.parametrize("names", ["addmm", "mm addmm", "gelu", "tanh", "native_layer_norm", ""])
def test_gradients(names: str) -> None:
    ops = [getattr(ct.ops.aten, name).default for name in names.split()]
    assert _run(ct, ops)[0] == _run(ct, None)[0]


@pytest.mark.ours
def test_kept_results_are_not_computed_again() -> None:
    none, products = (
        _run(ct, [getattr(ct.ops.aten, n).default for n in names])[1]
        for names in ((), ("mm", "addmm"))
    )
    assert products < none


def test_a_second_backward_is_refused() -> None:
    c, x = ct.utils.checkpoint, ct.ones(2, requires_grad=True)
    context = functools.partial(c.create_selective_checkpoint_contexts, [ct.ops.aten.sin.default])
    y = c.checkpoint(lambda x: x.sin().cos().exp(), x, use_reentrant=False, context_fn=context)
    y.sum().backward(retain_graph=True)
    with pytest.raises(RuntimeError, match="Trying to backward an extra time"):
        y.sum().backward(retain_graph=True)


def test_policies() -> None:
    asked = []
    for module in (ct, th):
        c, seen = module.utils.checkpoint, []

        def policy(
            ctx: Any, op: Any, *args: Any, c: Any = c, seen: Any = seen, **kwargs: Any
        ) -> Any:
            seen.append((ctx.is_recompute, str(op), len(args)))
            kept = "mm" in str(op)
            return c.CheckpointPolicy.MUST_SAVE if kept else c.CheckpointPolicy.PREFER_RECOMPUTE

        x = module.ones(2, 2).requires_grad_()
        context = functools.partial(c.create_selective_checkpoint_contexts, policy)
        y = c.checkpoint(
            lambda x, m=module: m.mm(x, x).sin().exp(), x, use_reentrant=False, context_fn=context
        )
        y.sum().backward()
        asked.append((seen, x.grad.tolist(), [p.name for p in c.CheckpointPolicy]))
    assert asked[0][0] == asked[1][0]
    np.testing.assert_allclose(asked[0][1], asked[1][1], rtol=1e-5)
    assert asked[0][2] == asked[1][2]


def test_a_kept_tensor_that_was_written_to() -> None:
    for module in (ct, th):
        c = module.utils.checkpoint
        x = module.ones(2, 2).requires_grad_()
        held = []

        def program(x: Any, m: Any = module, held: Any = held) -> Any:
            held.append(m.mm(x, x))
            return held[-1].sin().exp()

        op = [module.ops.aten.mm.default]
        context = functools.partial(c.create_selective_checkpoint_contexts, op)
        y = c.checkpoint(program, x, use_reentrant=False, context_fn=context)
        with module.no_grad():
            held[0].add_(1)
        with pytest.raises(RuntimeError, match="has been mutated"):
            y.sum().backward()


def test_refusals() -> None:
    for module in (ct, th):
        create = module.utils.checkpoint.create_selective_checkpoint_contexts
        with pytest.raises(ValueError, match="to be an OpOverload but got"):
            create([module.mm])
        with pytest.raises(TypeError, match="either a function or a list of ops"):
            create(3)
