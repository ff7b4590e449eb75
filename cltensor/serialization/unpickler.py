"""Reading pickles: a restricted unpickler that knows only harmless opcodes and names, and a full one for trusted files.

The restricted unpickler builds containers, numbers, strings and what `rebuild.ALLOWED` (or the user's own list) names.
It never calls anything else, so a hostile file can at worst fail to load.
"""

from __future__ import annotations

import importlib
import pickle
import struct
from _compat_pickle import IMPORT_MAPPING, NAME_MAPPING
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, BinaryIO

from ..tensor import Tensor
from .rebuild import CALLABLE, Ignored, allowed, set_state

_BLOCKED = {"sys", "os", "posix", "nt"}
_PREAMBLE = (
    "Weights only load failed. This file can still be loaded, to do so you have two options, \033[1mdo those steps only if you trust the source of the checkpoint\033[0m. \n"
    "\t(1) In PyTorch 2.6, we changed the default value of the `weights_only` argument in `torch.load` from `False` to `True`. Re-running `torch.load` with `weights_only` set to `False` will likely succeed, but it can result in arbitrary code execution. "
    "Do it only if you got the file from a trusted source.\n"
    "\t(2) Alternatively, to load with `weights_only=True` please check the recommended steps in the following error message.\n"
    "\tWeightsUnpickler error: "
)
_ENDING = (
    "\n\nCheck the documentation of torch.load to learn more about types accepted by default with weights_only "
    "https://pytorch.org/docs/stable/generated/torch.load.html."
)

# ------------------------------------------------------------------------------------------- the user's list

_safe: dict[str, Any] = {}


def _full_name(item: Any) -> str:
    """Return the name of an object in a file: this library's objects have torch's names there."""
    name = f"{item.__module__}.{item.__qualname__}"
    return "torch" + name[8:] if name.startswith("cltensor.") else name


def add_safe_globals(safe_globals: list[Any]) -> None:
    """Let `load(weights_only=True)` build these classes and call these functions.

    In a pair (object, "full.name") the name is the file's.
    """
    for item in safe_globals:
        if isinstance(item, tuple):
            _safe[item[1]] = item[0]
        else:
            _safe[_full_name(item)] = item


def get_safe_globals() -> list[Any]:
    """Return the objects that `add_safe_globals` added."""
    return list(_safe.values())


def clear_safe_globals() -> None:
    """Remove all objects that `add_safe_globals` added."""
    _safe.clear()


def user_allows(name: str) -> bool:
    """Return whether `add_safe_globals` added an object of this name."""
    return name in _safe


@contextmanager
def safe_globals(safe_globals: list[Any]) -> Iterator[None]:
    """Allow these objects as `add_safe_globals` does, within a `with` block."""
    before = dict(_safe)
    add_safe_globals(safe_globals)
    try:
        yield
    finally:
        _safe.clear()
        _safe.update(before)


# ------------------------------------------------------------------------------------------- names


def modern(module: str, name: str) -> tuple[str, str]:
    """Map the Python 2 names in pickles of protocol 2 to Python 3's.

    Python's unpickler does so only inside its own `find_class`.
    """
    found: tuple[str, str] = NAME_MAPPING.get(
        (module, name), (IMPORT_MAPPING.get(module, module), name)
    )
    return found


def find_class(module: str, name: str) -> Any:
    """Return the object that a torch name in a trusted file resolves to; UnpicklingError if there is none."""
    found = allowed(f"{module}.{name}")
    if found is not None:
        return found
    own = "cltensor" + module[5:]
    candidates = [own, *(own.rsplit(".", k)[0] for k in range(1, own.count(".") + 1))]
    for candidate in candidates:
        try:
            place: Any = importlib.import_module(candidate)
            for part in name.split("."):
                place = getattr(place, part)
            return place
        except (ImportError, AttributeError):
            continue
    raise pickle.UnpicklingError(
        f"the checkpoint needs {module}.{name}, which this library does not have"
    )


