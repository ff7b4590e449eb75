"""Module paths that exist for compatibility with torch export the package's own names."""

from __future__ import annotations

import importlib
import inspect
import pickle
from types import ModuleType

import pytest

import cltensor as torch
from cltensor.reexport import expose


@pytest.mark.parametrize(
    ("path", "name", "owner"),
    [
        ("functional", "einsum", torch),
        ("return_types", "topk", torch.return_types),
        ("autograd.grad_mode", "no_grad", torch),
        ("autograd.anomaly_mode", "detect_anomaly", torch.autograd),
        ("autograd.variable", "Variable", torch.autograd),
        ("distributions.bernoulli", "Bernoulli", torch.distributions),
        ("distributions.studentT", "StudentT", torch.distributions),
        ("cuda.memory", "memory_allocated", torch.cuda),
        ("cuda.random", "get_rng_state_all", torch.cuda),
        ("cpu.amp.autocast_mode", "autocast", torch.cpu.amp),
        ("nn.parallel.data_parallel", "DataParallel", torch.nn),
    ],
)
def test_a_path_of_torch_imports(path: str, name: str, owner: object) -> None:
    module = importlib.import_module(f"cltensor.{path}")
    assert getattr(module, name) is getattr(owner, name)


def test_a_package_keeps_the_attribute_it_has_under_a_path() -> None:
    assert callable(torch.nn.parallel.data_parallel)
    package = {"__name__": "made_up", "thing": 1, "taken": 2}
    expose(package, {"taken": "thing", "new": "thing"})
    assert package["taken"] == 2
    assert isinstance(package["new"], ModuleType)
    assert importlib.import_module("made_up.taken").__all__ == ["thing"]


def test_states_of_no_gpu_are_an_empty_list() -> None:
    states = torch.cuda.get_rng_state_all()
    assert len(states) == torch.cuda.device_count()
    torch.cuda.set_rng_state_all(states)


def test_seeding_gpus_leaves_cpu_alone() -> None:
    torch.manual_seed(5)
    torch.cuda.manual_seed(6)
    torch.cuda.manual_seed_all(7)
    assert torch.initial_seed() == 5


def test_namespaces_have_the_same_function() -> None:
    module = importlib.import_module("cltensor.functional")
    assert module.einsum is torch.einsum
    with torch.autocast("cpu"):
        assert module.einsum is torch.einsum


@pytest.mark.parametrize("module", ["fft", "linalg", "special"])
def test_functions_are_pickled_by_name(module: str) -> None:
    names = importlib.import_module(f"cltensor.{module}")
    functions = [f for f in map(vars(names).get, names.__all__) if inspect.isfunction(f)]
    assert functions
    assert all(pickle.loads(pickle.dumps(f)) is f for f in functions)


def test_a_path_below_a_path_is_its_attribute() -> None:
    collectives = importlib.import_module("cltensor.distributed").nn
    assert collectives.functional.all_reduce is collectives.all_reduce


def test_schedules_are_at_home_in_one_module() -> None:
    schedules = importlib.import_module("cltensor.optim.lr_scheduler")
    kinds = [k for k in vars(schedules).values() if isinstance(k, type)]
    assert len(kinds) > 10
    assert {k.__module__ for k in kinds} == {schedules.__name__}


def test_hooks_of_all_modules_are_found_under_torchs_names() -> None:
    module = importlib.import_module("cltensor.nn.modules.module")
    handle = module.register_module_parameter_registration_hook(lambda *args: None)
    assert handle.id in module._global_parameter_registration_hooks
    handle.remove()
