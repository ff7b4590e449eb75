"""Torch's errors for arguments of functions that torch has written in Python.

Such a function takes any arguments, asks some of them for an attribute, and passes some on, by position, to a compiled
function, which checks their types. A row of `_ROWS` says what a function asks and passes on; it is read once a call has
failed. Knows functions by their names alone.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from ..errors import class_name
from . import arguments, core

# A line is a function's name, then its steps: `parameter.attribute`, which a value that is no tensor lacks ("?": None is not
# asked), or the compiled function with the types and names of its parameters, as far as they are checked: "?" after a
# type accepts None, "any" is not checked, "=" is followed by the name that the parameter has here, "pair" makes two values of one, and "~"
# stands for the underscore of the in-place form.
_ROWS = """
batch_norm: batch_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, Tensor? running_var)
binary_cross_entropy: target.size; input.size; weight?.size
binary_cross_entropy_with_logits: target.size; input.size; binary_cross_entropy_with_logits(Tensor input, Tensor target, Tensor? weight, Tensor? pos_weight)
celu: celu~(Tensor input, Number alpha)
cosine_embedding_loss: cosine_embedding_loss(Tensor input1, Tensor input2, Tensor target, float margin)
cross_entropy: cross_entropy_loss(Tensor input, Tensor target, Tensor? weight)
dropout1d: input.dim
dropout2d: input.dim
dropout3d: input.dim
fold: col2im(Tensor input, pair output_size, pair kernel_size, pair dilation, pair padding, pair stride)
glu: input.dim; glu(Tensor input, int dim)
grid_sample: grid_sampler(Tensor input, Tensor grid)
group_norm: input.dim; group_norm(Tensor input, int num_groups, Tensor? weight, Tensor? bias, float eps)
grouped_mm: _grouped_mm(Tensor input=mat_a, Tensor mat2=mat_b)
gumbel_softmax: empty_like(Tensor input=logits)
hinge_embedding_loss: hinge_embedding_loss(Tensor input, Tensor target, float margin)
instance_norm: input.size; instance_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, Tensor? running_var)
interpolate: input.dim
kl_div: kl_div(Tensor input, Tensor target)
layer_norm: layer_norm(Tensor input, ints normalized_shape, Tensor? weight, Tensor? bias, float eps)
lp_pool1d: input.pow; avg_pool1d(Tensor input, ints kernel_size)
lp_pool2d: input.pow; avg_pool2d(Tensor input, ints kernel_size)
lp_pool3d: input.pow; avg_pool3d(Tensor input, ints kernel_size)
margin_ranking_loss: input1.dim; input2.dim; target.dim; margin_ranking_loss(Tensor input1, Tensor input2, Tensor target, float margin)
multi_margin_loss: multi_margin_loss(Tensor input, Tensor target)
multilabel_margin_loss: multilabel_margin_loss(Tensor input, Tensor target)
nll_loss: nll_loss_nd(Tensor input, Tensor target, Tensor? weight)
normalize: input.norm
pad: pad(Tensor input, ints pad)
poisson_nll_loss: poisson_nll_loss(Tensor input, Tensor target, bool log_input, bool full, float eps)
rms_norm: rms_norm(Tensor input, ints normalized_shape, Tensor? weight)
rrelu: rrelu~(Tensor input, Number lower, Number upper, bool training)
selu: selu~(Tensor input)
soft_margin_loss: soft_margin_loss(Tensor input, Tensor target)
threshold: threshold~(Tensor input, Number threshold, Number value)
triplet_margin_loss: triplet_margin_loss(Tensor anchor, Tensor positive, Tensor negative, float margin, float p, float eps)
unfold: im2col(Tensor input, pair kernel_size, pair dilation, pair padding, pair stride)
upsample: input.dim
upsample_bilinear: input.dim
upsample_nearest: input.dim
"""


class _Asked(NamedTuple):
    """An attribute that torch asks of a parameter's value first."""

    parameter: str
    attribute: str
    none: bool  # whether None is not asked

    def flaw(self, given: Mapping[str, Any]) -> Exception | None:
        value = given[self.parameter]
        if core.is_tensor(value) or (self.none and value is None):
            return None
        return AttributeError(f"'{class_name(value)}' object has no attribute '{self.attribute}'")


class _Called(NamedTuple):
    """A compiled function and the parameters here whose values it gets."""

    function: str
    in_place: bool  # whether another function is called for the in-place form
    parameters: tuple[str, ...]
    pairs: frozenset[str]  # those whose single values are made two
    signature: arguments.Signature

    def flaw(self, given: Mapping[str, Any]) -> Exception | None:
        values = [given[name] for name in self.parameters]
        for place, name in enumerate(self.parameters):
            if name in self.pairs:
                value = values[place]
                values[place] = tuple(value) if isinstance(value, Iterable) else (value, value)
        function = self.function + "_" * bool(self.in_place and given["inplace"])
        return arguments.flaw(self.signature, function, False, values, {})


_KINDS = {"Number": "complex", "ints": "Sequence[int]", "pair": "Sequence[int]", "any": ""}


def _called(text: str) -> _Called:
    function, _, rest = text.rstrip(")").partition("(")
    names, parameters, pairs = [], [], set()
    for part in rest.split(", "):
        kind, said = part.split()
        said, _, name = said.partition("=")
        names.append(name or said)
        if kind == "pair":
            pairs.add(names[-1])
        none = kind.endswith("?")
        kind = kind.removesuffix("?")
        parameters.append(arguments.parameter(said, _KINDS.get(kind, kind), none=none))
    return _Called(
        function.removesuffix("~"),
        function.endswith("~"),
        tuple(names),
        frozenset(pairs),
        arguments.Signature(tuple(parameters)),
    )


def _asked(text: str) -> _Asked:
    parameter, _, attribute = text.partition(".")
    return _Asked(parameter.removesuffix("?"), attribute, parameter.endswith("?"))


_TEXTS = dict([row.split(": ", 1) for row in _ROWS.strip().splitlines()])
NAMES = tuple(_TEXTS)  # of the functions that have a row


@functools.cache
def _steps(name: str) -> list[_Asked | _Called]:
    return [_called(step) if "(" in step else _asked(step) for step in _TEXTS[name].split("; ")]


def flaw(fn: Callable, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Exception | None:
    """Return torch's error for the arguments of a function that has a row; None if nothing is wrong with their
    types, and if they do not match its parameters, for which Python has an error.
    """
    try:
        bound = inspect.signature(fn).bind(*args, **kwargs)
    except TypeError:
        return None
    bound.apply_defaults()
    for step in _steps(fn.__name__):
        if (error := step.flaw(bound.arguments)) is not None:
            return error
    return None
