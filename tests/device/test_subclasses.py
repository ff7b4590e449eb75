"""Subclasses of Tensor and `__torch_function__`: which are asked, for which functions, and the class of results."""

from __future__ import annotations

import copy
import inspect
import pickle
from typing import Any, ClassVar
from unittest import mock

import pytest
from support import outputs_of_forks

import cltensor as torch
from cltensor import nn, overrides
from cltensor.nn import functional as F
from cltensor.nn.functional import relu as taken_before

_ADD = torch.add


class Plain(torch.Tensor):
    """Subclass that adds nothing to Tensor."""


class Told(torch.Tensor):
    """Subclass that records the functions `__torch_function__` gets, and has an attribute."""

    asked: ClassVar[list[str]] = []
    word: Any = None

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        cls.asked.append(func.__name__)
        made = super().__torch_function__(func, types, args, kwargs)
        if isinstance(made, cls):
            made.word = next((a.word for a in args if isinstance(a, cls)), None)
        return made


def told(*values: float) -> Told:
    Told.asked = []
    made = torch.tensor(values).as_subclass(Told)
    made.word = "kept"
    Told.asked = []
    return made


def test_results_are_of_the_subclass() -> None:
    s = torch.ones(2).as_subclass(Plain)
    made = [
        s + 1, 2 - s, torch.add(torch.ones(2), other=s), torch.cat([torch.ones(2), s]), s[0], s.T, s.data, s.to(torch.float64), s.clone(),
        s.new_zeros(2), torch.zeros_like(s), s.max(0)[1], s.split(1)[0], F.relu(s), taken_before(s), nn.Linear(2, 3)(s), *s, s.mul_(1),
        torch.linalg.norm(s), torch.where(s > 0, s, 0.0), s.sum().detach(), copy.deepcopy(s), pickle.loads(pickle.dumps(s)),
    ]  # fmt: skip
    assert [type(value) for value in made] == [Plain] * len(made)
    assert repr(s).startswith("Plain([1., 1.]")
    assert isinstance(s.cpu().numpy(), object)
    assert s.tolist() == [1, 1]
    assert type(torch.ones(2) + 1) is torch.Tensor
    assert _ADD is torch.add
    assert pickle.loads(pickle.dumps(F.relu)) is F.relu


def test_parameters_give_plain_tensors() -> None:
    p = nn.Parameter(torch.ones(2))
    assert type(p * 2) is torch.Tensor
    own = nn.Parameter(torch.ones(2).as_subclass(Plain))
    assert isinstance(own, nn.Parameter)
    assert type(own) is Plain
    loss = (own * 2).sum()
    assert type(loss) is Plain
    loss.backward()
    assert own.grad.tolist() == [2, 2]
    assert type(own.grad) is torch.Tensor


def test_what_a_class_is_asked_about() -> None:
    x = told(1.0, 2.0)
    y = torch.nn.functional.relu((2 * x).abs() / 3 @ torch.ones(2))[None].sum()
    assert Told.asked == ["mul", "abs", "div", "matmul", "relu", "__getitem__", "sum"]
    assert (type(y), y.word) == (Told, "kept")
    x = told(1.0, 2.0)
    x += 1
    assert (x > 2).T.word == "kept"
    assert Told.asked == ["add_", "gt", "__get__"]
    with torch._C.DisableTorchFunctionSubclass():
        assert type(told(1.0) + 1) is torch.Tensor


