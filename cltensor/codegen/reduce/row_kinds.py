"""What the kernels over rows compute, as text: passes over a row that accumulate, and a pass that stores.

Knows nothing of schedules: the same texts serve vectors along a row, vectors across rows and a GPU's lanes.
"""

from __future__ import annotations

import functools
import re
from typing import NamedTuple

from ...dtypes import dtype


class Stage(NamedTuple):
    """One pass over a row, as pairs (name, text)."""

    # The sums of the texts over the row's elements; "top" is their maximum instead.
    sums: tuple[tuple[str, str], ...]
    after: tuple[tuple[str, str], ...] = ()  # computed once per row, from the sums
    # If there are any, it is these texts that are summed over elements, separately for each run along the innermost
    # dim. The texts of `sums` are then added once per run: they use the run's sums, and values that are one number for
    # the run.
    runs: tuple[tuple[str, str], ...] = ()

    def names(self) -> list[str]:
        """Names that the stage defines for later ones."""
        return list(dict.fromkeys([name for name, _ in (*self.runs, *self.sums, *self.after)]))


class Kind(NamedTuple):
    """What one kernel of the family computes: passes over each row (`stages`), then one that stores results.

    Texts use values v0.., names defined before them, `count` (elements of a row), {exp}, {log}, {S} (the type that is
    computed in) and {M} (the integer type of comparisons). {raised} is an exponential times a power of 2, which a
    factor `{lower}` undoes once per sum instead of per element.
    """

    name: str  # part of the kernel's name
    stages: tuple[Stage, ...]
    store: str  # the element's result, or "" for none
    # (name, text), computed for every element in every pass.
    define: tuple[tuple[str, str], ...] = ()
    # Names stored once per row; what a stage sums by runs is stored for each run, besides.
    rows: tuple[str, ...] = ()
    keep: str = ""  # the last stage stores this text, and the last pass reads it back as `kept`
    positions: bool = False  # texts use `position`, the index along the row
    integers: tuple[int, ...] = ()  # numbers k of the values v<k> that are positions themselves
    epsilon: bool = False  # texts use the number `eps`
    # For losses whose targets are classes: `each` is stored for every row, `pick` for rows whose target counts (0 for
    # others); then the target itself, or -1. Texts of both use the values at the target, and in braces the row's names
    # and `count`.
    each: tuple[str, ...] = ()
    pick: tuple[str, ...] = ()
    # Texts added up over rows, for each position along them, while results are stored (only in a CPU's schedule along
    # rows).
    columns: tuple[str, ...] = ()
    # Not "": the first stage's result, a mean, may be replaced by a guess if this condition holds after the second
    # stage.
    near: str = ""
    # The first stage finds `top`; `total` of the second stage and what is kept are exponentials relative to it, so that
    # parts of a row may be computed relative to another maximum and rescaled.
    relative: bool = False
    # (a name of `define`, k, text): at the position along the row that value v<k> holds, an integer per row, the name
    # is this text instead.
    spot: tuple[str, int, str] | None = None

    @property
    def runs(self) -> list[str]:
        """Names that are stored for every run."""
        return [name for stage in self.stages for name, _ in stage.runs]

    @property
    def heavy(self) -> bool:
        """Whether an element of a pass costs more than the latency of an accumulator's addition."""
        sums = [text for stage in self.stages for _, text in stage.sums]
        return bool(self.keep) or any("{raised}" in text for text in sums)

    def headers(self, compute: dtype) -> list[str]:
        """Return the headers in cl_kernels/ that the texts need besides those of the operands."""
        logs = compute.reg == "float" and any(
            "{log}" in text for stage in self.stages for _, text in stage.after
        )
        return ["elementary/exp", *["elementary/log"] * logs]

    def recomputed(self) -> Kind:
        """Return the kind that recomputes in the last pass what this one keeps."""
        stages = tuple(
            [
                s._replace(sums=tuple([(n, t.replace("kept", self.keep)) for n, t in s.sums]))
                for s in self.stages
            ]
        )
        return self._replace(stages=stages, store=self.store.replace("kept", self.keep), keep="")

    def summed(self) -> list[int]:
        """Return the numbers of the values that passes before the last one read."""
        texts = [text for stage in self.stages for _, text in (*stage.sums, *stage.runs)]
        texts += [self.keep]
        for name, text in reversed(self.define):
            if any(re.search(rf"\b{name}\b", t) for t in texts):
                texts.append(text)
        return sorted({int(k) for text in texts for k in re.findall(r"\bv(\d+)\b", text)})

    def names(self) -> list[str]:
        """Return all names of the stages, which live as long as a row."""
        return list(dict.fromkeys([n for stage in self.stages for n in stage.names()]))