def load_all(
    file: BinaryIO, load_storage: Callable[[Any], Any], pickle_module: Any, **kwargs: Any
) -> Any:
    """Read a pickle with the Unpickler of `pickle_module`, which runs any code the file names.

    For trusted files only.
    """

    class Trusting((pickle_module or pickle).Unpickler):  # type: ignore[misc]
        def find_class(self, module: str, name: str) -> Any:
            module, name = modern(module, name)
            if module != "torch" and not module.startswith("torch."):
                return super().find_class(module, name)
            return find_class(module, name)

        def persistent_load(self, pid: Any) -> Any:
            return load_storage(pid)

    return Trusting(file, **kwargs).load()


# ------------------------------------------------------------------------------------------- the small machine


class _Mark:
    pass


_MARK = _Mark()


def refuse(text: str) -> pickle.UnpicklingError:
    """Return the error for a file that `weights_only=True` does not load, with torch's advice."""
    return pickle.UnpicklingError(_PREAMBLE + text + _ENDING)


class WeightsUnpickler:
    """The restricted unpickler: executes the harmless opcodes of a pickle and refuses all others."""

    def __init__(
        self, data: bytes, load_storage: Callable[[Any], Any], encoding: str = "utf-8"
    ) -> None:
        self.data, self.at, self.encoding, self._load_storage = data, 0, encoding, load_storage
        self.stack: list[Any] = []
        self.memo: dict[int, Any] = {}
        self.user: set[int] = set()

    def load(self) -> Any:
        """Return the object of the pickle at the present position; UnpicklingError for anything not allowed or broken."""
        self.stack, self.memo = [], {}
        try:
            while True:
                code = self._take(1)[0]
                if code == 0x2E:  # STOP
                    return self.stack.pop()
                step = _STEPS.get(code)
                if step is None:
                    raise refuse(f"Unsupported operand {code}")
                step(self)
        except (
            IndexError,
            KeyError,
            struct.error,
            TypeError,
            ValueError,
            UnicodeDecodeError,
            AttributeError,
            OverflowError,
            RecursionError,
        ) as error:
            if isinstance(error, pickle.UnpicklingError):
                raise
            raise refuse(f"the pickle is damaged: {type(error).__name__}: {error}") from error

    # ---- bytes
    def _take(self, n: int) -> bytes:
        end = self.at + n
        if n < 0 or end > len(self.data):
            raise EOFError("Ran out of input")
        part = self.data[self.at : end]
        self.at = end
        return part

    def _unsigned(self, n: int) -> int:
        return int.from_bytes(self._take(n), "little")

    def _line(self) -> str:
        end = self.data.index(b"\n", self.at)
        part = self.data[self.at : end]
        self.at = end + 1
        return part.decode("utf-8")

    # ---- the stack
    def _marked(self) -> list[Any]:
        items: list[Any] = []
        while True:
            top = self.stack.pop()
            if top is _MARK:
                break
            items.append(top)
        items.reverse()
        return items

    def push(self, value: Any) -> None:
        self.stack.append(value)

    # ---- names
    def named(self, module: str, name: str) -> Any:
        module, name = modern(module, name)
        full = f"{module}.{name}"
        found = allowed(full)
        if found is not None:
            return found
        if full in _safe:
            self.user.add(id(_safe[full]))
            return _safe[full]
        if module.partition(".")[0] in _BLOCKED:
            raise pickle.UnpicklingError(
                f"Weights only load failed. Do not load this file: it names what no checkpoint needs.\n\nTrying to load unsupported GLOBAL {full} whose module {module} is blocked."
            )
        full = full.removeprefix("builtins.")
        raise refuse(
            f"Unsupported global: GLOBAL {full} was not an allowed global by default. Please use `torch.serialization.add_safe_globals([{full}])` or the "
            f"`torch.serialization.safe_globals([{full}])` context manager to allowlist this global if you trust this class/function."
        )

    def call(self, fn: Any, args: Any) -> Any:
        if not isinstance(args, tuple):
            raise refuse("Trying to call reduce with arguments that are no tuple")
        if id(fn) not in CALLABLE and id(fn) not in self.user:
            raise refuse(f"Trying to call reduce for unrecognized function {fn}")
        return fn(*args)

    def new(self, cls: Any, args: Any) -> Any:
        if id(cls) in self.user and isinstance(cls, type):
            return cls.__new__(cls, *args)
        if cls in (OrderedDict, Counter):
            return cls(*args)
        if cls is Ignored:
            return Ignored()
        raise refuse(f"Trying to create new object for unrecognized class {cls}")

    def build(self, target: Any, state: Any) -> None:
        if type(target) in (OrderedDict, Counter):
            if not isinstance(state, dict):
                raise refuse("Can only build a dict's attributes of a dict")
            for key, value in state.items():
                if not isinstance(key, str) or key.startswith("__"):
                    raise refuse(f"Attribute {key!r} of a dict is not allowed")
                target.__dict__[key] = value
        elif isinstance(target, Tensor):
            set_state(target, state)
        elif isinstance(target, Ignored):
            pass
        elif any(type(target) is kind for kind in _safe.values()):
            # Any allowed type, also one the pickle does not name: numpy's dtypes are instances of types of their own,
            # but are made by calling `numpy.dtype`.
            if hasattr(target, "__setstate__"):
                target.__setstate__(state)
            else:
                attributes, slots = state if isinstance(state, tuple) else (state, None)
                target.__dict__.update(attributes or {})
                for name, value in (slots or {}).items():
                    setattr(target, name, value)
        else:
            raise refuse(
                f"Can only build Tensor, Parameter, OrderedDict or types allowlisted via `add_safe_globals`, but got {type(target)}"
            )