def test_who_is_asked_about_iterating_may_call_the_function() -> None:
    class Counted(torch.Tensor):
        @classmethod
        def __torch_function__(
            cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            if func == torch.Tensor.unbind:
                return torch.unbind(args[0])[::-1]
            return super().__torch_function__(func, types, args, kwargs)

    x = torch.tensor([1.0, 2.0]).as_subclass(Counted)
    assert [float(v) for v in x] == [2, 1]
    assert [float(v) for v in torch.unbind(x)] == [1, 2]


def test_a_class_is_asked_about_gradients() -> None:
    x = told(1.0, 2.0).requires_grad_()
    y = (x * x).sum()
    Told.asked = []
    (g,) = torch.autograd.grad(outputs=y, inputs=[x], retain_graph=True)
    assert Told.asked == ["grad"]
    assert type(g) is Told
    assert g.tolist() == [2, 4]
    Told.asked = []
    torch.autograd.backward([y])
    assert Told.asked == ["backward"]
    assert x.grad.tolist() == [2, 4]


def test_a_method_of_the_subclass_reaches_its_base() -> None:
    class Own(torch.Tensor):
        def add(self, other: Any) -> Any:
            return type(super().add(other))

    assert torch.ones(1).as_subclass(Own).add(1) is Own


def test_classes_that_are_no_relations() -> None:
    class Other(torch.Tensor):
        pass

    a, b = torch.ones(1).as_subclass(Plain), torch.ones(1).as_subclass(Other)
    with pytest.raises(TypeError, match=r"unsupported operand type\(s\) for \+"):
        a + b
    with pytest.raises(TypeError, match=r"Multiple dispatch failed for 'torch\.add'"):
        torch.add(a, b)


def test_what_is_no_tensor_is_asked_too() -> None:
    class Duck:
        @classmethod
        def __torch_function__(
            cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            return "mean" if func is torch.mean else NotImplemented

    assert torch.mean(Duck()) == "mean"
    with pytest.raises(TypeError, match=r"Multiple dispatch failed for 'torch\.sum'"):
        torch.sum(Duck())


def test_a_mode_is_asked_about_everything() -> None:
    class Counts(torch.overrides.TorchFunctionMode):
        def __init__(self) -> None:
            self.seen: list[str] = []

        def __torch_function__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            self.seen.append(func.__name__)
            return func(*args, **(kwargs or {}))

    with Counts() as outer, Counts() as inner:
        y = torch.zeros(2) + 1
        y.sum()
    assert inner.seen == outer.seen == ["zeros", "add", "sum"]
    y.sum()
    assert len(inner.seen) == 3


class Carrying(torch.Tensor):
    """Subclass that copies its attributes to the results of its functions, as some written for torch do."""

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        made = super().__torch_function__(func, types, args, kwargs)
        if isinstance(made, cls) and isinstance(args[0], cls):
            made.__dict__ = copy.copy(args[0].__dict__)
        return made


def test_attributes_are_carried_over_without_the_fields() -> None:
    x = torch.ones(3).as_subclass(Carrying)
    x.meta, x._hidden = {"a": 1}, 2
    y = (x * 2)[1:]
    assert y.tolist() == [2, 2]
    assert dict(y.__dict__) == {"meta": {"a": 1}, "_hidden": 2}
    z = torch.zeros(2, requires_grad=True)
    z.__dict__.update(x.__dict__)
    assert z.tolist() == [0, 0]
    assert vars(z) == x.__dict__
    assert len(z.__dict__) == 2
    del z.__dict__["meta"]
    assert not hasattr(z, "meta")
    assert repr(z.__dict__) == "{'_hidden': 2}"
    assert {"shape", "dtype", "device", "_hidden", "sum"} <= {*dir(z)}
    copied = copy.deepcopy(z)
    assert copied._hidden == pickle.loads(pickle.dumps(z))._hidden == 2
    assert pickle.loads(pickle.dumps(z.__dict__)) == {**copy.deepcopy(z.__dict__)}
    z.__dict__ = {}
    assert not hasattr(z, "_hidden")
    with pytest.raises(KeyError):
        z.__dict__["shape"]
    with pytest.raises(KeyError):
        del z.__dict__["_storage"]


def test_nothing_of_the_librarys_is_among_the_attributes() -> None:
    layer = nn.Linear(2, 3)
    optimizer = torch.optim.Adam(layer.parameters())
    x = torch.randn(4, 2, requires_grad=True)
    x.register_hook(lambda g: g)
    y = layer(x)
    y.retain_grad()
    y[1:].sum().backward()
    optimizer.step()
    counts = [state["step"] for state in optimizer.state.values()]
    seen = [x, x.grad, y, y[0], y.detach(), *counts, layer.weight, layer.weight.grad, torch.eye(2).to_sparse(), torch.eye(2).to_sparse_csr()]  # fmt: skip
    with torch.autograd.forward_ad.dual_level():
        seen.append(torch.autograd.forward_ad.make_dual(torch.ones(2), torch.ones(2)))
        seen.append(seen[-1] * 2)
    assert [dict(t.__dict__) for t in seen] == [{}] * len(seen)


def test_what_can_be_overridden_is_listed() -> None:
    by_space = overrides.get_overridable_functions()
    assert torch.add in by_space[torch]
    assert torch.Tensor.add in by_space[torch.Tensor]
    assert torch.nn.functional.relu in by_space[torch.nn.functional]
    ignored = overrides.get_ignored_functions()
    assert torch.manual_seed in ignored
    assert torch.add not in ignored
    dummies = overrides.get_testing_overrides()
    assert dummies[torch.mean](1, dim=2) == -1
    assert list(inspect.signature(dummies[torch.mean]).parameters)[:2] == ["input", "dim"]
    assert overrides.resolve_name(torch.Tensor.add_) == "torch.Tensor.add_"
    assert overrides.resolve_name(torch.nn.functional.linear) == "torch.nn.functional.linear"
    assert overrides.resolve_name(torch.manual_seed) is None
    assert overrides.is_tensor_method_or_property(torch.Tensor.add_)
    assert overrides.is_tensor_method_or_property(torch.Tensor.T.__get__)
    assert not overrides.is_tensor_method_or_property(torch.stack)


def bar(a: Any) -> Any:
    """Dispatch to `__torch_function__` as functions of programs do."""
    if overrides.has_torch_function((a,)):
        return overrides.handle_torch_function(bar, (a,), a)
    return a


class Noting(overrides.TorchFunctionMode):
    """Mode that appends its name and each function called to `seen`."""

    def __init__(self, name: str, seen: list[tuple[str, Any]]) -> None:
        self.name, self.seen = name, seen

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.seen.append((self.name, func))
        return func(*args, **(kwargs or {}))


def test_modes_are_asked_by_functions_of_programs() -> None:
    seen: list[tuple[str, Any]] = []
    x = torch.ones(2)
    with Noting("A", seen), Noting("B", seen):
        assert bar(x) is x
    assert seen == [("B", bar), ("A", bar)]
    with Noting("A", seen), torch._C.DisableTorchFunction():
        assert type(torch.sum(Plain([1.0]))) is torch.Tensor
    assert len(seen) == 2
    with pytest.raises(TypeError, match="expected a sequence"):
        overrides.has_torch_function(object())


def test_functions_that_autocast_are_answered_for_too() -> None:
    """A class with `__torch_function__`, the first in its process, is asked although the functions cast already."""
    text = """
class Plain:
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        return func.__name__
with torch.autocast("cpu"):
    torch.ones(1) @ torch.ones(1)
print(torch.{call})
"""
    calls = ("sum(Plain())", "cat([Plain(), Plain()])", "scatter(Plain(), 0, 1, 2)")
    said = outputs_of_forks([text.format(call=call) for call in calls])
    assert said == ["sum", "cat", "scatter"]


def test_handlers_that_are_of_the_wrong_kind() -> None:
    class OfTheClass(overrides.TorchFunctionMode):
        @classmethod
        def __torch_function__(
            cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            return func(*args)

    class OfTheObject:
        def __torch_function__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            return 7

    with pytest.raises(RuntimeError, match="please make it a plain method"), OfTheClass():
        torch.ones(1)
    with pytest.warns(UserWarning, match="as a plain method is deprecated"):
        assert torch.abs(OfTheObject()) == 7
    with pytest.warns(DeprecationWarning, match="as a plain method is deprecated"):
        assert torch.distributions.utils.broadcast_all(OfTheObject(), 1) == 7


def test_nobody_answers() -> None:
    class Mode(overrides.TorchFunctionMode):
        def __torch_function__(self, *args: Any, **kwargs: Any) -> Any:
            return NotImplemented

    class Silent(torch.Tensor):
        @classmethod
        def __torch_function__(cls, *args: Any, **kwargs: Any) -> Any:
            return NotImplemented

    x = Silent([1.0])
    text = r"'torch\.mul'.*\n\n  - mode object .*Mode object.*\n  - tensor subclass .*Silent'>\n\nFor more information"
    with pytest.raises(TypeError, match=text), Mode():
        torch.mul(x, x)


def test_attributes_are_not_the_functions_of_their_names() -> None:
    class Which(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func: Any, *args: Any, **kwargs: Any) -> Any:
            return func is torch.real

    x = Which([1.0])
    assert torch.real(x) is True
    assert x.real is False


def test_attributes_of_a_class_with_a_base_before_the_tensor() -> None:
    class Words:
        def take(self, other: Any) -> None:
            self.__dict__ = {"word": other.__dict__["word"]}

    class Mixed(Words, torch.Tensor):
        pass

    class Further(Mixed):
        pass

    for kind in (Mixed, Further):
        a, b = torch.ones(3).as_subclass(kind), torch.zeros(2).as_subclass(kind)
        a.word = "said"
        assert dict(a.__dict__) == vars(a) == {"word": "said"}
        b.take(a)
        assert (b.word, b.tolist(), b.shape) == ("said", [0.0, 0.0], (2,))
        b.__dict__.update({"word": 2, "more": 3})
        assert (b.word, b.more, b.sum().item()) == (2, 3, 0.0)
        assert copy.deepcopy(a).tolist() == [1.0] * 3
        assert pickle.loads(pickle.dumps(torch.ones(1))).tolist() == [1.0]


_DUCK = """
class Duck:
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        return func.__name__, [kind.__name__ for kind in types], len(args), kwargs or {{}}
d, x = Duck(), torch.ones(2)
print({call})
for refused in ("torch.mean('d')", "torch.add(x, 'd')", "x + 'd'", "torch.linalg.inv('d')"):
    try:
        eval(refused)
    except TypeError:
        continue
    print(refused, "was not refused")
"""


_ANSWERS = {
    "torch.mean(d, dim=0)": ("mean", ["Duck"], 1, {"dim": 0}),
    "torch.add(x, d, alpha=2)": ("add", ["Duck"], 2, {"alpha": 2}),
    "torch.mul(d, 3)": ("mul", ["Duck"], 2, {}),
    "torch.exp(d)": ("exp", ["Duck"], 1, {}),
    "torch.clone(d)": ("clone", ["Duck"], 1, {}),
    "x + d": ("add", ["Duck"], 2, {}),
    "x.mul_(d)": ("mul_", ["Duck"], 2, {}),
    "torch.cat([x, d])": ("cat", ["Duck"], 1, {}),
    "torch.addmm(x, d, d)": ("addmm", ["Duck"], 3, {}),
    "torch.linalg.inv(d)": ("linalg_inv", ["Duck"], 1, {}),
    "torch.stack([d, d])": ("stack", ["Duck"], 1, {}),
    "[f(d)[0] for f in (torch.mean, torch.fft.fft, torch.numel, torch.is_complex, torch.nn.init.normal_)]": [
        "mean", "fft_fft", "numel", "is_complex", "normal_"
    ],
}  # fmt: skip


def test_a_class_that_is_no_tensor_is_asked_before_any_other_was() -> None:
    """A call that fails because of such an argument is made again, and then asks the argument's class. Each call is
    made in a process of its own.
    """
    said = outputs_of_forks([_DUCK.format(call=call) for call in _ANSWERS])
    assert dict(zip(_ANSWERS, said, strict=True)) == {k: repr(v) for k, v in _ANSWERS.items()}


_COMPARED = """
F, early = torch.nn.functional, torch.nn.functional.linear
{before}
class Noting(torch.Tensor):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        passed.append(func)
        return super().__torch_function__(func, types, args, kwargs)
passed, taken = [], (torch.mm, F.mse_loss, F.linear)
with torch.autocast("cpu"):
    torch.mm(torch.ones(2, 2), torch.ones(2, 2))
x = torch.ones(2, 2).as_subclass(Noting)
torch.mm(x, x), F.mse_loss(x, x), early(x, x)
print([a is b is c for a, b, c in zip(passed, taken, (torch.mm, F.mse_loss, F.linear))], len(passed))
"""


def test_functions_are_told_by_comparison_though_autocast_has_been_used() -> None:
    """Also one that the program had taken before, which asks as well."""
    programs = [
        _COMPARED.format(before=text) for text in ("", "torch.autocast('cpu').__enter__().__exit__(None, None, None)")
    ]  # fmt: skip
    assert outputs_of_forks(programs) == ["[True, True, True] 3"] * 2


def test_causal_masks_of_rectangles(dev: Any) -> None:
    from cltensor.nn.attention import bias

    attend = torch.nn.functional.scaled_dot_product_attention
    q, k = (torch.arange(8.0 * n, device=dev).sin().view(1, 1, n, 8) for n in (2, 3))
    for made, shift in ((bias.causal_upper_left(2, 3), 0), (bias.causal_lower_right(2, 3), 1)):
        mask = torch.ones(2, 3, dtype=torch.bool).tril(shift)
        assert repr(made) == repr(mask.cpu())
        torch.testing.assert_close(attend(q, k, k, attn_mask=made), attend(q, k, k, mask.to(dev)))
    torch.testing.assert_close(
        attend(k, k, k, bias.causal_lower_right(3, 3)), attend(k, k, k, is_causal=True)
    )
    with torch.autocast(dev.type, torch.bfloat16):
        assert attend(q, k, k, attn_mask=made).dtype is torch.bfloat16
    with pytest.raises(ValueError, match="CausalBias should not be used with causal=True"):
        attend(q, k, k, attn_mask=made, is_causal=True)
    with pytest.raises(AssertionError, match="causal_upper_left only supports 2D tensors"):
        bias.causal_upper_left(2)
    with pytest.raises(AssertionError, match="variant must be a CausalVariant, got int"):
        bias.CausalBias(1, 2, 3)
    with pytest.warns(UserWarning, match="will produce NaNs in the output"):
        bias.causal_lower_right(3, 2)


def test_modes_see_plain_sizes() -> None:
    seen: set[str] = set()

    class Sizes(overrides.TorchFunctionMode):
        def __torch_function__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            made = func(*args, **(kwargs or {}))
            for t in (*args, made):
                if isinstance(t, torch.Tensor):
                    seen.update(str(type(n)) for n in (*t.shape, *t.stride(), t.numel()))
            return made

    cell = nn.LSTMCell(3, 5)
    with Sizes():
        for n in range(2, 6):
            cell(torch.ones(n, 3))
    assert seen == {"<class 'int'>"}


def test_a_subclass_finds_the_fields_of_its_base(dev: Any) -> None:
    class Placed(torch.Tensor):
        @property
        def device(self) -> Any:
            return f"on {super().device}"

    x = torch.ones(2, 3, device=dev)
    assert torch.Tensor.shape.__get__(x) == (2, 3)
    assert torch.Tensor.dtype.__get__(x) is torch.float32
    assert x.as_subclass(Placed).device == f"on {dev}"


class Claiming(torch.Tensor):
    """Subclass that claims a larger shape and another dtype than it has."""

    @property
    def shape(self) -> Any:
        return torch.Size((4, 4))

    @property
    def dtype(self) -> Any:
        return torch.float64

    def size(self, dim: int | None = None) -> Any:
        return "many" if dim is None else super().size(dim)

    ndim = 7


class Sized:
    """Not a tensor, but has a size."""

    @property
    def shape(self) -> Any:
        return torch.Size((9,))


class Mixed(Sized, Claiming):
    """Derives from a class with a shape of its own and from a subclass."""


@pytest.mark.parametrize("kind", [Claiming, Mixed])
def test_what_a_class_says_of_its_memory_reaches_no_kernel(kind: Any) -> None:
    rows = [[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]]
    plain = torch.tensor(rows)
    x = plain.as_subclass(kind)
    assert tuple(x.shape) == ((4, 4) if kind is Claiming else (9,))
    assert (x.dtype, x.size(), x.size(1), x.ndim) == (torch.float64, "many", 3, 7)
    assert x.tolist() == x.numpy(force=True).tolist() == rows
    for fn in (
        lambda t: t + 1, lambda t: t.t(), lambda t: t.view(6), lambda t: t.sum(0), lambda t: t @ torch.ones(3, 2), lambda t: t[1],
        lambda t: torch.cat([t, t]), lambda t: t.softmax(1), lambda t: t.to(torch.int64), lambda t: t.clone().mul_(2), copy.deepcopy,
    ):  # fmt: skip
        made, wanted = fn(x), fn(plain)
        assert type(made) is kind
        assert made.tolist() == wanted.tolist()
    assert repr(x).startswith(f"{kind.__name__}([[0., 1., 2.]")


def test_gradients_of_a_class_that_claims_another_shape() -> None:
    x = torch.tensor([[1.0, 2.0, 3.0]], requires_grad=True)
    (x.as_subclass(Claiming).exp() * 2).sum().backward()
    assert torch.allclose(x.grad, 2 * x.exp())


def test_a_claim_is_read_by_programs_and_set_by_none() -> None:
    x = torch.zeros(2).as_subclass(Claiming)
    assert isinstance(inspect.getattr_static(Claiming, "shape").__get__(None, Claiming), property)
    with pytest.raises(AttributeError, match="shape"):
        x.shape = torch.Size((2,))
    assert len(x.tolist()) == 2


def test_fields_can_be_asked_of_the_class() -> None:
    x = torch.zeros(2, 3, dtype=torch.int32)
    for name in ("shape", "dtype", "device"):
        for kind in (torch.Tensor, torch.nn.Parameter, Plain):
            assert getattr(kind, name).__get__(x) == getattr(x, name)
    with mock.patch(
        "cltensor.Tensor.dtype", new_callable=mock.PropertyMock, return_value=torch.int64
    ):
        assert x.dtype is torch.int64
    assert x.dtype is torch.int32
    with pytest.raises(AttributeError, match="has no attribute 'shapes'"):
        _ = torch.Tensor.shapes


class Slotted(torch.Tensor):
    __slots__ = ("note", "unset")


def test_a_class_with_slots(dev: Any) -> None:
    leaf = torch.ones(2, device=dev, requires_grad=True)
    x = leaf.as_subclass(Slotted)
    x.note = [1]
    y = (x * x)[1:]
    assert type(y) is Slotted and not hasattr(y, "note")
    y.sum().backward()
    assert leaf.grad.tolist() == [0, 2]
    kept = leaf.detach().as_subclass(Slotted)
    kept.note = [1]
    deep, shallow = copy.deepcopy(kept), copy.copy(kept)
    assert deep.note == [1] and deep.note is not kept.note and shallow.note is kept.note
    assert type(deep) is type(shallow) is Slotted and not hasattr(deep, "unset")
    shallow.zero_()
    assert kept.tolist() == [0, 0] and deep.tolist() == [1, 1]
    assert Slotted([1.0, 2.0]).tolist() == [1, 2]
    assert type(nn.Parameter(kept)) is Slotted


def test_einsum_by_lists_of_labels() -> None:
    s = told(1, 2)  # from now on functions ask
    x = torch.tensor([1.0, 2.0])
    assert torch.einsum(x, [0], []).item() == torch.einsum("i->", [x]).item() == 3
    assert torch.einsum(x, [0]).tolist() == [1, 2]
    for made in (torch.einsum(s, [0]), torch.einsum("i", [s])):
        assert type(made) is Told and made.tolist() == [1, 2]