# ------------------------------------------------------------------------------------------- exponentials

_TOP, _EXP = Stage((("top", "v0"),)), "{raised}(v0 - top)"
_OVER = (("total", "({S})(1) / total"),)
_LOG = (("total", "{log}(total * {lower})"),)
_BOTH = (*[("over", text) for _, text in _OVER], *_LOG)
SOFTMAX = Kind(
    "softmax", (_TOP, Stage((("total", "kept"),), _OVER)), "kept * total", keep=_EXP, relative=True
)
LOG_SOFTMAX = Kind(
    "log_softmax", (_TOP, Stage((("total", _EXP),), _LOG)), "(v0 - top) - total", relative=True
)
# If the largest element is infinite, it is the result unless an element was NaN: `base` is then 0, so that no inf - inf
# makes a NaN.
LOGSUMEXP = Kind(
    "logsumexp_rows",
    (
        Stage((("top", "v0"),), (("base", "(top - top == ({S})(0) ? top : ({S})(0))"),)),
        Stage(
            (("total", "{raised}(({S})(0) < v0 - base ? ({S})(0) : v0 - base)"),),
            (
                ("base", "(base == top ? {log}(total * {lower}) + base : top)"),
                ("total", "(total == total ? base : total)"),
            ),
        ),
    ),
    "",
    rows=("total",),
)
SOFTMAX_BACK = Kind("softmax_back", (Stage((("total", "v0 * v1"),)),), "v0 * (v1 - total)")
LOG_SOFTMAX_BACK = Kind("log_softmax_back", (Stage((("total", "v1"),)),), "v1 - {exp}(v0) * total")


# The gradient of a row's extreme, shared equally by the elements that equal it; values: the elements, the extreme, its
# gradient.
_HIT = "(v0 == v1 ? ({S})(1) : ({S})(0))"
SHARED_BACK = Kind(
    "shared_back",
    (Stage((("share", _HIT),), (("share", "({S})(1) / share"),)),),
    f"{_HIT} * v2 * share",
)


# ------------------------------------------------------------------------------------------- classes


@functools.cache
def nll(weight: bool, smooth: bool) -> Kind:
    """Cross entropy; values: logits [, weights of classes].

    Stored per row: the largest logit, the factor from raised exponentials to probabilities, the loss [, the target's
    weight], the target. smooth: a share `eps` of the target's probability is spread over all classes; with `weight`, the
    row also stores, before the target, the factor of the probabilities in its gradient.
    """
    loss = "({total} - (v0 - {top}))" + " * v1" * weight
    sums, pick = [("total", _EXP)], ["v1"] * weight
    if smooth:
        sums.append(("flat", "(v0 - top)" + " * v1" * weight))
        mass = "{mass}" if weight else "{count}"
        loss = f"(1 - eps) * {loss} + eps / {{count}} * ({mass} * {{total}} - {{flat}})"
    if smooth and weight:
        sums.append(("mass", "v1"))
        pick.append("((1 - eps) * v1 + eps / {count} * {mass})")
    name = "nll" + "_w" * weight + "_smooth" * smooth
    stages = _TOP, Stage(tuple(sums), _BOTH)
    return Kind(
        name,
        stages,
        "",
        epsilon=smooth,
        each=("{top}", "{over}"),
        pick=(loss, *pick),
        relative=not smooth,
    )


@functools.cache
def nll_back(weight: bool, smooth: bool) -> Kind:
    """The gradient of cross entropy by the logits.

    Values: logits, the row's largest, the factor of raised exponentials, target or -1, and the row's factor. With both
    options also: the factor of the probabilities, the target's weight, and the weights of classes.
    """
    slope, hit = "{raised}(v0 - v1) * v2", "({S})(1 - eps)" if smooth else "({S})(1)"
    if smooth and weight:
        slope, hit = slope + " * v5", hit + " * v6"
    if smooth:
        slope += " - ({S})(eps) / count" + " * v7" * weight
    return Kind(
        "nll_back" + "_w" * weight + "_smooth" * smooth,
        (),
        "(v3 < ({M})(0) ? ({S})(0) : slope * v4)",
        define=(("slope", slope),),
        spot=("slope", 3, f"slope - {hit}"),
        integers=(3,),
        epsilon=smooth,
    )


@functools.cache
def picked(weight: bool) -> Kind:
    """Minus the value at the target [times the class's weight]; stored per row: this [, the weight], the target."""
    return Kind("picked" + "_w" * weight, (), "", pick=("-v0 * v1", "v1") if weight else ("-v0",))


# The gradient of `picked`: minus the row's factor at the target, 0 elsewhere; values: one for the shape, the target or
# -1, the row's factor.
PICKED_BACK = Kind(
    "picked_back", (), "(position == v1 ? -v2 : ({S})(0))", positions=True, integers=(1,)
)


