"""`AdaptiveLogSoftmaxWithLoss`: log-probabilities of many classes, rare ones in clusters of their own."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Iterator, Sequence
from typing import Any

from ...ops.row import FUNCTIONS
from ...tensor import Tensor
from .. import functional as F
from .container import ModuleList, Sequential
from .linear import Linear
from .module import Module

__all__ = ["AdaptiveLogSoftmaxWithLoss"]

_ASMoutput = namedtuple("_ASMoutput", ["output", "loss"])


class AdaptiveLogSoftmaxWithLoss(Module):
    """Classes up to cutoffs[0] and the clusters share a head; each cluster has a smaller tail (Grave et al., arXiv 1609.04309)."""

    def __init__(
        self, in_features: int, n_classes: int, cutoffs: Sequence[int], div_value: float = 4.0,
        head_bias: bool = False, device: Any = None, dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__()
        cutoffs = list(cutoffs)
        if not cutoffs:
            raise ValueError("cutoffs should be a sequence of length larger than 0")
        if (
            any(int(c) != c for c in cutoffs)
            or cutoffs != sorted(set(cutoffs))
            or not 0 < cutoffs[0] <= cutoffs[-1] < n_classes
        ):
            raise ValueError(
                "cutoffs should be a sequence of unique, positive integers sorted in an increasing order, where each value is between 1 and "
                "n_classes-1"
            )
        self.in_features, self.n_classes = in_features, n_classes
        self.cutoffs = [*cutoffs, n_classes]
        self.div_value, self.head_bias = div_value, head_bias
        self.shortlist_size = self.cutoffs[0]
        self.n_clusters = len(self.cutoffs) - 1
        self.head_size = self.shortlist_size + self.n_clusters
        where = {"device": device, "dtype": dtype}
        self.head = Linear(in_features, self.head_size, bias=head_bias, **where)
        self.tail = ModuleList()
        for i, low, high in self._clusters():
            hidden = int(in_features // (div_value ** (i + 1)))
            self.tail.append(
                Sequential(
                    Linear(in_features, hidden, bias=False, **where),
                    Linear(hidden, high - low, bias=False, **where),
                )
            )

    def _clusters(self) -> Iterator[tuple[int, int, int]]:
        """Yield each cluster's number, first class and end."""
        for i, (low, high) in enumerate(zip(self.cutoffs, self.cutoffs[1:])):
            yield i, low, high

    def reset_parameters(self) -> None:
        """Initialise all parameters again."""
        for module in self.modules():
            if isinstance(module, Linear):
                module.reset_parameters()

    def forward(self, input_: Tensor, target_: Tensor) -> Any:
        """Return the log-probability of each target class, and the negative of their mean."""
        _check(input_, target_)
        single = target_.dim() == 0
        input = input_.unsqueeze(0) if single else input_
        target = target_.unsqueeze(0) if single else target_
        self._check_range(target)
        # Every sample asks the head for its class or its cluster; those in a cluster then add what its tail says.
        asked = target
        added = None
        for i, low, high in self._clusters():
            rows = ((target >= low) & (target < high)).nonzero().squeeze(1)
            if rows.numel() == 0:
                continue
            asked = asked.index_fill(0, rows, self.shortlist_size + i)
            within = F.log_softmax(self.tail[i](input.index_select(0, rows)), dim=1)
            wanted = (target.index_select(0, rows) - low).unsqueeze(1)
            added = input.new_zeros(target.shape) if added is None else added
            added = added.index_copy(0, rows, within.gather(1, wanted).squeeze(1))
        output = F.log_softmax(self.head(input), dim=1).gather(1, asked.unsqueeze(1)).squeeze(1)
        if added is not None:
            output = output + added
        loss = (-output).mean()
        return _ASMoutput(output.squeeze(0) if single else output, loss)

    def _check_range(self, target: Tensor) -> None:
        if target.numel() == 0:
            return
        low, high = (int(v) for v in FUNCTIONS["aminmax"](target))
        if low < 0 or high >= self.n_classes:
            raise RuntimeError(
                f"Target values should be in [0, {self.n_classes - 1}], but values in range [{low}, {high}] were found. "
            )

    def _get_full_log_prob(self, input: Tensor, head_output: Tensor) -> Tensor:
        head = F.log_softmax(head_output, dim=1)
        parts = [head[:, : self.shortlist_size]]
        for i, _, _ in self._clusters():
            within = F.log_softmax(self.tail[i](input), dim=1)
            parts.append(within + head[:, self.shortlist_size + i].unsqueeze(1))
        return FUNCTIONS["cat"](parts, 1)

    def log_prob(self, input: Tensor) -> Tensor:
        """Return the log-probabilities (N, n_classes) of all classes."""
        return self._get_full_log_prob(input, self.head(input))

    def predict(self, input: Tensor) -> Tensor:
        """Return the most likely class of each sample; clusters are evaluated only where the head prefers one."""
        head_output = self.head(input)
        best = head_output.argmax(1)
        rows = (best >= self.shortlist_size).nonzero().squeeze(1)
        if rows.numel() == 0:
            return best
        full = self._get_full_log_prob(
            input.index_select(0, rows), head_output.index_select(0, rows)
        )
        return best.index_copy(0, rows, full.argmax(1))


def _check(input: Tensor, target: Tensor) -> None:
    if target.dim() > 1:
        raise RuntimeError("0D or 1D target tensor expected, multi-target not supported")
    if target.dim() == 1 and input.size(0) != target.size(0):
        raise RuntimeError("Input and target should have the same size in the batch dimension.")
    if input.dim() != target.dim() + 1:
        raise RuntimeError(
            f"{target.dim()}D target tensor expects {target.dim() + 1}D input tensors, but found inputs with size {input.size()}"
        )
