"""Functions that pass over rows several times: softmax, norms, losses; forward, and forward with backward."""

from __future__ import annotations

from typing import Any

from benchmarks.case import EVERY, Case, Index, Kit, Make, Run, backward, on

ROWS, WIDTH = 4096, 1024
SHAPE, ODD = (ROWS, WIDTH), (ROWS - 1, WIDTH - 1)
BYTES = 4.0 * ROWS * WIDTH
ODD_BYTES = 4.0 * (ROWS - 1) * (WIDTH - 1)


def softmax(torch: Any, x: Any) -> Any:
    return torch.softmax(x, 1)


def log_softmax(torch: Any, x: Any) -> Any:
    return torch.log_softmax(x, 1)


def layer_norm(torch: Any, x: Any) -> Any:
    return torch.nn.functional.layer_norm(x, (x.shape[1],))


def affine(torch: Any, x: Any, w: Any, b: Any) -> Any:
    return torch.nn.functional.layer_norm(x, (x.shape[1],), w, b).relu()


def rms_norm(torch: Any, x: Any, w: Any) -> Any:
    return torch.nn.functional.rms_norm(x, (x.shape[1],), w)


def cross_entropy(torch: Any, x: Any, y: Any) -> Any:
    return torch.nn.functional.cross_entropy(x, y)


def smoothed(torch: Any, x: Any, y: Any) -> Any:
    return torch.nn.functional.cross_entropy(x, y, label_smoothing=0.1)


def _labelled(fn: Any, shape: tuple[int, int] = SHAPE, grad: bool = False) -> Make:
    return on(fn, shape, Index(shape[1], shape[:1]), grad=grad)


def _pairs(name: str) -> Make:
    """Return the `make` of a loss of 4 Mi numbers and as many targets in [0, 1), forward and backward."""

    def make(kit: Kit) -> Run:
        x, y = kit.rand(ROWS * WIDTH, grad=True), kit.rand(ROWS * WIDTH, seed=1).abs()
        return backward(kit, lambda t, x: getattr(t.nn.functional, name)(x, y, reduction="sum"), x)

    return make


# Cases with backward square a softmax and take the relu of a norm, because the sum of a softmax and the sum of a norm's
# squares are constant: their gradients are zero. Squares of softmax make five passes over memory: the input is read,
# the result is written, read by the sum and by the gradient, and the input's gradient is written. relu(norm) makes six:
# the norm's gradient reads the input again, too.
CASES = [
    Case("rows", "softmax, 4096 x 1024", on(softmax, SHAPE), 2 * BYTES, bar=1.0, quick=True, also=EVERY),
    Case("rows", "softmax, 4095 x 1023", on(softmax, ODD), 2 * ODD_BYTES),
    Case("rows", "softmax, 65536 x 64", on(softmax, (65536, 64)), 2 * BYTES),
    Case("rows", "softmax, 16 x 256 Ki", on(softmax, (16, 1 << 18)), 2 * BYTES),
    Case("rows", "softmax, dim 0, 4096 x 1024", on(lambda t, x: t.softmax(x, 0), SHAPE), 2 * BYTES),
    Case("rows", "softmax, of a transposed matrix, 4096 x 1024", on(lambda t, x: t.softmax(x.T, 1), (WIDTH, ROWS)), 2 * BYTES),
    Case("rows", "softmax, bfloat16, 4096 x 1024", on(softmax, SHAPE, dtype="bfloat16"), BYTES, tolerance=2e-2),
    Case("rows", "softmax, float16, 4096 x 1024", on(softmax, SHAPE, dtype="float16"), BYTES, tolerance=1e-2),
    Case("rows", "softmax, float64, 4096 x 512", on(softmax, (4096, 512), dtype="float64"), 2 * BYTES),
    Case("rows", "softmax, forward and backward", on(lambda t, x: softmax(t, x).square(), SHAPE, grad=True), 5 * BYTES, bar=1.5, quick=True),
    Case("rows", "log_softmax, 4096 x 1024", on(log_softmax, SHAPE), 2 * BYTES, bar=1.0),
    Case("rows", "log_softmax, forward and backward", on(lambda t, x: log_softmax(t, x).square(), SHAPE, grad=True), 5 * BYTES, bar=1.5),
    Case("rows", "layer_norm, 4096 x 1024", on(layer_norm, SHAPE), 2 * BYTES, bar=1.0, also=EVERY),
    Case("rows", "layer_norm, 4095 x 1023", on(layer_norm, ODD), 2 * ODD_BYTES),
    Case("rows", "layer_norm, bfloat16, 4096 x 1024", on(layer_norm, SHAPE, dtype="bfloat16"), BYTES, tolerance=2e-2),
    Case("rows", "layer_norm, forward and backward", on(lambda t, x: layer_norm(t, x).relu(), SHAPE, grad=True), 6 * BYTES, bar=1.5, quick=True),
    Case("rows", "layer_norm, weights, forward and backward", on(affine, SHAPE, (WIDTH,), (WIDTH,), grad=True), 6 * BYTES),
    Case("rows", "rms_norm, 4096 x 1024", on(rms_norm, SHAPE, (WIDTH,)), 2 * BYTES),
    Case("rows", "rms_norm, forward and backward", on(lambda t, x, w: rms_norm(t, x, w).relu(), SHAPE, (WIDTH,), grad=True), 6 * BYTES),
    Case("loss", "cross_entropy, 4096 x 1024", _labelled(cross_entropy), BYTES, bar=1.0, bound="read"),
    Case("loss", "cross_entropy, 4095 x 1023", _labelled(cross_entropy, ODD), ODD_BYTES, bound="read"),
    Case("loss", "cross_entropy, forward and backward", _labelled(cross_entropy, grad=True), 3 * BYTES, bar=1.5, quick=True),
    Case("loss", "cross_entropy, smoothed, forward and backward", _labelled(smoothed, grad=True), 3 * BYTES),
    *(Case("loss", f"{name}, both ways, 4 Mi", _pairs(name), 5 * BYTES) for name in ("mse_loss", "smooth_l1_loss", "binary_cross_entropy_with_logits")),
    # The gradient is the targets' negative: the input is not read again.
    Case("loss", "kl_div, both ways, 4 Mi", _pairs("kl_div"), 4 * BYTES),
]  # fmt: skip