def _step(
    *codes: int,
) -> Callable[[Callable[[WeightsUnpickler], None]], Callable[[WeightsUnpickler], None]]:
    def register(fn: Callable[[WeightsUnpickler], None]) -> Callable[[WeightsUnpickler], None]:
        for code in codes:
            _STEPS[code] = fn
        return fn

    return register


_STEPS: dict[int, Callable[[WeightsUnpickler], None]] = {}


def _constant(code: int, make: Callable[[], Any]) -> None:
    _STEPS[code] = lambda m: m.push(make())


_CONSTANTS: dict[int, Callable[[], Any]] = {
    ord("N"): lambda: None,
    0x88: lambda: True,
    0x89: lambda: False,
    ord("}"): dict,
    ord("]"): list,
    ord(")"): tuple,
    0x8F: set,
    ord("("): lambda: _MARK,
}
for _code, _make in _CONSTANTS.items():
    _constant(_code, _make)


def _number(code: int, form: str) -> None:
    size = struct.calcsize(form)
    _STEPS[code] = lambda m: m.push(struct.unpack(form, m._take(size))[0])


for _code, _form in {ord("J"): "<i", ord("K"): "<B", ord("M"): "<H", ord("G"): ">d"}.items():
    _number(_code, _form)


@_step(0x80)
def _proto(m: WeightsUnpickler) -> None:
    version = m._take(1)[0]
    if version > 5:
        raise refuse(f"Unsupported pickle protocol: {version}")


@_step(0x95)
def _frame(m: WeightsUnpickler) -> None:
    m._take(8)


@_step(0x8A)
def _long1(m: WeightsUnpickler) -> None:
    m.push(pickle.decode_long(m._take(m._unsigned(1))))


def _text(code: int, width: int) -> None:
    _STEPS[code] = lambda m: m.push(m._take(m._unsigned(width)).decode("utf-8", "surrogatepass"))


for _code, _width in {ord("X"): 4, 0x8C: 1, 0x8D: 8}.items():
    _text(_code, _width)


def _old_text(code: int, width: int) -> None:
    def step(m: WeightsUnpickler) -> None:
        raw = m._take(m._unsigned(width))
        m.push(raw if m.encoding == "bytes" else raw.decode(m.encoding))

    _STEPS[code] = step


_old_text(ord("U"), 1)
_old_text(ord("T"), 4)


def _raw_bytes(code: int, width: int) -> None:
    _STEPS[code] = lambda m: m.push(m._take(m._unsigned(width)))


for _code, _width in {ord("C"): 1, ord("B"): 4, 0x8E: 8}.items():
    _raw_bytes(_code, _width)


@_step(ord("q"))
def _put1(m: WeightsUnpickler) -> None:
    m.memo[m._take(1)[0]] = m.stack[-1]


