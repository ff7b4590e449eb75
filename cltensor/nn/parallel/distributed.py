"""`DistributedDataParallel`: a module of which each process trains a replica on its part of the data.

Owns the module's side: equal initial values, buffers, and when gradients are reduced. How they are reduced is in
distributed/reducer.py.
"""

from __future__ import annotations

import inspect
import warnings
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from ... import distributed as dist
from ...autograd import Function, is_grad_enabled
from ...distributed.algorithms.join import Join, Joinable, JoinHook
from ...distributed.reducer import FIRST_BUCKET, GradBucket, Reducer, broadcast_coalesced
from ...ops.row import FUNCTIONS
from ...runtime import device
from ...tensor import Tensor
from ...utils._pytree import tree_flatten, tree_unflatten
from ..modules.module import Module
from ..modules.sparse import Embedding, EmbeddingBag
from ..parameter import UninitializedParameter

__all__ = ["DistributedDataParallel"]

_DEFAULT_CAP = 25  # MiB in a bucket
_BROADCAST = 250 << 20  # bytes broadcast at once


def _find_tensors(obj: Any) -> list[Any]:
    """Return the tensors in nested containers."""
    return [x for x in tree_flatten(obj)[0] if isinstance(x, Tensor)]


class _DDPSink(Function):
    """Identity on the outputs.

    Its backward, which runs before all others, has the reducer take parameters without a gradient at the end as unused.
    """

    @staticmethod
    def forward(ctx: Any, reducer: Any, *inputs: Any) -> Any:
        ctx.set_materialize_grads(False)
        ctx.reducer = reducer
        return tuple(x.clone() if isinstance(x, Tensor) else x for x in inputs)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        reducer = ctx.reducer()
        if reducer is not None:
            reducer.at_end()
        return (None, *grads)


class _Hook(JoinHook):
    """What a replica that has run out of inputs does while others still have some."""

    def __init__(
        self, replica: DistributedDataParallel, divide_by_initial_world_size: bool
    ) -> None:
        replica._divides_by_all = divide_by_initial_world_size
        self._replica = replica

    def main_hook(self) -> None:
        replica = self._replica
        if replica._syncs_buffers():
            replica._broadcast(replica._buffers_of_module(), replica._common_rank(False))
        wanted = replica._others_reduce()
        replica.require_forward_param_sync = wanted
        if wanted:
            replica.reducer.shadow()

    def post_hook(self, is_last_joiner: bool) -> None:
        replica = self._replica
        replica._sync_state(replica._common_rank(is_last_joiner), replica.forward_sync_buffers)


