"""What the kernels over rows compute, as text: passes that accumulate, a pass that stores.

Knows no schedule: the same texts serve vectors along a row, vectors across rows and a GPU's lanes.
"""

from __future__ import annotations

import functools
import re
from typing import NamedTuple

from ...dtypes import dtype


class Stage(NamedTuple):
    """One pass: (name, text added per element), where "top" is a maximum; then (name, text) assigned once per row.

    With `runs`, these are what is added per element, for each run along the innermost dim by itself, and `sums` are added
    once a run, of what it came to and of values that are one number for it.
    """

    sums: tuple[tuple[str, str], ...]
    after: tuple[tuple[str, str], ...] = ()
    runs: tuple[tuple[str, str], ...] = ()

    def names(self) -> list[str]:
        """What the stage leaves for later ones."""
        return list(dict.fromkeys([name for name, _ in (*self.runs, *self.sums, *self.after)]))


class Kind(NamedTuple):
    """What one kernel of the family computes. Texts speak of values v0.., earlier names, `count`, {exp}, {log}, {S} and {M}.

    store: the element's result, or "" for none. define: (name, text) made for every element. rows: names stored once per
    row. spot: (a name of these, a value k, text): the name is the text where the place along the row is v<k>, an integer and one number for
    the row. keep: the last stage stores this text, and the last pass reads it back as `kept`. positions: `position` is the
    place along the row. integers: the values that are positions themselves. epsilon: takes the number `eps`. {raised} is an
    exponential times a power of 2, which `{lower}` undoes: it need not be undone element by element.

    What is made where rows meet others: `columns` are texts added up over rows, for each place along them, while results are
    stored (a CPU's schedule along rows only). What a stage sums by runs is stored for each.

    relative: the first stage finds `top`, and `total` of the second and what is kept are exponentials relative to it: so parts of a row may
    be relative to others.

    near: what the first stage finds, a mean, may be guessed if this holds after the second one.

    Of classes that are targets: `each` is stored for every row, and `pick` for those whose target counts, else 0, and the
    target itself; texts of both speak of values at the target, and of the row's names and the count in braces.
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
    each: tuple[str, ...] = ()
    pick: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    near: str = ""
    relative: bool = False
    spot: tuple[str, int, str] | None = None

    @property
    def runs(self) -> list[str]:
        """What is stored for every run."""
        return [name for stage in self.stages for name, _ in stage.runs]

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
        return ["elementary/exp", *["elementary/log"] * logs]

    def recomputed(self) -> Kind:
        """The same without keeping anything between passes."""
        stages = tuple(
            [
                s._replace(sums=tuple([(n, t.replace("kept", self.keep)) for n, t in s.sums]))
                for s in self.stages
            ]
        )
        return self._replace(stages=stages, store=self.store.replace("kept", self.keep), keep="")

    def summed(self) -> list[int]:
        """The values that passes before the last one read."""
        texts = [text for stage in self.stages for _, text in (*stage.sums, *stage.runs)]
        texts += [self.keep]
        for name, text in reversed(self.define):
            if any(re.search(rf"\b{name}\b", t) for t in texts):
                texts.append(text)
        return sorted({int(k) for text in texts for k in re.findall(r"\bv(\d+)\b", text)})

    def names(self) -> list[str]:
        """All names that live as long as a row."""
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
# Of a largest element that is infinite only whether something was NaN is asked; what would be NaN by itself, inf - inf, is left out.
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


# The gradient of a row's extreme, shared by the elements that equal it: of the elements, the extreme and its gradient.
_HIT = "(v0 == v1 ? ({S})(1) : ({S})(0))"
SHARED_BACK = Kind(
    "shared_back",
    (Stage((("share", _HIT),), (("share", "({S})(1) / share"),)),),
    f"{_HIT} * v2 * share",
)


# ------------------------------------------------------------------------------------------- classes


@functools.cache
def nll(weight: bool, smooth: bool) -> Kind:
    """Cross entropy of logits [and weights of classes]; rows: largest logit, what makes raised exponentials probabilities, loss [, target's
    weight], target.

    smooth: of the target's probability the share `eps` is spread over all classes, and before the target the row keeps the factor of the
    probabilities in its gradient.
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
    """The gradient by the logits, from them, the row's largest and the factor of raised exponentials, target or -1, and the row's factor.

    With both also from the factor of probabilities, the target's weight, and the weights of classes.
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
    """Minus the value at the target [times the class's weight]; rows: that [, the weight], target."""
    return Kind("picked" + "_w" * weight, (), "", pick=("-v0 * v1", "v1") if weight else ("-v0",))


# As many elements as the first value has, 0 but at the targets; of target or -1 and the row's factor.
PICKED_BACK = Kind(
    "picked_back", (), "(position == v1 ? -v2 : ({S})(0))", positions=True, integers=(1,)
)


# ------------------------------------------------------------------------------------------- normalisation

NEAR = 4  # squared deviations by which a mean may be wrong: the variance then loses two bits


@functools.cache
def norm(weight: bool, bias: bool) -> Kind:
    """(x - mean) * rstd [* weight] [+ bias]; values x, weight, bias; rows: mean, variance, reciprocal deviation.

    The pass for the variance also sums what the mean is wrong by: of numbers that are large beside their deviation a plain
    sum's rounding would show, and equal ones would not give 0. So it may be wrong by more: a guess that is NEAR takes the place
    of a pass over the row.
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
    """Reciprocal deviation of a group [* weight], from its channels' means and variances [, weight]; rows: mean, variance, reciprocal deviation."""
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
    """The gradient by x, from x, the gradient, mean, rstd [, weight]; columns: those of weight and bias of each element, in parts."""
    after = (("by_mean", "by_mean / count"), ("by_rstd", "by_rstd / count"))
    return Kind(
        "norm_back" + "_w" * weight + "_columns" * columns,
        (Stage((("by_mean", "inner"), ("by_rstd", "inner * hat")), after),),
        "v3 * (inner - by_mean - hat * by_rstd)",
        define=(("hat", "(v0 - v2) * v3"), ("inner", "v1 * v4" if weight else "v1")),
        columns=("v1 * hat", "v1") if columns else (),
    )


# As `norm_back` where a weight is one number for a run: of each run the gradients by its weight and bias.
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
def rms_back(weight: bool, columns: bool = False) -> Kind:
    """The gradient by x, from x, the gradient, rstd [, weight]; columns: that of the weight of each element, in parts."""
    return Kind(
        "rms_back" + "_w" * weight + "_columns" * columns,
        (Stage((("by_rstd", "inner * hat"),), (("by_rstd", "by_rstd / count"),)),),
        "v2 * (inner - hat * by_rstd)",
        define=(("hat", "v0 * v2"), ("inner", "v1 * v3" if weight else "v1")),
        columns=("v1 * hat",) if columns else (),
    )