@_step(ord("r"))
def _put4(m: WeightsUnpickler) -> None:
    m.memo[m._unsigned(4)] = m.stack[-1]


@_step(0x94)
def _memoize(m: WeightsUnpickler) -> None:
    m.memo[len(m.memo)] = m.stack[-1]


@_step(ord("h"))
def _get1(m: WeightsUnpickler) -> None:
    m.push(m.memo[m._take(1)[0]])


@_step(ord("j"))
def _get4(m: WeightsUnpickler) -> None:
    m.push(m.memo[m._unsigned(4)])


@_step(ord("c"))
def _global(m: WeightsUnpickler) -> None:
    m.push(m.named(m._line(), m._line()))


@_step(0x93)
def _stack_global(m: WeightsUnpickler) -> None:
    name, module = m.stack.pop(), m.stack.pop()
    if not isinstance(name, str) or not isinstance(module, str):
        raise refuse("a global's name is no text")
    m.push(m.named(module, name))


@_step(ord("t"))
def _tuple(m: WeightsUnpickler) -> None:
    m.push(tuple(m._marked()))


def _short_tuple(code: int, n: int) -> None:
    def step(m: WeightsUnpickler) -> None:
        items = tuple(m.stack[-n:])
        if len(items) < n:
            raise IndexError("too few values for a tuple")
        del m.stack[-n:]
        m.push(items)

    _STEPS[code] = step


for _n in (1, 2, 3):
    _short_tuple(0x84 + _n, _n)


def _exactly(value: Any, kinds: tuple[type, ...], what: str) -> Any:
    if type(value) not in kinds:
        raise refuse(f"Can only {what}, but got {type(value)}")
    return value


_LISTS, _DICTS = (list,), (dict, OrderedDict, Counter)


@_step(ord("a"))
def _append(m: WeightsUnpickler) -> None:
    item = m.stack.pop()
    _exactly(m.stack[-1], _LISTS, "append to lists").append(item)


@_step(ord("e"))
def _appends(m: WeightsUnpickler) -> None:
    items = m._marked()
    _exactly(m.stack[-1], _LISTS, "extend lists").extend(items)


@_step(0x90)
def _additems(m: WeightsUnpickler) -> None:
    items = m._marked()
    _exactly(m.stack[-1], (set,), "add to sets").update(items)


@_step(0x91)
def _frozenset(m: WeightsUnpickler) -> None:
    m.push(frozenset(m._marked()))


def _dict_target(m: WeightsUnpickler) -> Any:
    target = m.stack[-1]
    if id(type(target)) in m.user and isinstance(target, dict):
        return target
    return _exactly(target, _DICTS, "set items of dicts")


@_step(ord("s"))
def _setitem(m: WeightsUnpickler) -> None:
    value, key = m.stack.pop(), m.stack.pop()
    _dict_target(m)[key] = value


@_step(ord("u"))
def _setitems(m: WeightsUnpickler) -> None:
    items = m._marked()
    target = _dict_target(m)
    for i in range(0, len(items), 2):
        target[items[i]] = items[i + 1]


@_step(ord("R"))
def _reduce(m: WeightsUnpickler) -> None:
    args, fn = m.stack.pop(), m.stack.pop()
    m.push(m.call(fn, args))


@_step(0x81)
def _newobj(m: WeightsUnpickler) -> None:
    args, cls = m.stack.pop(), m.stack.pop()
    m.push(m.new(cls, args))


@_step(ord("b"))
def _build(m: WeightsUnpickler) -> None:
    state = m.stack.pop()
    m.build(m.stack[-1], state)


@_step(ord("Q"))
def _persistent(m: WeightsUnpickler) -> None:
    pid = m.stack.pop()
    if not isinstance(pid, tuple):
        raise refuse("a storage is named by something that is no tuple")
    m.push(m._load_storage(pid))


@_step(ord("0"))
def _pop(m: WeightsUnpickler) -> None:
    m.stack.pop()


__all__ = [
    "WeightsUnpickler",
    "add_safe_globals",
    "clear_safe_globals",
    "get_safe_globals",
    "load_all",
    "safe_globals",
]
