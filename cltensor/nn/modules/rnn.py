"""Recurrent layers and their cells: parameters, checks of shapes, packed and unbatched inputs. The steps are in ops/nn/recurrent.py."""

from __future__ import annotations

import math
import numbers
import warnings
import weakref
from typing import Any

from ... import creation
from ...amp.state import STATE
from ...ops.nn import recurrent
from ...tensor import Tensor
from .. import init
from ..parameter import Parameter
from ..utils.rnn import PackedSequence
from .module import Module

__all__ = ["GRU", "LSTM", "RNN", "GRUCell", "LSTMCell", "RNNBase", "RNNCell", "RNNCellBase"]

_GATES = {"LSTM": 4, "GRU": 3, "RNN_TANH": 1, "RNN_RELU": 1}


def _reorder(x: Tensor, permutation: Tensor) -> Tensor:
    return x.index_select(1, permutation)


def apply_permutation(tensor: Tensor, permutation: Tensor, dim: int = 1) -> Tensor:
    """Return `tensor.index_select(dim, permutation)`, with torch's FutureWarning: deprecated."""
    warnings.warn(
        "`apply_permutation` is deprecated, please use `tensor.index_select(dim, permutation)` instead",
        FutureWarning,
        stacklevel=2,
    )
    return tensor.index_select(dim, permutation)


def _reset(module: Module, hidden_size: int) -> None:
    """Draw all parameters from U(-1 / sqrt(hidden_size), 1 / sqrt(hidden_size))."""
    bound = 1.0 / math.sqrt(hidden_size) if hidden_size > 0 else 0
    for weight in module.parameters():
        init.uniform_(weight, -bound, bound)


