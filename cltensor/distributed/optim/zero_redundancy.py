"""`ZeroRedundancyOptimizer`: each process steps a share of the parameters, and keeps the optimiser's state of that
share only.

After a step every process broadcasts its share to the others. Every process needs the gradients of its share as
averaged by DistributedDataParallel. Knows nothing of what the optimiser does.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...optim import Optimizer
from ...tensor import Tensor
from ..algorithms.join import Joinable, JoinHook
from ..groups import get_rank, get_world_size, group_or_default
from ..objects import all_gather_object
from ..reducer import broadcast_coalesced

__all__ = ["ZeroRedundancyOptimizer"]

_MESSAGE = 25 << 20  # bytes broadcast at once


class _Hook(JoinHook):
    """Lets a process without inputs go on stepping its share."""

    def __init__(self, optimizer: ZeroRedundancyOptimizer) -> None:
        self._optimizer = optimizer

    def main_hook(self) -> None:
        self._optimizer.step()


class ZeroRedundancyOptimizer(Optimizer, Joinable):
    """An optimiser of class `optimizer_class`, with its state divided among the processes of a group.

    defaults: the class's options. parameters_as_bucket_view: accepted and ignored, as parameters are sent side by side
    anyway. Before `state_dict`, all processes must call `consolidate_state_dict`.
    """

    def __init__(
        self,
        params: Any,
        optimizer_class: type[Optimizer],
        process_group: Any = None,
        parameters_as_bucket_view: bool = False,
        overlap_with_ddp: bool = False,
        **defaults: Any,
    ) -> None:
        if overlap_with_ddp:
            raise NotImplementedError("ZeroRedundancyOptimizer: no overlap_with_ddp")
        self.process_group = group_or_default(process_group)
        self.rank = get_rank(self.process_group)
        self.world_size = get_world_size(self.process_group)
        given = _checked(params)
        self._sizes = [0] * self.world_size  # bytes that each process steps
        self._owner: dict[Any, int] = {}
        self._gathered: list[Any] = []
        self._class, self._options = optimizer_class, defaults
        self.optim: Any = None
        super().__init__(given, dict(defaults))
        Joinable.__init__(self)
        self._make_optim()

    def _make_optim(self) -> None:
        """Make the optimiser of this process's share; copy the options that it filled in to the groups here."""
        shares = [{**g, "params": self._mine(g)} for g in self.param_groups]
        if not any(g["params"] for g in shares):  # an optimiser refuses an empty list of parameters
            shares[0]["params"] = [self.param_groups[0]["params"][0].detach().clone()]
        self.optim = self._class(shares, **self._options)
        for here, there in zip(self.param_groups, self.optim.param_groups):
            here.update({k: v for k, v in there.items() if k != "params"})
        self.defaults = self.optim.defaults

    def _mine(self, group: dict[str, Any]) -> list[Any]:
        mine = [p for p in group["params"] if self._owner[p] == self.rank]
        return sorted(mine, key=lambda p: p.numel(), reverse=True)

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Add a group, divided among the processes: the largest parameters first, each to the process with the fewest
        bytes.
        """
        super().add_param_group(param_group)
        added = self.param_groups[-1]
        for p in sorted(added["params"], key=lambda p: p.numel(), reverse=True):
            owner = min(range(self.world_size), key=self._sizes.__getitem__)
            self._owner[p] = owner
            self._sizes[owner] += p.numel() * p.element_size()
        if self.optim is not None:
            self.optim.add_param_group({**added, "params": self._mine(added)})

    # --- steps

    def step(self, closure: Callable[[], Any] | None = None, **kwargs: Any) -> Any:
        """Step this process's share, and receive the parameters that the others have stepped."""
        self._copy_options(self.param_groups, self.optim.param_groups)
        loss = self.optim.step(closure=closure, **kwargs)
        self._copy_options(self.optim.param_groups, self.param_groups)
        for rank in range(self.world_size):
            theirs = [p for p, owner in self._owner.items() if owner == rank]
            if theirs:
                broadcast_coalesced(self.process_group, theirs, _MESSAGE, rank)
        return loss

    @staticmethod
    def _copy_options(source: list[dict[str, Any]], target: list[dict[str, Any]]) -> None:
        """Copy options from one list of groups to another, so that both see what a schedule changed in one of them."""
        for here, there in zip(source, target):
            there.update({k: v for k, v in here.items() if k != "params"})

    # --- states

    def consolidate_state_dict(self, to: int = 0) -> None:
        """Gather all processes' states in process `to`; all processes must call this."""
        mine = {
            i: _on_host(self.optim.state[p])
            for i, p in enumerate(self._parameters())
            if self._owner[p] == self.rank
        }
        found: list[Any] = [None] * self.world_size
        all_gather_object(found, mine, self.process_group)
        self._gathered = found if self.rank == to else []

    def _parameters(self) -> list[Any]:
        return [p for g in self.param_groups for p in g["params"]]

    def state_dict(self) -> dict[str, Any]:
        """Return the state of all parameters. RuntimeError before `consolidate_state_dict` to this process."""
        if not self._gathered:
            raise RuntimeError(
                f"Optimizer state has not been consolidated on this rank. Please call `consolidate_state_dict(to={self.rank})` on all ranks "
                "beforehand if you meant to save the global state."
            )
        state = super().state_dict()
        state["state"] = {i: s for part in self._gathered for i, s in part.items() if s}
        state["state"] = dict(sorted(state["state"].items()))
        return state

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Load the state of all parameters; each process keeps that of its share."""
        super().load_state_dict(state_dict)
        for p, state in self.state.items():
            if isinstance(p, Tensor) and self._owner[p] == self.rank:
                self.optim.state[p] = state
        self.state.clear()
        self._copy_options(self.param_groups, self.optim.param_groups)

    # --- uneven inputs

    def join_hook(self, **kwargs: Any) -> JoinHook:
        """Return the hooks for a process without inputs."""
        return _Hook(self)

    @property
    def join_device(self) -> Any:
        """The parameters' device."""
        return self._parameters()[0].device

    @property
    def join_process_group(self) -> Any:
        """The group that shares the work."""
        return self.process_group


def _checked(params: Any) -> list[Any]:
    """Return parameters or groups; TypeError or ValueError in torch's words for anything else."""
    if isinstance(params, Tensor):
        raise TypeError(
            f"`params` argument should be an iterable of Tensors, but got {params.type()}"
        )
    try:
        given = list(params)
    except TypeError:
        raise TypeError(
            f"`params` argument should be an iterable of Tensors or dicts, but got {type(params).__name__}"
        ) from None
    if not given:
        raise ValueError("ZeroRedundancyOptimizer got an empty parameter list")
    if not (all(isinstance(p, Tensor) for p in given) or all(isinstance(p, dict) for p in given)):
        raise TypeError("`params` argument should be an iterable of Tensors or dicts")
    return given


def _on_host(state: dict[str, Any]) -> dict[str, Any]:
    return {k: v.cpu() if isinstance(v, Tensor) else v for k, v in state.items()}
