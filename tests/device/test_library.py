"""Operators that a program adds: they are found under `torch.ops` and have an autograd node and the gradients given."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

import pytest

import cltensor as torch
from cltensor import Tensor, library

pytestmark = pytest.mark.usefixtures("one_by_one")  # compositions share kernels of single operators


@library.custom_op("mine::scaled", mutates_args=())
def scaled(x: Tensor, w: Tensor, n: int = 2) -> tuple[Tensor, Tensor]:
    return x * n, x * w


def _keep(ctx: Any, inputs: Any, output: Any) -> None:
    ctx.n = inputs[2]
    ctx.save_for_backward(*inputs[:2])


def _back(ctx: Any, first: Tensor, second: Tensor) -> tuple[Tensor, Tensor, None]:
    x, w = ctx.saved_tensors
    return first * ctx.n + second * w, second * x, None


scaled.register_autograd(_back, setup_context=_keep)


def test_an_operator_has_the_gradient_it_was_given() -> None:
    x = torch.ones(2, requires_grad=True)
    w = torch.full((2,), 3.0, requires_grad=True)
    for call in (scaled, torch.ops.mine.scaled, torch.ops.mine.scaled.default):
        x.grad = w.grad = None
        first, second = call(x, w)
        assert "GeneratedBackwardFor_mine_scaled_default" in type(first.grad_fn).__name__
        (first + second).sum().backward()
        assert x.grad.tolist() == [5, 5]
        assert w.grad.tolist() == [1, 1]
    assert scaled(x.detach(), w.detach(), n=4)[0].tolist() == [4, 4]
    assert scaled._schema == "(Tensor x, Tensor w, SymInt n=2) -> (Tensor, Tensor)"


def test_lists_of_tensors_and_what_is_no_tensor() -> None:
    @library.custom_op("mine::total", mutates_args=())
    def total(xs: Sequence[Tensor], scale: float) -> tuple[Tensor, int]:
        return torch.stack(list(xs)).sum(0) * scale, len(xs)

    def back(ctx: Any, grad: Tensor) -> Any:
        return [grad * ctx.scale] * ctx.count, None

    def keep(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.count, ctx.scale = len(inputs[0]), inputs[1]

    total.register_autograd(back, setup_context=keep)
    xs = [torch.ones(2, requires_grad=True) for _ in range(3)]
    out, count = total(xs, 0.5)
    assert (out.tolist(), count) == ([1.5, 1.5], 3)
    out.sum().backward()
    assert [x.grad.tolist() for x in xs] == [[0.5, 0.5]] * 3


def test_without_a_gradient_and_writing_its_argument() -> None:
    @library.custom_op("mine::plain", mutates_args=())
    def plain(x: Tensor) -> Tensor:
        return x.sin()

    with pytest.raises(RuntimeError, match="no autograd formula was registered"):
        plain(torch.ones(2, requires_grad=True)).sum().backward()

    @library.custom_op("mine::more", mutates_args={"x"})
    def more(x: Tensor) -> None:
        x.add_(1)

    x = torch.zeros(2)
    assert more(x) is None
    assert x.tolist() == [1, 1]
    with pytest.raises(RuntimeError, match="for non-functional operator"):
        more.register_autograd(_back)

    @library.custom_op("mine::same", mutates_args=())
    def same(x: Tensor) -> Tensor:
        return x

    with pytest.raises(RuntimeError, match="must not also be an input"):
        same(torch.ones(2, requires_grad=True))


def test_a_library_by_schema() -> None:
    lib = library.Library("made", "DEF")
    lib.define("times(Tensor x, int k=2) -> Tensor")
    with pytest.raises(RuntimeError, match="same name"):
        lib.define("times(Tensor x) -> Tensor")
    with pytest.raises(NotImplementedError, match="Could not run 'made::times'"):
        torch.ops.made.times(torch.ones(2))
    lib.impl("times", lambda x, k=2: x * k, "CompositeImplicitAutograd")
    x = torch.ones(2, requires_grad=True)
    torch.ops.made.times(x, k=5).sum().backward()
    assert x.grad.tolist() == [5, 5]
    library.define("made::seven", "(Tensor x) -> Tensor")
    library.impl("made::seven", "default", lambda x: x * 7)
    assert torch.ops.made.seven(torch.ones(1)).tolist() == [7]
    with pytest.raises(RuntimeError, match="operator made::nope does not exist"):
        lib.impl("nope", lambda x: x)
    with pytest.raises(AttributeError, match="'made' object has no attribute 'nope'"):
        torch.ops.made.nope
    with pytest.raises(OSError, match="Could not load this library"):
        torch.ops.load_library("other.so")


def test_annotations_that_operators_do_not_take() -> None:
    def bad(x: bytes) -> None: ...

    def bare(x): ...

    with pytest.raises(ValueError, match="Parameter x has unsupported type <class 'bytes'>"):
        library.infer_schema(bad, mutates_args=())
    with pytest.raises(ValueError, match="Parameter x must have a type annotation"):
        library.infer_schema(bare, mutates_args=())


def test_public_functions_by_names_of_operators() -> None:
    aten = torch.ops.aten
    x = torch.ones(2)
    assert aten.add.Tensor(x, x).tolist() == aten.add(x, x).tolist() == [2, 2]
    assert aten.add.Tensor is aten.add.Tensor
    assert aten.sum.dim_IntList(x, [0]).item() == 2
    assert copy.deepcopy(aten.add.Tensor) is aten.add.Tensor
    assert repr(aten.add.Tensor) == "<OpOverload(op='aten.add', overload='Tensor')>"
    assert repr(aten.add) == "<OpOverloadPacket(op='aten.add')>"
    assert (str(aten.add), str(aten.add.Tensor)) == ("aten.add", "aten.add.Tensor")
    assert aten.add.Tensor.overloadpacket is aten.add
    assert (aten.add.Tensor.name(), aten.add.default.name()) == ("aten::add.Tensor", "aten::add")
    y = aten.alias.default(x)
    assert y is not x and y.data_ptr() == x.data_ptr()
    assert aten._local_scalar_dense(x[:1]) == aten.item(x[0]) == 1 and aten.sym_size(x, 0) == 2
    with pytest.raises(NotImplementedError, match="aten::not_there"):
        aten.not_there(x)


def test_operators_are_checked() -> None:
    @library.custom_op("checked::sine", mutates_args=())
    def sine(x: torch.Tensor) -> torch.Tensor:
        return x.sin()

    with pytest.raises(Exception, match="test_faketensor failed with There was no fake impl"):
        library.opcheck(sine, (torch.ones(3),))
    sine.register_fake(lambda x: torch.empty_like(x))
    passed = library.opcheck(sine, (torch.ones(3),))
    assert set(passed.values()) == {"SUCCESS"} and len(passed) == 4
    with pytest.raises(Exception, match="test_aot_dispatch_dynamic failed with Trying to backward"):
        library.opcheck(sine, (torch.ones(3, requires_grad=True),))
    sine.register_autograd(
        lambda ctx, g: g * ctx.saved_tensors[0].cos(),
        setup_context=lambda ctx, inputs, output: ctx.save_for_backward(*inputs),
    )
    sine.register_vmap(lambda info, in_dims, x: (x.sin(), in_dims[0]))  # not a fake
    library.opcheck(sine, (torch.ones(3, requires_grad=True),))

    @library.custom_op("checked::writes", mutates_args=())
    def writes(x: torch.Tensor) -> torch.Tensor:
        x.add_(1)
        return x.clone()

    @library.custom_op("checked::shape", mutates_args=())
    def shape(x: torch.Tensor) -> torch.Tensor:
        return x.sum(0)

    shape.register_fake(lambda x: torch.empty_like(x))
    with pytest.raises(Exception, match=r"test_schema failed with .*was mutated"):
        library.opcheck(writes, (torch.ones(3),), test_utils="test_schema")
    with pytest.raises(Exception, match=r"test_schema failed with .*was mutated"):
        library.opcheck(writes, (), {"x": torch.ones(3)}, test_utils="test_schema")

    @library.custom_op("checked::late", mutates_args=("y",))
    def late(
        x: torch.Tensor, sizes: Sequence[int] = (1, 2), *, y: torch.Tensor, z: torch.Tensor
    ) -> None:
        y.add_(x)
        if sizes[0] == 3:
            z.add_(1)

    given = {"y": torch.ones(3), "z": torch.ones(3)}
    assert library.opcheck(late, (torch.ones(3),), given, test_utils="test_schema")
    with pytest.raises(Exception, match=r"test_schema failed with .*was mutated"):
        library.opcheck(late, (torch.ones(3), (3, 4)), given, test_utils="test_schema")
    said = library.opcheck(shape, (torch.ones(3, 2),), raise_exception=False)
    assert said["test_schema"] == "SUCCESS"
    assert "found mismatched tensor metadata: Shapes torch.Size([3, 2])" in str(
        said["test_faketensor"]
    )
    with pytest.raises(ValueError, match="expected test_utils to be subset of"):
        library.opcheck(shape, (), test_utils="nothing")
    with pytest.raises(ValueError, match=r"op must be instance of torch\._ops\.OpOverload"):
        library.opcheck(torch.sin, ())
