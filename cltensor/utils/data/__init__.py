"""`cltensor.utils.data`: datasets, samplers, collating, and the `DataLoader` that drives them, in worker processes if asked."""

import sys as _sys
from types import ModuleType as _ModuleType

from ...reexport import absent as _absent
from ...reexport import expose as _expose
from . import pin_memory as _pin_memory  # noqa: F401 -- reached as `_utils.pin_memory`
from .collate import (
    collate,
    default_collate,
    default_collate_fn_map,
    default_convert,
)
from .dataloader import DataLoader
from .dataset import (
    ChainDataset,
    ConcatDataset,
    Dataset,
    IterableDataset,
    StackDataset,
    Subset,
    TensorDataset,
    random_split,
)
from .distributed import DistributedSampler
from .sampler import (
    BatchSampler,
    RandomSampler,
    Sampler,
    SequentialSampler,
    SubsetRandomSampler,
    WeightedRandomSampler,
)
from .worker import WorkerInfo, get_worker_info

__all__ = [
    "BatchSampler",
    "ChainDataset",
    "ConcatDataset",
    "DataLoader",
    "Dataset",
    "DistributedSampler",
    "IterableDataset",
    "RandomSampler",
    "Sampler",
    "SequentialSampler",
    "StackDataset",
    "Subset",
    "SubsetRandomSampler",
    "TensorDataset",
    "WeightedRandomSampler",
    "WorkerInfo",
    "collate",
    "default_collate",
    "default_collate_fn_map",
    "default_convert",
    "get_worker_info",
    "random_split",
]

# Programs import `default_collate` and others from the modules in which torch defines them, such as `_utils.collate`.
_kept = {
    name: _sys.modules[f"{__name__}.{name}"]
    for name in ("collate", "fetch", "pin_memory", "worker")
}
_utils = _ModuleType(f"{__name__}._utils", "Modules of this package under torch's private path.")
_utils.__dict__.update(_kept)
_expose(globals(), {"_utils": _utils, **{f"_utils.{name}": m for name, m in _kept.items()}})
# Other libraries' loaders test with `isinstance` whether a dataset is one of torch's data pipes; none here is.
_PIPES = "IterDataPipe MapDataPipe ShufflerIterDataPipe"
IterDataPipe, MapDataPipe, ShufflerIterDataPipe = _absent(
    __name__, _PIPES, "datasets are `Dataset` and `IterableDataset`"
)
_expose(
    globals(),
    {
        "datapipes": _PIPES,
        "datapipes.iter": "IterDataPipe ShufflerIterDataPipe",
        "datapipes.iter.combinatorics": "ShufflerIterDataPipe",
        "datapipes.datapipe": "IterDataPipe MapDataPipe",
    },
)