class RNNBase(Module):
    """What RNN, LSTM and GRU share: parameters under torch's names, checks, and running an input through the steps."""

    _dim_note = ""  # the end of the message for an input of a wrong rank
    _flat_weights: list[Any]
    _flat_weights_names: list[str]
    _all_weights: list[list[str]]
    _flat_weight_refs: list[Any]

    def __init__(
        self,
        mode: str,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        proj_size: int = 0,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.mode, self.input_size, self.hidden_size = mode, input_size, hidden_size
        self.num_layers, self.bias, self.batch_first = num_layers, bias, batch_first
        self.dropout, self.bidirectional, self.proj_size = float(dropout), bidirectional, proj_size
        self._check_settings(dropout)
        gates = _GATES[mode] * hidden_size
        state = proj_size or hidden_size
        self._flat_weights_names, self._all_weights, self._flat_weights = [], [], []
        for layer in range(num_layers):
            width = input_size if layer == 0 else state * self._directions
            shapes: dict[str, tuple[int, ...]] = {
                "weight_ih": (gates, width),
                "weight_hh": (gates, state),
            }
            if bias:
                shapes |= {"bias_ih": (gates,), "bias_hh": (gates,)}
            if proj_size:
                shapes["weight_hr"] = (proj_size, hidden_size)
            for suffix in ("", "_reverse")[: self._directions]:
                names = [f"{name}_l{layer}{suffix}" for name in shapes]
                for name, shape in zip(names, shapes.values(), strict=True):
                    made = creation.empty(shape, device=device, dtype=dtype)
                    setattr(self, name, Parameter(made))
                self._flat_weights_names.extend(names)
                self._all_weights.append(names)
        self._init_flat_weights()
        self.reset_parameters()

    @property
    def _directions(self) -> int:
        return 2 if self.bidirectional else 1

    def _check_settings(self, dropout: Any) -> None:
        if (
            not isinstance(dropout, numbers.Number)
            or not 0 <= dropout <= 1
            or isinstance(dropout, bool)
        ):
            raise ValueError(
                "dropout should be a number in range [0, 1] representing the probability of an element being zeroed"
            )
        if dropout > 0 and self.num_layers == 1:
            warnings.warn(
                "dropout option adds dropout after all but last recurrent layer, so non-zero dropout expects num_layers greater "
                f"than 1, but got dropout={dropout} and num_layers={self.num_layers}",
                stacklevel=4,
            )
        kinds = {"bias": bool, "batch_first": bool, "input_size": int, "hidden_size": int}
        for name, kind in kinds.items():
            value = getattr(self, name)
            if not isinstance(value, kind):
                raise TypeError(
                    f"{name} should be of type {kind.__name__}, got: {type(value).__name__}"
                )
            if kind is int and value <= 0:
                raise ValueError(f"{name} must be greater than zero")
        if self.num_layers <= 0:
            raise ValueError("num_layers must be greater than zero")
        if self.proj_size < 0:
            raise ValueError(
                "proj_size should be a positive integer or zero to disable projections"
            )
        if self.proj_size >= self.hidden_size:
            raise ValueError("proj_size has to be smaller than hidden_size")
        if self.mode not in _GATES:
            raise ValueError("Unrecognized RNN mode: " + self.mode)

    # ---- the flat list of weights, kept up to date as parameters are replaced

    def _init_flat_weights(self) -> None:
        self._flat_weights = [getattr(self, name, None) for name in self._flat_weights_names]
        self._flat_weight_refs = [None if w is None else weakref.ref(w) for w in self._flat_weights]

    def _update_flat_weights(self) -> None:
        for ref, name in zip(self._flat_weight_refs, self._flat_weights_names, strict=True):
            weight = getattr(self, name, None)
            if weight is not None and ref is not None and ref() is not weight:
                self._init_flat_weights()
                return

    def __setattr__(self, attr: str, value: Any) -> None:
        names = self.__dict__.get("_flat_weights_names", ())
        if attr in names and len(self._flat_weights) == len(names):
            self._flat_weights[names.index(attr)] = value
        super().__setattr__(attr, value)

    def flatten_parameters(self) -> None:
        """Do nothing: the kernels read weights where they lie. Programs call this for cuDNN's sake."""

    def _apply(self, fn: Any, recurse: bool = True) -> Any:
        self._flat_weight_refs = []
        result = super()._apply(fn, recurse)
        self._init_flat_weights()
        return result

    def __getstate__(self) -> dict[str, Any]:
        self._update_flat_weights()
        state = self.__dict__.copy()
        del state["_flat_weight_refs"]
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self.__dict__.setdefault("proj_size", 0)
        self._flat_weight_refs = [None if w is None else weakref.ref(w) for w in self._flat_weights]

    @property
    def all_weights(self) -> list[list[Parameter]]:
        """The parameters, a list per layer and direction."""
        return [[getattr(self, name) for name in names] for names in self._all_weights]

    def reset_parameters(self) -> None:
        """Draw all parameters from U(-1 / sqrt(hidden_size), 1 / sqrt(hidden_size))."""
        _reset(self, self.hidden_size)

    def extra_repr(self) -> str:
        text = f"{self.input_size}, {self.hidden_size}"
        defaults = {"proj_size": 0, "num_layers": 1, "bias": True, "batch_first": False, "dropout": 0, "bidirectional": False}  # fmt: skip
        for name, default in defaults.items():
            if getattr(self, name) != default:
                text += f", {name}={getattr(self, name)}"
        return text

    # ---- checks

    def check_input(self, input: Tensor, batch_sizes: Tensor | None) -> None:
        """Raise torch's errors for an input of another dtype, rank or size."""
        dtype = self._flat_weights[0].dtype
        if input.dtype != dtype and not STATE.active:
            raise ValueError(
                f"RNN input dtype ({input.dtype}) does not match weight dtype ({dtype}). "
                f"Convert input: input.to({dtype}), or convert model: model.to({input.dtype})"
            )
        rank = 3 if batch_sizes is None else 2
        if input.dim() != rank:
            raise RuntimeError(f"input must have {rank} dimensions, got {input.dim()}")
        if self.input_size != input.size(-1):
            raise RuntimeError(
                f"input.size(-1) must be equal to input_size. Expected {self.input_size}, got {input.size(-1)}"
            )

    def _batch(self, input: Tensor, batch_sizes: Tensor | None) -> int:
        if batch_sizes is not None:
            return int(batch_sizes[0])
        return input.size(0 if self.batch_first else 1)

    def get_expected_hidden_size(
        self, input: Tensor, batch_sizes: Tensor | None
    ) -> tuple[int, int, int]:
        """Return the shape the first hidden state must have for an input."""
        batch = self._batch(input, batch_sizes)
        return self.num_layers * self._directions, batch, self.proj_size or self.hidden_size

    def check_hidden_size(
        self,
        hx: Tensor,
        expected_hidden_size: tuple[int, int, int],
        msg: str = "Expected hidden size {}, got {}",
    ) -> None:
        """RuntimeError for a hidden state of another shape."""
        if tuple(hx.size()) != tuple(expected_hidden_size):
            raise RuntimeError(msg.format(expected_hidden_size, list(hx.size())))

    def check_forward_args(self, input: Tensor, hidden: Any, batch_sizes: Tensor | None) -> None:
        """Raise torch's errors for an input and a hidden state that do not fit."""
        self.check_input(input, batch_sizes)
        self.check_hidden_size(hidden, self.get_expected_hidden_size(input, batch_sizes))

    def permute_hidden(self, hx: Any, permutation: Tensor | None) -> Any:
        """Reorder the batch of a hidden state."""
        return hx if permutation is None else _reorder(hx, permutation)

    # ---- forward

    def _zeros(self, input: Tensor, batch_sizes: Tensor | None) -> Any:
        return input.new_zeros(self.get_expected_hidden_size(input, batch_sizes))

    def _add_batch(self, hx: Any, batched: bool) -> Any:
        """Check the rank of a hidden state, and give an unbatched one its batch dim."""
        rank = 3 if batched else 2
        if hx.dim() != rank:
            raise RuntimeError(
                f"For {'batched' if batched else 'unbatched'} {rank}-D input, hx should also be {rank}-D but got {hx.dim()}-D tensor"
            )
        return hx if batched else hx.unsqueeze(1)

    def _drop_batch(self, hx: Any) -> Any:
        return hx.squeeze(1)

    def forward(self, input: Any, hx: Any = None) -> Any:
        """Run over input (T, N, I), (N, T, I) with `batch_first`, (T, I), or a `PackedSequence`.

        `hx` is the first state, (layers * directions, N, H), zeros by default; an LSTM's is a pair. Returns (output, last state).
        """
        self._update_flat_weights()
        if isinstance(input, PackedSequence):
            return self._forward_packed(input, hx)
        if input.dim() not in (2, 3):
            name = "RNN" if self.mode.startswith("RNN") else self.mode
            raise ValueError(
                f"{name}: Expected input to be 2D or 3D, got {input.dim()}D{self._dim_note} instead"
            )
        batched, batch_dim = input.dim() == 3, 0 if self.batch_first else 1
        if not batched:
            input = input.unsqueeze(batch_dim)
        hx = self._zeros(input, None) if hx is None else self._add_batch(hx, batched)
        self.check_forward_args(input, hx, None)
        output, hidden = self._run(input, hx, self.batch_first)
        if not batched:
            return output.squeeze(batch_dim), self._drop_batch(hidden)
        return output, hidden

    def _forward_packed(self, input: PackedSequence, hx: Any) -> Any:
        data, sizes, order, back = input
        hx = self._zeros(data, sizes) if hx is None else self.permute_hidden(hx, order)
        self.check_forward_args(data, hx, sizes)
        output, hidden = self._run(data, hx, sizes)
        return PackedSequence(output, sizes, order, back), self.permute_hidden(hidden, back)

    def _run(self, input: Tensor, hx: Any, how: Any) -> tuple[Tensor, Any]:
        """Call the function of the mode; `how` is `batch_first`, or for packed data the batch sizes."""
        function = getattr(recurrent, self.mode.lower())
        shared = (self._flat_weights, self.bias, self.num_layers, self.dropout, self.training, self.bidirectional)  # fmt: skip
        if isinstance(how, Tensor):
            output, *hidden = function(input, how, hx, *shared)
        else:
            output, *hidden = function(input, hx, *shared, how)
        return output, hidden[0] if len(hidden) == 1 else tuple(hidden)


def _refuse_projection(kwargs: dict[str, Any]) -> None:
    if "proj_size" in kwargs:
        raise ValueError("proj_size argument is only supported for LSTM, not RNN or GRU")


class RNN(RNNBase):
    """Elman network: h' = tanh(W_ih x + b_ih + W_hh h + b_hh), or with relu.

    Arguments: input_size, hidden_size, num_layers=1, nonlinearity="tanh", bias=True, batch_first=False, dropout=0.0,
    bidirectional=False, device, dtype.
    """

    _dim_note = " tensor"

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        _refuse_projection(kwargs)
        if len(args) > 3:
            self.nonlinearity = args[3]
            args = args[:3] + args[4:]
        else:
            self.nonlinearity = kwargs.pop("nonlinearity", "tanh")
        if self.nonlinearity not in ("tanh", "relu"):
            raise ValueError(
                f"Unknown nonlinearity '{self.nonlinearity}'. Select from 'tanh' or 'relu'."
            )
        super().__init__(f"RNN_{self.nonlinearity.upper()}", *args, **kwargs)


class GRU(RNNBase):
    """Gated recurrent network (Cho et al., arXiv 1406.1078).

    Arguments: input_size, hidden_size, num_layers=1, bias=True, batch_first=False, dropout=0.0, bidirectional=False, device, dtype.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        _refuse_projection(kwargs)
        super().__init__("GRU", *args, **kwargs)


class LSTM(RNNBase):
    """Long short-term memory; with `proj_size` the hidden state is projected (Sak et al., arXiv 1402.1128).

    Arguments: input_size, hidden_size, num_layers=1, bias=True, batch_first=False, dropout=0.0, bidirectional=False,
    proj_size=0, device, dtype.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__("LSTM", *args, **kwargs)

    def get_expected_cell_size(
        self, input: Tensor, batch_sizes: Tensor | None
    ) -> tuple[int, int, int]:
        """Return the shape the first cell state must have for an input."""
        batch = self._batch(input, batch_sizes)
        return self.num_layers * self._directions, batch, self.hidden_size

    def check_forward_args(self, input: Tensor, hidden: Any, batch_sizes: Tensor | None) -> None:
        """Raise torch's errors for an input and states that do not fit."""
        self.check_input(input, batch_sizes)
        expected = (
            self.get_expected_hidden_size(input, batch_sizes),
            self.get_expected_cell_size(input, batch_sizes),
        )
        for i, shape in enumerate(expected):
            self.check_hidden_size(hidden[i], shape, f"Expected hidden[{i}] size {{}}, got {{}}")

    def permute_hidden(self, hx: Any, permutation: Tensor | None) -> Any:
        """Reorder the batch of both states."""
        return hx if permutation is None else tuple(_reorder(h, permutation) for h in hx)

    def _zeros(self, input: Tensor, batch_sizes: Tensor | None) -> Any:
        cell = self.get_expected_cell_size(input, batch_sizes)
        return super()._zeros(input, batch_sizes), input.new_zeros(cell)

    def _add_batch(self, hx: Any, batched: bool) -> Any:
        rank = 3 if batched else 2
        if hx[0].dim() != rank or hx[1].dim() != rank:
            raise RuntimeError(
                f"For {'batched' if batched else 'unbatched'} {rank}-D input, hx and cx should also be {rank}-D but got "
                f"({hx[0].dim()}-D, {hx[1].dim()}-D) tensors"
            )
        return hx if batched else tuple(h.unsqueeze(1) for h in hx)

    def _drop_batch(self, hx: Any) -> Any:
        return tuple(h.squeeze(1) for h in hx)


# ------------------------------------------------------------------------------------------- cells


class RNNCellBase(Module):
    """What the cells share: weights (gates * H, I) and (gates * H, H), and biases."""

    weight_ih: Tensor
    weight_hh: Tensor
    bias_ih: Tensor | None
    bias_hh: Tensor | None

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool,
        num_chunks: int,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.input_size, self.hidden_size, self.bias = input_size, hidden_size, bias
        rows = num_chunks * hidden_size

        def empty(*shape: int) -> Parameter:
            return Parameter(creation.empty(shape, device=device, dtype=dtype))

        self.weight_ih, self.weight_hh = empty(rows, input_size), empty(rows, hidden_size)
        for name in ("bias_ih", "bias_hh"):
            self.register_parameter(name, empty(rows) if bias else None)
        self.reset_parameters()

    def extra_repr(self) -> str:
        text = f"{self.input_size}, {self.hidden_size}"
        if self.bias is not True:
            text += f", bias={self.bias}"
        if self.__dict__.get("nonlinearity", "tanh") != "tanh":
            text += f", nonlinearity={self.__dict__['nonlinearity']}"
        return text

    def reset_parameters(self) -> None:
        """Draw all parameters from U(-1 / sqrt(hidden_size), 1 / sqrt(hidden_size))."""
        _reset(self, self.hidden_size)

    def _check_rank(self, x: Tensor, what: str) -> None:
        if x.dim() not in (1, 2):
            raise ValueError(
                f"{type(self).__name__}: Expected {what} to be 1D or 2D, got {x.dim()}D instead"
            )

    def _step(self, name: str, input: Tensor, hx: Tensor | None) -> Tensor:
        """Run a cell whose state is one tensor, batched or not."""
        self._check_rank(input, "input")
        if hx is not None:
            self._check_rank(hx, "hidden")
        batched = input.dim() == 2
        x = input if batched else input.unsqueeze(0)
        if hx is None:
            hx = x.new_zeros(x.size(0), self.hidden_size)
        elif not batched:
            hx = hx.unsqueeze(0)
        weights = (self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh)
        result = getattr(recurrent, name)(x, hx, *weights)
        return result if batched else result.squeeze(0)


class RNNCell(RNNCellBase):
    """One Elman step: input (N, I) and state (N, H) to the next state; N may lack."""

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        nonlinearity: str = "tanh",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(input_size, hidden_size, bias, 1, device, dtype)
        self.nonlinearity = nonlinearity

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        """Return the next state."""
        if self.nonlinearity not in ("tanh", "relu"):
            raise RuntimeError(f"Unknown nonlinearity: {self.nonlinearity}")
        return self._step(f"rnn_{self.nonlinearity}_cell", input, hx)


class GRUCell(RNNCellBase):
    """One GRU step: input (N, I) and state (N, H) to the next state; N may lack."""

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(input_size, hidden_size, bias, 3, device, dtype)

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        """Return the next state."""
        return self._step("gru_cell", input, hx)


class LSTMCell(RNNCellBase):
    """One LSTM step: input (N, I) and states (h, c), both (N, H), to the next pair; N may lack."""

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(input_size, hidden_size, bias, 4, device, dtype)

    def forward(
        self, input: Tensor, hx: tuple[Tensor, Tensor] | None = None
    ) -> tuple[Tensor, Tensor]:
        """Return the next (h, c)."""
        self._check_rank(input, "input")
        for i, h in enumerate(hx or ()):
            self._check_rank(h, f"hx[{i}]")
        batched = input.dim() == 2
        x = input if batched else input.unsqueeze(0)
        if hx is None:
            zeros = x.new_zeros(x.size(0), self.hidden_size)
            hx = (zeros, zeros)
        elif not batched:
            hx = (hx[0].unsqueeze(0), hx[1].unsqueeze(0))
        h, c = recurrent.lstm_cell(
            x, hx, self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh
        )
        return (h, c) if batched else (h.squeeze(0), c.squeeze(0))
