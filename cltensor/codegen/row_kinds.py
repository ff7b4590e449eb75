"""What the kernels over rows compute, as text: passes that accumulate, a pass that stores.

Knows no schedule: the same texts serve vectors along a row, vectors across rows and a GPU's lanes.
"""

from __future__ import annotations

import functools
from typing import NamedTuple

from ..dtypes import dtype


class Stage(NamedTuple):
    """One pass: (name, text added per element), where "top" is a maximum; then (name, text) assigned once per row."""

    sums: tuple[tuple[str, str], ...]
    after: tuple[tuple[str, str], ...] = ()

    def names(self) -> list[str]:
        """What the stage leaves for later ones."""
        return list(dict.fromkeys([name for name, _ in (*self.sums, *self.after)]))


class Kind(NamedTuple):
    """What one kernel of the family computes. Texts speak of values v0.., earlier names, `count`, {exp}, {log}, {S} and {M}.

    store: the element's result, or "" for none. define: (name, text) made for every element. rows: names stored once per
    row. keep: the last stage stores this text, and the last pass reads it back as `kept`. positions: `position` is the
    place along the row. integers: the values that are positions themselves. epsilon: takes the number `eps`. pick: the
    names of the largest value and the log-sum-exp relative to it, by which a target's loss is stored. {raised} is an
    exponential times a power of 2, which `{lower}` undoes: it need not be undone element by element.
    """

    name: str
    stages: tuple[Stage, ...]
    store: str
    define: tuple[tuple[str, str], ...] = ()
    rows: tuple[str, ...] = ()
    keep: str = ""
    positions: bool = False
    integers: tuple[int, ...] = ()
    epsilon: bool = False
    pick: tuple[str, ...] = ()

    @property
    def heavy(self) -> bool:
        """Whether the elements of a pass cost more than waiting for the last sum."""
        sums = [text for stage in self.stages for _, text in stage.sums]
        return bool(self.keep) or any("{raised}" in text for text in sums)

    def headers(self, compute: dtype) -> list[str]:
        """The device functions that the texts need beside an operand's."""
        logs = compute.reg == "float" and any(
            "{log}" in text for stage in self.stages for _, text in stage.after
        )
        return ["exp", "all_lanes", "log"] if logs else ["exp"]

    def recomputed(self) -> Kind:
        """The same without keeping anything between passes."""
        stages = tuple(
            [
                s._replace(sums=tuple([(n, t.replace("kept", self.keep)) for n, t in s.sums]))
                for s in self.stages
            ]
        )
        return self._replace(stages=stages, store=self.store.replace("kept", self.keep), keep="")

    def names(self) -> list[str]:
        """All names that live as long as a row."""
        return list(dict.fromkeys([n for stage in self.stages for n in stage.names()]))


# ------------------------------------------------------------------------------------------- exponentials

_TOP, _EXP = Stage((("top", "v0"),)), "{raised}(v0 - top)"
_OVER = (("total", "({S})(1) / total"),)
_LOG = (("total", "{log}(total * {lower})"),)
SOFTMAX = Kind("softmax", (_TOP, Stage((("total", "kept"),), _OVER)), "kept * total", keep=_EXP)
LOG_SOFTMAX = Kind("log_softmax", (_TOP, Stage((("total", _EXP),), _LOG)), "(v0 - top) - total")
SOFTMAX_BACK = Kind("softmax_back", (Stage((("total", "v0 * v1"),)),), "v0 * (v1 - total)")
LOG_SOFTMAX_BACK = Kind("log_softmax_back", (Stage((("total", "v1"),)),), "v1 - {exp}(v0) * total")
NLL = Kind("nll", (_TOP, Stage((("total", _EXP),), _LOG)), "", pick=("top", "total"))
# Of logits, their largest, the log-sum-exp relative to it, target or -1, and the row's factor.
NLL_BACK = Kind(
    "nll_back",
    (),
    "(v3 < ({M})(0) ? ({S})(0) : ({exp}((v0 - v1) - v2) - (position == v3 ? ({S})(1) : ({S})(0))) * v4)",
    positions=True,
    integers=(3,),
)


# ------------------------------------------------------------------------------------------- normalisation


@functools.cache
def norm(weight: bool, bias: bool) -> Kind:
    """(x - mean) * rstd [* weight] [+ bias]; values x, weight, bias; rows: mean, variance, reciprocal deviation."""
    deviation = (("var", "var / count"), ("rstd", "({S})(1) / sqrt(var + ({S})(eps))"))
    return Kind(
        "norm" + "_w" * weight + "_b" * bias,
        (
            Stage((("mean", "v0"),), (("mean", "mean / count"),)),
            Stage((("var", "(v0 - mean) * (v0 - mean)"),), deviation),
        ),
        "(v0 - mean) * rstd" + " * v1" * weight + f" + v{1 + weight}" * bias,
        rows=("mean", "var", "rstd"),
        epsilon=True,
    )


@functools.cache
def norm_back(weight: bool) -> Kind:
    """The gradient by x, from x, the gradient, mean, rstd [, weight]."""
    after = (("by_mean", "by_mean / count"), ("by_rstd", "by_rstd / count"))
    return Kind(
        "norm_back" + "_w" * weight,
        (Stage((("by_mean", "inner"), ("by_rstd", "inner * hat")), after),),
        "v3 * (inner - by_mean - hat * by_rstd)",
        define=(("hat", "(v0 - v2) * v3"), ("inner", "v1 * v4" if weight else "v1")),
    )


@functools.cache
def channel_back(weight: bool) -> Kind:
    """As `norm_back` where the weight is one for a row: its gradient and the bias's are the row's sums."""
    after = (("by_mean", "by_bias / count"), ("by_rstd", "by_weight / count"))
    return Kind(
        "channel_back" + "_w" * weight,
        (Stage((("by_bias", "v1"), ("by_weight", "v1 * hat")), after),),
        "v3 * (v1 - by_mean - hat * by_rstd)" + " * v4" * weight,
        define=(("hat", "(v0 - v2) * v3"),),
        rows=("by_weight", "by_bias"),
    )


@functools.cache
def rms(weight: bool) -> Kind:
    """x * rstd [* weight]; the row keeps the reciprocal of the root mean square."""
    return Kind(
        "rms" + "_w" * weight,
        (Stage((("rstd", "v0 * v0"),), (("rstd", "({S})(1) / sqrt(rstd / count + ({S})(eps))"),)),),
        "v0 * rstd" + " * v1" * weight,
        rows=("rstd",),
        epsilon=True,
    )


@functools.cache
def rms_back(weight: bool) -> Kind:
    """The gradient by x, from x, the gradient, rstd [, weight]."""
    return Kind(
        "rms_back" + "_w" * weight,
        (Stage((("by_rstd", "inner * hat"),), (("by_rstd", "by_rstd / count"),)),),
        "v2 * (inner - hat * by_rstd)",
        define=(("hat", "v0 * v2"), ("inner", "v1 * v3" if weight else "v1")),
    )