# ------------------------------------------------------------------------------------------- normalisation

NEAR = 4  # a guessed mean's error, squared, is at most this many variances: the variance then loses two bits


@functools.cache
def norm(weight: bool, bias: bool) -> Kind:
    """(x - mean) * rstd [* weight] [+ bias]; values: x, weight, bias; stored per row: mean, variance, rstd.

    The pass for the variance also sums the error of the mean and corrects for it: for numbers that are large compared to
    their deviation, rounding of a plain sum would show, and equal numbers would not give 0. This correction also allows
    a guess of the mean, if it is NEAR enough, to replace the first pass over the row.
    """
    deviation = (
        ("off", "off / count"),
        ("mean", "mean + off"),
        ("var", "var / count - off * off"),
        ("var", "(var < ({S})(0) ? ({S})(0) : var)"),
        ("rstd", "({S})(1) / sqrt(var + ({S})(eps))"),
    )
    return Kind(
        "norm" + "_w" * weight + "_b" * bias,
        (
            Stage((("mean", "v0"),), (("mean", "mean / count"),)),
            Stage((("off", "v0 - mean"), ("var", "(v0 - mean) * (v0 - mean)")), deviation),
        ),
        "(v0 - mean) * rstd" + " * v1" * weight + f" + v{1 + weight}" * bias,
        rows=("mean", "var", "rstd"),
        epsilon=True,
        near=f"off * off <= var * ({{S}})({NEAR})",
    )


@functools.cache
def group_moments(weight: bool) -> Kind:
    """Reciprocal deviation of a group of channels [* weight]; values: the channels' means and variances [, weight].

    Stored per row: mean, variance, reciprocal deviation.
    """
    deviation = ("var", "var / count"), ("rstd", "({S})(1) / sqrt(var + ({S})(eps))")
    return Kind(
        "group_moments" + "_w" * weight,
        (
            Stage((("mean", "v0"),), (("mean", "mean / count"),)),
            Stage((("var", "v1 + (v0 - mean) * (v0 - mean)"),), deviation),
        ),
        "rstd" + " * v2" * weight,
        rows=("mean", "var", "rstd"),
        epsilon=True,
    )


@functools.cache
def norm_back(weight: bool, columns: bool = False) -> Kind:
    """The gradient by x; values: x, the gradient, mean, rstd [, weight]; columns: parts of those by weight and bias."""
    after = (("by_mean", "by_mean / count"), ("by_rstd", "by_rstd / count"))
    return Kind(
        "norm_back" + "_w" * weight + "_columns" * columns,
        (Stage((("by_mean", "inner"), ("by_rstd", "inner * hat")), after),),
        "v3 * (inner - by_mean - hat * by_rstd)",
        define=(("hat", "(v0 - v2) * v3"), ("inner", "v1 * v4" if weight else "v1")),
        columns=("v1 * hat", "v1") if columns else (),
    )


# As `norm_back` where the weight is one number per run: also stores the gradients by each run's weight and bias.
GROUP_BACK = Kind(
    "group_back",
    (
        Stage(
            (("by_mean", "by_bias * v4"), ("by_rstd", "by_weight * v4")),
            (("by_mean", "by_mean / count"), ("by_rstd", "by_rstd / count")),
            (("by_weight", "v1 * hat"), ("by_bias", "v1")),
        ),
    ),
    "v3 * (v1 * v4 - by_mean - hat * by_rstd)",
    define=(("hat", "(v0 - v2) * v3"),),
)


@functools.cache
def channel_back(weight: bool) -> Kind:
    """As `norm_back` where the weight is one number per row: the gradients by weight and bias are the row's sums."""
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
    """x * rstd [* weight]; stored per row: rstd, the reciprocal of the root mean square."""
    return Kind(
        "rms" + "_w" * weight,
        (Stage((("rstd", "v0 * v0"),), (("rstd", "({S})(1) / sqrt(rstd / count + ({S})(eps))"),)),),
        "v0 * rstd" + " * v1" * weight,
        rows=("rstd",),
        epsilon=True,
    )


@functools.cache
def rms_back(weight: bool, columns: bool = False) -> Kind:
    """The gradient by x; values: x, the gradient, rstd [, weight]; columns: parts of that by the weight."""
    return Kind(
        "rms_back" + "_w" * weight + "_columns" * columns,
        (Stage((("by_rstd", "inner * hat"),), (("by_rstd", "by_rstd / count"),)),),
        "v2 * (inner - hat * by_rstd)",
        define=(("hat", "v0 * v2"), ("inner", "v1 * v3" if weight else "v1")),
        columns=("v1 * hat",) if columns else (),
    )
