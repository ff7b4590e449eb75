"""What networks are made of: softmax and norms, losses, convolution, pooling, attention, embedding; forward and backward."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from benchmarks.case import Case, Kit, Run, backward

ROWS, WIDTH = 4096, 1024
BYTES = 4.0 * ROWS * WIDTH


def _rows(fn: Callable[[Any, Any], Any], grad: bool) -> Callable[[Kit], Run]:
    def make(kit: Kit) -> Run:
        x = kit.rand(ROWS, WIDTH, grad=grad)
        return backward(kit, lambda x: fn(kit, x), x) if grad else lambda: fn(kit, x)

    return make


def _softmax(kit: Kit, x: Any) -> Any:
    return x.softmax(1).square()  # softmax alone has a sum with no gradient


def _norm(kit: Kit, x: Any) -> Any:
    return kit.torch.nn.functional.layer_norm(x, (WIDTH,)).relu()  # its squares have a constant sum


def _loss(kit: Kit, x: Any) -> Any:
    return kit.torch.nn.functional.cross_entropy(x, kit.randint(WIDTH, ROWS, seed=3))


def _cross_entropy(grad: bool) -> Callable[[Kit], Run]:
    def make(kit: Kit) -> Run:
        x, y = kit.rand(ROWS, WIDTH, grad=grad), kit.randint(WIDTH, ROWS, seed=3)
        F = kit.torch.nn.functional
        return backward(kit, lambda x: F.cross_entropy(x, y), x) if grad else lambda: F.cross_entropy(x, y)  # fmt: skip

    return make


def _embedding(grad: bool) -> Callable[[Kit], Run]:
    def make(kit: Kit) -> Run:
        table, index = kit.rand(50_000, 128, grad=grad), kit.randint(50_000, 8192, seed=1)
        F = kit.torch.nn.functional
        return backward(kit, lambda w: F.embedding(index, w), table) if grad else lambda: F.embedding(index, table)  # fmt: skip

    return make


def _gather(grad: bool) -> Callable[[Kit], Run]:
    def make(kit: Kit) -> Run:
        x, index = kit.rand(4096, 1024, grad=grad), kit.randint(1024, 4096, 256, seed=1)
        return backward(kit, lambda x: x.gather(1, index), x) if grad else lambda: x.gather(1, index)  # fmt: skip

    return make


def _index_add(kit: Kit) -> Run:
    x, index, rows = kit.rand(8192, 256), kit.randint(8192, 16384, seed=1), kit.rand(16384, 256, seed=2)  # fmt: skip
    return lambda: x.index_add(0, index, rows)


def _conv(which: str) -> Callable[[Kit], Run]:
    def make(kit: Kit) -> Run:
        x = kit.rand(8, 64, 56, 56, grad=which == "backward")
        w = kit.rand(64, 64, 3, 3, seed=1, grad=which == "backward")
        F = kit.torch.nn.functional
        if which == "forward":
            return lambda: F.conv2d(x, w, padding=1)
        out = F.conv2d(x, w, padding=1)
        g = kit.rand(*out.shape, seed=2)
        return lambda: kit.torch.autograd.grad(out, (x, w), g, retain_graph=True)

    return make


def _max_pool(kit: Kit) -> Run:
    x = kit.rand(16, 64, 56, 56, grad=True)
    return backward(kit, lambda x: kit.torch.nn.functional.max_pool2d(x, 2), x)


def _batch_norm(kit: Kit) -> Run:
    x, w, b = kit.rand(16, 64, 56, 56, grad=True), kit.rand(64, seed=1, grad=True), kit.rand(64, seed=2, grad=True)  # fmt: skip
    F = kit.torch.nn.functional
    return backward(kit, lambda x, w, b: F.batch_norm(x, None, None, w, b, training=True).relu(), x, w, b)  # fmt: skip


def _attention(grad: bool) -> Callable[[Kit], Run]:
    def make(kit: Kit) -> Run:
        q, k, v = (kit.rand(8, 8, 256, 64, seed=s, grad=grad) for s in range(3))
        attend = kit.torch.nn.functional.scaled_dot_product_attention
        if grad:
            return backward(kit, lambda q, k, v: attend(q, k, v, is_causal=True), q, k, v)
        return lambda: attend(q, k, v, is_causal=True)

    return make


CONV = 2.0 * 8 * 64 * 56 * 56 * 64 * 9
ATTENTION = 2.0 * 8 * 8 * 256 * 256 * 64  # causal: half of two products
CASES = [
    Case("rows", "softmax, 4096 x 1024", _rows(lambda k, x: x.softmax(1), False), 2 * BYTES, bar=1.0, quick=True),
    Case("rows", "softmax, forward and backward", _rows(_softmax, True), 5 * BYTES, bar=1.5, quick=True),
    Case("rows", "log_softmax, 4096 x 1024", _rows(lambda k, x: x.log_softmax(1), False), 2 * BYTES, bar=1.0),
    Case("rows", "log_softmax, forward and backward", _rows(lambda k, x: x.log_softmax(1).square(), True), 5 * BYTES, bar=1.5),
    Case("rows", "layer_norm, 4096 x 1024", _rows(lambda k, x: k.torch.nn.functional.layer_norm(x, (WIDTH,)), False), 2 * BYTES, bar=1.0),
    Case("rows", "layer_norm, forward and backward", _rows(_norm, True), 5 * BYTES, bar=1.5, quick=True),
    Case("loss", "cross_entropy, 4096 x 1024", _cross_entropy(False), BYTES, bar=1.0),
    Case("loss", "cross_entropy, forward and backward", _cross_entropy(True), 3 * BYTES, bar=1.5, quick=True),
    Case("index", "embedding, 8192 of 50,000 x 128", _embedding(False), 8.0 * 8192 * 128, bar=1.0),
    Case("index", "embedding, forward and backward", _embedding(True), 8.0 * 8192 * 128 + 4.0 * 50_000 * 128, bar=1.0, quick=True),
    Case("index", "gather, 4096 x 256 of 1024", _gather(False), 16.0 * 4096 * 256, bar=1.0),
    Case("index", "gather, forward and backward", _gather(True), 16.0 * 4096 * 256 + BYTES, bar=1.0),
    Case("index", "index_add, 16384 rows of 256", _index_add, 4.0 * 256 * (8192 * 2 + 16384), bar=1.0, quick=True),
    Case("conv", "3 x 3, 64 channels, 56², batch 8, forward", _conv("forward"), flops=CONV, bar=0.7, quick=True),
    Case("conv", "3 x 3, 64 channels, 56², batch 8, both backwards", _conv("backward"), flops=2 * CONV, bar=0.6, quick=True),
    Case("pool", "max_pool2d 2 x 2, forward and backward", _max_pool, 4.0 * 16 * 64 * 56 * 56 * 2.5, bar=1.0, quick=True),
    Case("norm", "batch_norm (training), forward and backward", _batch_norm, 4.0 * 16 * 64 * 56 * 56 * 5, bar=1.0, quick=True),
    Case("attention", "B8 H8 T256 D64 causal, forward", _attention(False), flops=ATTENTION, bar=0.9, quick=True),
    Case("attention", "B8 H8 T256 D64 causal, forward and backward", _attention(True), flops=3.5 * ATTENTION, bar=0.9, quick=True),
]  # fmt: skip