class DistributedDataParallel(Module, Joinable):
    """A replica of a module: parameters begin equal in all processes, and gradients are averaged during backward.

    device_ids: the device that inputs are moved to, for a module on one device; None on the cpu device.
    find_unused_parameters: a forward need not use every parameter. static_graph: every iteration uses the parameters
    that the first one used. gradient_as_bucket_view: gradients are views of the buckets that are sent. Everything else
    is as in torch; `device_mesh` and `mixed_precision` are refused.
    """

    def __init__(
        self,
        module: Module,
        device_ids: Sequence[Any] | None = None,
        output_device: Any = None,
        dim: int = 0,
        broadcast_buffers: bool | None = None,
        init_sync: bool = True,
        process_group: Any = None,
        bucket_cap_mb: float | None = None,
        find_unused_parameters: bool = False,
        check_reduction: bool = False,
        gradient_as_bucket_view: bool = False,
        static_graph: bool = False,
        delay_all_reduce_named_params: Any = None,
        param_to_hook_all_reduce: Any = None,
        mixed_precision: Any = None,
        device_mesh: Any = None,
        skip_all_reduce_unused_params: bool = False,
        bucket_cap_mb_list: list[int] | None = None,
        batched_grad_copy: bool = False,
        forward_sync_buffers: bool | None = None,
    ) -> None:
        super().__init__()
        Joinable.__init__(self)
        for name, given in (
            ("device_mesh", device_mesh),
            ("mixed_precision", mixed_precision),
            ("delay_all_reduce_named_params", delay_all_reduce_named_params),
            ("param_to_hook_all_reduce", param_to_hook_all_reduce),
        ):
            if given is not None:
                raise NotImplementedError(f"DistributedDataParallel: no {name}")
        self.process_group = dist.groups.group_or_default(process_group)
        self.parameters_to_ignore = set(getattr(module, "_ddp_params_and_buffers_to_ignore", ()))
        self._module_parameters = [
            p for name, p in module.named_parameters() if name not in self.parameters_to_ignore
        ]
        self._check_parameters(device_ids, output_device)
        self.module, self.dim = module, dim
        self.device = self._module_parameters[0].device
        self.broadcast_bucket_size = _BROADCAST
        begins_equal = self._choose_buffers(broadcast_buffers, forward_sync_buffers)
        self.find_unused_parameters = find_unused_parameters
        self.gradient_as_bucket_view = gradient_as_bucket_view
        self.static_graph = False
        self.require_backward_grad_sync = self.require_forward_param_sync = True
        self._divides_by_all = True
        if check_reduction:
            warnings.warn(
                "The `check_reduction` argument in `DistributedDataParallel` module is deprecated. Please avoid using it.",
                FutureWarning, stacklevel=2,
            )  # fmt: skip
        cap = bucket_cap_mb or (max(bucket_cap_mb_list) if bucket_cap_mb_list else _DEFAULT_CAP)
        self.bucket_bytes_cap = int(cap * (1 << 20))
        self._first = (
            FIRST_BUCKET if not (bucket_cap_mb or bucket_cap_mb_list) else self.bucket_bytes_cap
        )
        if init_sync:
            self._check_replicas()
            self._sync_state(0, begins_equal)
        self._make_reducer()
        if static_graph:
            self._set_static_graph()

    def _choose_buffers(
        self, broadcast_buffers: bool | None, forward_sync_buffers: bool | None
    ) -> bool:
        """Set whether buffers are broadcast before each forward; return whether they are broadcast at the start."""
        if broadcast_buffers is not None:
            warnings.warn(
                "Both `broadcast_buffers` and `forward_sync_buffers` were specified. `broadcast_buffers` is deprecated and its value is ignored "
                "when `forward_sync_buffers` is provided."
                if forward_sync_buffers is not None
                else "`broadcast_buffers` is deprecated. Use `forward_sync_buffers` instead. IMPORTANT: unlike `broadcast_buffers=False`, "
                "`forward_sync_buffers=False` still syncs buffers at init. If you rely on buffers NOT being synced at init (e.g. rank-local "
                "buffers), keep using `broadcast_buffers=False` until `init_sync_buffers` is available.",
                FutureWarning, stacklevel=3,
            )  # fmt: skip
        if forward_sync_buffers is not None:
            self.forward_sync_buffers = forward_sync_buffers
            return True
        self.forward_sync_buffers = broadcast_buffers is None or bool(broadcast_buffers)
        return self.forward_sync_buffers

    @property
    def broadcast_buffers(self) -> bool:
        """Whether buffers are broadcast before each forward."""
        return self.forward_sync_buffers

    @broadcast_buffers.setter
    def broadcast_buffers(self, value: bool) -> None:
        self.forward_sync_buffers = value

    def _check_parameters(self, device_ids: Sequence[Any] | None, output_device: Any) -> None:
        parameters = self._module_parameters
        if not any(p.requires_grad for p in parameters):
            raise RuntimeError(
                "DistributedDataParallel is not needed when a module doesn't have any parameter that requires a gradient."
            )
        if device_ids is not None and len(device_ids) > 1:
            raise ValueError("device_ids can only be None or contain a single element.")
        if any(isinstance(p, UninitializedParameter) for p in parameters):
            raise RuntimeError(
                "Modules with uninitialized parameters can't be used with `DistributedDataParallel`. Run a dummy forward pass to correctly "
                "initialize the modules"
            )
        places = {p.device for p in parameters}
        kinds = {place.type for place in places}
        if len(kinds) != 1:
            raise ValueError(
                f"DistributedDataParallel's input module must be on the same type of devices, but input module parameters locate in {kinds}."
            )
        self.device_type = kinds.pop()
        self.is_multi_device_module = len(places) > 1
        self.device_ids: list[Any] | None = None
        self.output_device: Any = None
        if not device_ids or self.device_type == "cpu" or self.is_multi_device_module:
            if device_ids or output_device:
                raise ValueError(
                    "DistributedDataParallel device_ids and output_device arguments only work with single-device/multiple-device GPU modules or "
                    f"CPU modules, but got device_ids {device_ids}, output_device {output_device}, and module parameters {places}."
                )
            return
        self.device_ids = list(device_ids)
        self.output_device = device_ids[0] if output_device is None else output_device

    def _check_replicas(self) -> None:
        """Raise torch's RuntimeError unless all processes have parameters of the same shapes."""
        mine = [tuple(p.shape) for p in self._trained()]
        found: list[Any] = [None] * self.process_group.size()
        dist.all_gather_object(found, mine, self.process_group)
        rank = self.process_group.rank()
        for other, shapes in enumerate(found):
            if len(shapes) != len(found[0]):
                raise RuntimeError(
                    f"DDP expects same model across all ranks, but Rank {rank} has {len(mine)} params, while rank "
                    f"{other if other != rank else 0} has inconsistent {len(shapes if other != rank else found[0])} params."
                )
        for i, (here, there) in enumerate(zip(mine, found[0])):
            if here != there:
                raise RuntimeError(
                    f"[{rank}]: params[{i}] in this process with sizes {list(here)} appears not to match sizes of the same param in process 0."
                )
        if any(shapes != found[0] for shapes in found):
            raise RuntimeError(
                f"[{rank}]: a process has parameters of other sizes than process 0: {found}"
            )

    def _trained(self) -> list[Any]:
        return [p for p in self._module_parameters if p.requires_grad]

    def _make_reducer(self) -> None:
        self.reducer = Reducer(
            self._trained(),
            self.process_group,
            self.bucket_bytes_cap,
            self._first,
            self.find_unused_parameters,
            self.gradient_as_bucket_view,
            self._sparse(),
        )

    def _sparse(self) -> list[int]:
        """Return the indices of the trained parameters whose gradients will be sparse."""
        tables = [
            m.weight
            for m in self.module.modules()
            if isinstance(m, Embedding | EmbeddingBag) and m.sparse
        ]
        return [i for i, p in enumerate(self._trained()) if any(p is t for t in tables)]

    # --- what processes have in common

    def _buffers_of_module(self) -> list[Any]:
        return [
            b for name, b in self.module.named_buffers() if name not in self.parameters_to_ignore
        ]

    def _broadcast(self, tensors: list[Any], root: int) -> None:
        broadcast_coalesced(self.process_group, tensors, self.broadcast_bucket_size, root)

    def _sync_state(self, root: int, buffers: bool) -> None:
        """Broadcast the parameters, and if `buffers` the buffers, of the process `root`."""
        tensors = [p.detach() for p in self._module_parameters]
        self._broadcast(tensors + (self._buffers_of_module() if buffers else []), root)

    def _syncs_buffers(self) -> bool:
        return (
            self.require_forward_param_sync
            and self.forward_sync_buffers
            and bool(self._buffers_of_module())
        )

    def _common_rank(self, mine: bool) -> int:
        """Return the highest rank among the processes that pass true."""
        rank = FUNCTIONS["tensor"]([self.process_group.rank() if mine else -1], device=self.device)
        dist.all_reduce(rank, dist.ReduceOp.MAX, self.process_group)
        return int(rank.item())

    def _others_reduce(self, mine: bool = False) -> bool:
        """Return whether any process reduces gradients in this iteration; `mine` is whether this one does."""
        wants = FUNCTIONS["full"]((1,), float(mine), device=self.device)
        dist.all_reduce(wants, group=self.process_group)
        return bool(wants.item())

    # --- forward

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        """Call the module; the backward of its output averages gradients."""
        reduces = is_grad_enabled() and self.require_backward_grad_sync
        if reduces:
            self.reducer.prepare()
        counted = Join.notify_join_context(self)
        self.reducer.divisor = float(self.process_group.size())
        if counted is not None and not self._divides_by_all:
            self.reducer.divisor = float(counted.result()[0].item())
        if self._syncs_buffers():
            root = self._common_rank(True) if self._join_config.enable else 0
            self._broadcast(self._buffers_of_module(), root)
        if self._join_config.enable:
            self._others_reduce(self.require_backward_grad_sync)
        if self.device_ids:
            inputs, kwargs = self._moved((inputs, kwargs))
        output = self.module(*inputs, **kwargs)
        self.require_forward_param_sync = reduces
        return self._through_sink(output) if reduces and self.reducer.waits_for_end else output

    def _moved(self, values: Any) -> Any:
        assert self.device_ids is not None
        place = self.device_ids[0]
        target = device(self.device_type, place) if isinstance(place, int) else device(place)
        leaves, spec = tree_flatten(values)
        return tree_unflatten([x.to(target) if isinstance(x, Tensor) else x for x in leaves], spec)

    def _through_sink(self, output: Any) -> Any:
        """Return the output passed through `_DDPSink`, which tells the reducer when backward begins."""
        leaves, spec = tree_flatten(output)
        through = [
            i for i, x in enumerate(leaves) if isinstance(x, Tensor) and x.grad_fn is not None
        ]
        if not through:
            return output
        passed = _DDPSink.apply(weakref.ref(self.reducer), *[leaves[i] for i in through])
        for i, x in zip(through, passed if isinstance(passed, tuple) else (passed,)):
            leaves[i] = x
        return tree_unflatten(leaves, spec)

    @contextmanager
    def no_sync(self) -> Iterator[None]:
        """Within the block, gradients are only accumulated locally; the first backward after it averages them."""
        before = self.require_backward_grad_sync
        self.require_backward_grad_sync = False
        try:
            yield
        finally:
            self.require_backward_grad_sync = before

    def _set_static_graph(self) -> None:
        if self.static_graph:
            warnings.warn(
                "You've set static_graph to be True, no need to set it again.", stacklevel=2
            )
            return
        self.static_graph = self.reducer.static = True
        if self.find_unused_parameters:
            warnings.warn(
                "You passed find_unused_parameters=true to DistributedDataParallel, `_set_static_graph` will detect unused parameters automatically, "
                "so you do not need to set find_unused_parameters=true, just be sure these unused parameters will not change during training loop "
                "while calling `_set_static_graph`.",
                stacklevel=2,
            )

    # --- hooks

    def register_comm_hook(self, state: Any, hook: Callable[[Any, GradBucket], Any]) -> None:
        """Have `hook(state, bucket)` reduce each bucket; it returns a future of the result. RuntimeError for a second one."""
        if not callable(hook):
            raise TypeError("Communication hook must be callable.")
        signature = inspect.signature(hook)
        said = signature.parameters["bucket"].annotation
        if said not in (inspect._empty, GradBucket, "GradBucket", "dist.GradBucket"):
            raise ValueError("Communication hook: bucket annotation should be dist.GradBucket.")
        said = signature.return_annotation
        if said is not inspect._empty and "Future" not in str(said):
            raise ValueError(
                "Communication hook: return annotation should be torch.futures.Future[torch.Tensor]."
            )
        self.reducer.set_hook(state, hook)

    @staticmethod
    def _set_params_and_buffers_to_ignore_for_model(module: Any, names: Sequence[str]) -> None:
        module._ddp_params_and_buffers_to_ignore = names

    # --- uneven inputs

    def join(
        self,
        divide_by_initial_world_size: bool = True,
        enable: bool = True,
        throw_on_early_termination: bool = False,
    ) -> Join:
        """Return a context manager within which processes may have different numbers of inputs."""
        return Join(
            [self],
            enable,
            throw_on_early_termination,
            divide_by_initial_world_size=divide_by_initial_world_size,
        )

    def join_hook(self, **kwargs: Any) -> JoinHook:
        """Return the hook of a process that has run out of inputs."""
        return _Hook(self, kwargs.get("divide_by_initial_world_size", True))

    @property
    def join_device(self) -> Any:
        """The module's device."""
        return self.device

    @property
    def join_process_group(self) -> Any:
        """The group that gradients are averaged over."""
        return self.process_group

    # --- pickles and copies

    def __getstate__(self) -> dict[str, Any]:
        if self.process_group is not dist.group.WORLD:
            raise RuntimeError(
                "DDP Pickling/Unpickling are only supported when using DDP with the default process group. That is, when you have called "
                "init_process_group and have not passed process_group argument to DDP constructor"
            )
        state = dict(self.__dict__)
        del state["process_group"], state["reducer"]
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.process_group = dist.groups.default_group()
        super().__setstate__(state)
        self._make_reducer()
        self.reducer.static = self.static_graph
