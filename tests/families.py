"""A small computation for every template family, for the tests with Oclgrind, of GPU schedules and of records of GPUs.

Sizes are tiny, odd and just past a vector or a tile. A family may change module constants (names in capitals) so that small work takes the path of
large work; to run several families in a process, wrap each in `support.constants_restored`. `TEMPLATES` lists the templates that each family reaches.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from typing import Any

# The templates that a family renders on either schedule; tests/unit checks that no template is missing.
TEMPLATES = {
    "pointwise": "pointwise lanes",
    "special functions": "pointwise",
    "copy transposed": "move/tile walk",
    "copy of small blocks": "move/blocks",
    "flip, roll, cat": "index/move index/lanes",
    "elements anywhere": "index/move",
    "pad": "move/pad",
    "pad past the cache": "move/pad",
    "repeat_interleave": "move/spread",
    "repeat": "move/repeat",
    "stack of short rows": "move/interleave",
    "cat of rows": "move/beside move/beside_gpu",
    "reduce all": "reduce/reduce reduce/gpu reduce/parts",
    "argmax": "reduce/first",
    "softmax": "rowwise/rowwise rowwise/gpu",
    "softmax of rows across": "rowwise/rowwise rowwise/turn",
    "scan": "scan/rows scan/lanes scan/after scan/state",
    "scan of short rows": "scan/short",
    "sort": "sort/rows sort/tile sort/keys sort/ranks",
    "sort long": "sort/merge sort/radix",
    "topk": "sort/topk",
    "topk long": "sort/first sort/chosen",
    "median": "sort/select",
    "mode": "sort/pick",
    "searchsorted": "sort/search",
    "scatter_add": "index/write index/combine",
    "scatter mean": "index/divide",
    "index_add long": "index/keys index/runs",
    "index_add rows": "index/rows",
    "index_add of copies": "index/collect",
    "index_add in order": "index/order index/added",
    "rows with their indices": "index/row_claims",
    "index_select rows": "index/take",
    "gather rows": "index/along index/blocks index/anew index/row_runs",
    "mask": "mask",
    "mask counted ahead": "mask",
    "unique": "sort/runs",
    "bincount": "count",
    "gemm": "gemm/cpu gemm/sliced",
    "gemm wide": "gemm/gpu gemm/lanes",
    "gemm packed": "gemm/cpu",
    "gemm long": "gemm/combine gemm/combine_lanes",
    "gemm small": "gemm/small gemm/tiny",
    "gemm chain": "gemm/epilogue",
    "gemm tall": "gemm/tall",
    "gemm gram": "gemm/gram gemm/dots",
    "gemm tiles": "gemm/amx gemm/amx_rows gemm/amx_pack",
    "gemm matrix units": "gemm/mma",
    "gemm complex": "gemm/complex",
    "gemv": "gemm/gemv gemm/gemv_lanes",
    "gemv short": "gemm/short",
    "gemv few": "gemm/few",
    "conv2d": "conv/cpu conv/direct conv/direct_weight conv/filters conv/patch conv/weight",
    "conv2d of few filters": "conv/direct",
    "conv2d of many filters": "conv/gpu gemm/lanes",
    "conv2d many": "conv/unfold conv/fold",
    "conv2d depthwise": "conv/depthwise conv/depthwise_weight",
    "conv2d depthwise channels last": "conv/depthwise_last conv/depthwise_last_weight",
    "conv2d winograd": "conv/winograd conv/winograd_filters conv/winograd_weight conv/winograd_taps",
    "max_pool2d": "pool/pool",
    "max_pool2d wide": "pool/few",
    "max_pool2d channels last": "pool/last pool/rows",
    "avg_pool2d that meet": "pool/shares",
    "interpolate": "resample/resample resample/axis resample/turn",
    "interpolate channels last": "resample/last",
    "interpolate bytes": "resample/bytes resample/byte_rows",
    "grid_sample": "resample/grid",
    "attention": "attention/forward attention/backward attention/gpu attention/tiles",
    "attention half by matrix units": "attention/units attention/units_back attention/units_tiles",
    "attention half by tiles": "attention/forward gemm/amx_pack",
    "attention of a few": "attention/few attention/few_gpu attention/join",
    "ctc_loss": "ctc/gpu ctc/cpu",
    "lstm": "recurrent/forward recurrent/backward recurrent/pack recurrent/steps",
    "embedding_bag": "bag",
    "segments": "index/segment",
    "sparse mm": "sparse/mm sparse/dot sparse/keys sparse/places",
    "cdist": "distance",
    "tril": "move/triangle",
    "fft": "fft/fft square",
    "fft line": "fft/line fft/stages",
    "fft blocks": "fft/block fft/stages",
    "linear systems": "factor/panel factor/solve factor/exchange factor/numbers factor/determinant",
    "linear systems side by side": "factor/lanes factor/solve_lanes",
    "cholesky": "factor/panel",
    "ldl": "factor/ldl factor/ldl_solve",
    "qr": "factor/reflectors factor/reflector",
    "eigh": "factor/condense factor/eigenvalues factor/rotate factor/rotation",
    "eigh of small matrices": "factor/jacobi",
    "eig": "factor/balance factor/hessenberg factor/schur factor/back_substitute",
    "svd": "factor/condense factor/singular_values factor/rotate factor/rotation",
    "eigh and svd divided": "factor/deflate factor/merge factor/secular factor/secular_weights factor/secular_vectors factor/wide",
    "multi-tensor step": "multi_tensor",
}


def families(torch: Any) -> dict[str, Callable[[], Any]]:
    """Return a small computation for each family by name; callers read its results back, so that they are computed."""
    F = torch.nn.functional

    def r(*shape: int) -> Any:
        count = torch.Size(shape).numel()
        return torch.tensor([2 * i / count - 1 for i in range(count)]).reshape(shape)

    def apart(*shape: int) -> Any:  # distinct singular values: every singular vector is determined
        return r(*shape) ** 2 + torch.eye(*shape[-2:]) * torch.arange(1.0, shape[-1] + 1)

    def grads(fn: Callable, *xs: Any) -> Any:
        xs = [x.detach().clone().requires_grad_() for x in xs]
        out = fn(*xs)
        return torch.autograd.grad((out * out).sum(), xs)

    def last(*shape: int) -> Any:
        return r(1, *shape).permute(0, 3, 1, 2)

    def writes() -> Any:
        x = r(5, 7)
        x[1:4, ::3] = 2.0
        x[:, torch.tensor([0, 6])] += 1
        return x.index_add(0, torch.tensor([0, 4, 4]), r(3, 7))

    def adam() -> Any:
        params = [r(n).requires_grad_() for n in (1, 17, 33)]
        table = r(5, 19).requires_grad_()
        F.embedding(torch.tensor([3, 0, 3]), table, sparse=True).sum().backward()
        torch.optim.SparseAdam([table]).step()
        step = torch.optim.Adam(params, lr=0.1)
        for p in params:
            p.grad = r(*p.shape)
        step.step()
        with torch.no_grad():
            scaled = torch._foreach_mul([r(n) for n in (1, 17, 33, 3)], [2.0, 3.0, 4.0, 5.0])
        return [*params, *scaled]

    def condensed() -> Any:
        from cltensor.codegen.factor import condense, jacobi

        jacobi.MOST = 0
        together = torch.linalg.eigh(r(2, 7, 7) ** 2)[1].abs()
        condense._SMALL = condense._ALONE = 0
        return together, torch.linalg.eigvalsh(r(7, 7) ** 2), torch.linalg.svdvals(r(7, 7) ** 2)

    def divided() -> Any:
        from cltensor.codegen.factor import conquer, jacobi

        jacobi.MOST = 0
        conquer.MANY, conquer.LEAF = 8, 4
        return torch.linalg.eigh(apart(9, 9))[1].abs(), torch.linalg.svd(apart(9, 8))[0].abs()

    def attention_by_tiles() -> Any:
        from cltensor.codegen.products import gemm_amx

        gemm_amx.TWIN = 1
        q, k, v = (r(1, 1, n, w).bfloat16() for n, w in ((35, 40), (37, 40), (37, 32)))
        attend = F.scaled_dot_product_attention
        return attend(q, k, v), attend(k, k, v, is_causal=True)

    def attention_by_units() -> Any:
        from cltensor.codegen.products import gemm_mma

        gemm_mma.TWIN = 1
        q, k, v = (r(1, 1, n, w).bfloat16() for n, w in ((35, 40), (70, 40), (70, 24)))
        found = [F.scaled_dot_product_attention(*(x.half() for x in (k, k, v)), is_causal=True)]
        return [*found, *grads(F.scaled_dot_product_attention, q, k, v)]

    def attention(queries: int = 19, keys: int = 21, **options: Any) -> Any:
        heads = (r(1, 2, queries, 8), r(1, 2, keys, 8), r(1, 2, keys, 8))
        return grads(lambda q, k, v: F.scaled_dot_product_attention(q, k, v, **options), *heads)

    def ragged_attention() -> Any:
        from cltensor.nn.attention.varlen import varlen_attn

        at, beside = torch.tensor([[0, 19, 19, 25], [0, 21, 23, 24]], dtype=torch.int32)
        q, k, few = r(25, 2, 8), r(24, 2, 8), at.new_tensor([0, 1, 2, 3])
        made = grads(lambda *x: varlen_attn(*x, at, beside, 19, 21, window_size=(5, 0)), q, k, k)
        return [*made, varlen_attn(q[:3], k, k, few, beside, 1, 21)]

    def recurrent(mode: str, gates: int, sizes: Any = None) -> Any:
        x = r(3, 3, 2) if sizes is None else r(8, 2)
        h, where = r(2, 3, 9), (x,) if sizes is None else (x, sizes)
        w = [r(9 * gates, 2), r(9 * gates, 9), r(9 * gates), r(9 * gates)] * 2
        last = (False,) if sizes is None else ()
        first = (h, h) if mode == "lstm" else h
        return grads(
            lambda *w: getattr(torch, mode)(*where, first, w, True, 1, 0.0, True, True, *last)[0],
            *w,
        )

    def chain() -> Any:
        from cltensor.ops import dense

        dense.WAITS = 0  # tiny products stay pending, too, and get epilogues
        return F.linear(r(17, 9), r(35, 9), r(35)).relu() * r(17, 35), (r(5, 3) @ r(3, 2)).tanh()

    def wide() -> Any:
        from cltensor.codegen.conv import direct
        from cltensor.codegen.products import gemm_lanes, gemm_tiny, product

        product.WIDE_GROUPS = product.WIDE_LOCAL = product.NARROW = 0  # 8 x 8 numbers for each lane
        gemm_tiny.TINY = direct.FEW = gemm_lanes.FEW = 0  # and large tiles
        found = grads(lambda x, w: F.conv2d(x, w, padding=1), r(1, 3, 5, 6), r(4, 3, 3, 3))
        return (r(131, 9) @ r(9, 13), *found)

    def long() -> Any:
        from cltensor.codegen.products import gemm_sliced

        gemm_sliced.STEPS = 1  # split-K with one slab per piece
        return (
            r(3, 2100) @ r(2100, 2),
            r(3, 2100).half() @ r(2100, 5).half(),
            r(35, 500) @ r(500, 40) / 99,
        )

    def turned_rows() -> Any:
        from cltensor import lazy
        from cltensor.codegen.reduce import rowwise

        rowwise.TURNED_LEAST = lazy.TURN = 1
        return r(37, 19).T.softmax(-1), F.layer_norm(r(2, 17, 3, 7).permute(0, 2, 3, 1), (17,))

    def short_rows() -> Any:
        from cltensor.codegen.reduce import reduction

        reduction.NARROW_LEAST = 1
        return (
            r(37, 61).var(0),
            r(2, 19, 97).sum(1),
            r(67, 19).sum(1),
            r(3, 67, 70).amax(-1),
            r(99, 5).var(0),
        )

    def padded() -> Any:
        from cltensor.codegen import region
        from cltensor.codegen.move import pad

        region.STREAM, pad.STAGED = 1, 256
        return F.pad(r(5, 7, 21), (1, 2, 1, 1)), F.pad(r(3, 29), (2, 1), "circular")

    def repeated() -> Any:
        from cltensor.codegen import region
        from cltensor.codegen.move import copies

        sys.modules["cltensor.lazy.launch"].TURN = region.STREAM = copies.REPEATED = 1
        sys.modules["cltensor.lazy.tree"].STREAM = 1  # else that module runs small expressions
        return r(3, 37).repeat(1, 2), r(41).repeat(3)

    def counted_ahead() -> Any:
        from cltensor.codegen.order import mask

        mask.is_small = lambda *args: False
        return r(7, 5)[r(7, 5) > 0], r(7, 5).nonzero()

    def anywhere() -> Any:
        from cltensor.codegen.index import moves

        moves.STREAM = 1  # from this size on elements are prefetched
        index = torch.arange(267) * 7 % 37
        return (
            r(37).take(index),
            r(37, 5)[index, index % 5],
            r(37, 267).gather(0, index.reshape(1, 267)),
        )

    def collected() -> Any:
        from cltensor.codegen.index import collect

        collect.LEAST = collect.NARROW = 1
        zeros = torch.zeros(5, 2, 150)
        return (
            r(5, 35).index_add(0, many[:9], r(9, 35)),
            r(5, 300).index_add(0, many[:2].int(), r(2, 300)),
            zeros.index_put((many[:3] - 5,), r(3, 2, 150), accumulate=True),
            torch.zeros(5, 40).index_add(0, many[:9], r(1, 1).expand(9, 40)),
        )

    def ordered() -> Any:
        from cltensor.codegen.index import collect, ordered

        collect.LEAST = collect.NARROW = 1
        ordered.LANES, ordered.LISTED, index = 64, 16, torch.arange(70) * 7 % 37
        return (
            r(37, 5).index_add(0, index, r(70, 5)),
            torch.zeros(37, 40).index_add(0, index // 30, r(1, 1).expand(70, 40)),
        )

    def claimed() -> Any:
        from cltensor.codegen.index import claims

        claims.ROUNDS, index = 2, (torch.arange(105) * 7 % 13).reshape(3, 35)
        return (
            r(3, 35).scatter_add(1, index, r(3, 35)),
            *grads(lambda x: x.gather(1, index), r(3, 35)),
            r(3, 35).scatter(1, index, 2.0),
        )

    def winograd() -> Any:
        from cltensor.codegen.conv import winograd

        for name in ("CHANNELS", "WEIGHT_CHANNELS", "PAIRS", "TILES", "WORK", "LOCAL_BYTES"):
            setattr(winograd, name, 0)
        winograd.ASIDE, winograd.SUMMED = 1, 8  # Oclgrind has little local memory
        leaves = r(1, 6, 5, 37), r(7, 6, 3, 3), r(7)
        leaves[0][0, 1, 2, 30] = torch.inf  # outputs that see it are computed again
        return grads(lambda x, w, b: F.conv2d(x, w, b, padding=1), *leaves)

    def depthwise() -> Any:
        from cltensor.codegen.conv import depthwise

        depthwise.ROOM, depthwise.BAND, depthwise.PLANES = 1 << 11, 256, 0
        found = []
        for stride, plane in ((1, (5, 7)), (1, (17, 18)), (2, (5, 7)), (2, (18, 19))):
            call = partial(F.conv2d, stride=stride, padding=1, groups=3)
            found += grads(call, r(2, 3, *plane), r(3, 1, 3, 3))
        return found

    def tiles() -> Any:
        from cltensor.codegen.products import gemm_amx

        gemm_amx.TWIN, gemm_amx.SPAN, gemm_amx.ROOM, gemm_amx.NEAR, gemm_amx.COPIED = (
            1,
            64,
            4096,
            1024,
            1,
        )
        a, b, c = r(67, 35).bfloat16(), r(67, 33).bfloat16(), r(20, 67).bfloat16()
        return a.T @ b, torch.addmm(a, c.T, r(35, 20).bfloat16().T, alpha=2), c @ b

    def matrix_units() -> Any:
        from cltensor.codegen.products import gemm_mma

        gemm_mma.TWIN, gemm_mma.PIECE, gemm_mma.FILLED = 1, 32, 0

        def e(*shape: int) -> Any:
            """Numbers whose sums are exact in any order."""
            return (r(*shape) * 8).round() / 8

        a, b, c = e(67, 40).bfloat16(), e(67, 33).half(), e(24, 67).bfloat16()
        made = [
            a.T @ c.T,
            b.T @ b,
            torch.addmm(a[:24], c, a, alpha=2),
            e(3, 17, 48).half() @ e(48, 24).half(),
        ]
        if torch.runtime.get_backend(a.device).info.fp64:
            d = e(66, 34).double()
            made.append(d.T @ d)
        return tuple(made)

    index = torch.tensor([[0, 2], [1, 1], [3, 0]])
    many = torch.arange(70) % 5
    places = torch.tensor([[0, 0, 1, 1, 3, 3], [2, 6, 0, 5, 4, 6]])
    return {
        "pointwise": lambda: ((r(37) * 2 + r(37)).sigmoid() * r(37), r(600) * 2 + r(600)),
        "pointwise broadcast": lambda: r(5, 1) + r(1, 19) * r(5, 19).t().contiguous().t(),
        "pointwise narrow": lambda: (r(67, 3) * r(67, 1) + r(3) - r(67, 6)[:, ::2], r(65, 4)[:, 2:].mul_(2)),
        "pointwise half": lambda: r(33).half() * 2 + r(33).bfloat16(),
        "pointwise complex": lambda: ((c := torch.complex(r(3, 19), r(3, 19))) * 1j + c[0], (c / 2).abs().sum(1), c.log() + c.tan() + c.acosh() + c.atanh() + c**c.conj() + c.expm1()),
        "copy of small blocks": lambda: torch.linalg.lu_factor(r(67, 3, 2))[0],
        "copy transposed": lambda: F.avg_pool2d(r(1, 1, 70, 77).mT, 7),
        "elements anywhere": anywhere,
        "flip, roll, cat": lambda: torch.cat((r(3, 37).flip(0, 1), r(3, 37).roll(2, 1)), 1),
        "stack of short rows": lambda: torch.stack((r(4099), r(4099)), 1),
        "cat of rows": lambda: torch.cat((r(90, 17), r(90, 33), r(90, 61)), 1),
        "repeat_interleave": lambda: r(37).repeat_interleave((r(37) * 2).round().abs().long()),
        "pad past the cache": padded,
        "repeat": repeated,
        "pad": lambda: (
            F.pad(r(1, 2, 5), (2, 1), mode="reflect"), F.pad(r(2, 3, 21), (1, -2, 1, 1), value=3.0),
            F.pad(r(1, 5, 21).mT, (2, 1), mode="circular"),
        ),
        "reduce all": lambda: (r(517) * 2).sum(),
        "reduce rows": lambda: r(6, 37).amax(1),
        "reduce columns": lambda: r(37, 6).var(0),
        "reduce short rows": short_rows,
        "reduce middle": lambda: r(3, 19, 5).aminmax(dim=1),
        "argmax": lambda: r(5, 41).argmax(1),
        "softmax of rows across": turned_rows,
        "many short rows": lambda: (r(259, 49).sum(1), r(259, 49).argmax(1), r(259, 49).softmax(1)),
        "softmax": lambda: grads(lambda x: x.softmax(1), r(3, 37)),
        "log_softmax columns": lambda: grads(lambda x: x.log_softmax(0), r(37, 3)),
        "layer_norm": lambda: grads(
            lambda x, w: F.layer_norm(x, (19,), w, w), r(3, 19), r(19)
        ),
        "logsumexp": lambda: (r(6, 37).logsumexp(1), r(11, 19).logsumexp(0)),
        "amax": lambda: grads(lambda x: x.amax(1), r(6, 37)),
        "group_norm": lambda: grads(
            lambda x, w: F.group_norm(x, 2, w, w), r(2, 4, 3, 3), r(4)
        ),
        "batch_norm": lambda: grads(
            lambda x, w: F.batch_norm(x, None, None, w, w, True), r(3, 2, 5), r(2)
        ),
        "cross_entropy": lambda: grads(
            lambda x: F.cross_entropy(x, torch.tensor([1, 0, 18])), r(3, 19)
        ),
        "cross_entropy weighted": lambda: grads(
            lambda x: F.cross_entropy(x, torch.tensor([1, 0, 18]), r(19), label_smoothing=0.1), r(3, 19)
        ),
        "nll_loss": lambda: grads(
            lambda x: F.nll_loss(x, torch.tensor([[1, 0, 4]]), r(5)), r(1, 5, 3)
        ),
        "special functions": lambda: tuple(
            getattr(torch.special, name)(r(19) * 9)
            for name in ["airy_ai", "bessel_j0", "bessel_y1", "modified_bessel_i0", "i1e", "modified_bessel_k1", "spherical_bessel_j0", "erfcx", "ndtri"]
        ) + (torch.special.gammainc(r(19) * 40, r(19) * 40), torch.special.gammaincc(r(19), r(19))),
        "scan": lambda: (r(3, 67).cumsum(1), r(5, 67).bfloat16().cumsum(1), r(18, 35).cumprod(1), r(2100).logcumsumexp(0), *grads(lambda x: x.cumsum(0), r(4500)),
                         *grads(lambda x: x.cumsum(1), r(5, 67)), *grads(lambda x: x.cumsum(0), r(67, 18))),
        "scan of short rows": lambda: (r(19, 5).cumsum(1), r(19, 5).cumprod(1), r(37, 3).half().cumprod(1), *r(17, 23).cummax(1), *r(17, 5).long().cummin(1)),
        "scan max": lambda: r(67, 21).cummax(0),
        "sort": lambda: r(3, 67).sort(1, descending=True),
        "sort long": lambda: r(1500).flip(0).sort(),
        "topk": lambda: r(3, 67).topk(5),
        "topk long": lambda: (*r(2, 2200).flip(1).topk(67), *(r(2200) * 2).round().topk(66, largest=False)),
        "median": lambda: r(3, 67).median(1),
        "mode": lambda: (r(3, 35) * 4).round().mode(1),
        "searchsorted": lambda: torch.searchsorted(r(33), r(7)),
        "gather": lambda: r(4, 5).gather(0, index),
        "scatter_add": lambda: r(4, 5).scatter_add(0, index, r(3, 2)),
        "scatter mean": lambda: r(4, 5).scatter_reduce(0, index, r(3, 2), "mean"),
        "index_add long": lambda: r(5, 2).index_add(0, many, r(70, 2)),
        "index_add rows": lambda: r(5, 35).index_add(0, many[:9], r(9, 35)),
        "index_add of copies": collected,
        "index_add in order": ordered,
        "rows with their indices": claimed,
        "index_select rows": lambda: r(5, 35).index_select(0, many[:9]),
        "gather rows": lambda: (
            *grads(lambda x: x.gather(1, many[:60].reshape(3, 20)), r(3, 35)), r(3, 35).gather(1, many[:60].reshape(20, 3).t()),
            r(2, 35).scatter_add(1, many.reshape(2, 35), r(2, 35)), r(2, 35).scatter_add_(1, many.reshape(2, 35), r(2, 35)),
            r(3, 35).scatter_add_(1, many[:60].reshape(3, 20), r(3, 20)), r(3, 35).scatter_add(1, many[:60].reshape(3, 20), r(3, 20)),
            *(r(3, 35).scatter(1, torch.arange(60).reshape(3, 20) % 35, x) for x in (2.0, r(3, 20))),
        ),
        "indexing": writes,
        "indexing anywhere": lambda: (r(4, 5)[many[:19] % 4, many[:19]], r(4, 5)[many[:18:2] % 4, many[:9]]),
        "embedding": lambda: grads(lambda w: F.embedding(index, w), r(4, 19)),
        "mask": lambda: (r(7, 5)[r(7, 5) > 0], r(7, 5).nonzero()),
        "mask counted ahead": counted_ahead,
        "nonzero": lambda: (r(67) > 0.3).nonzero(),
        "unique": lambda: ((r(33) * 4).round().unique(), *(r(33) * 4).round().unique(return_inverse=True)),
        "bincount": lambda: tuple((r(53) * 4).round().abs().int().bincount(minlength=m) for m in (3, 2100)),
        "gemm": lambda: (r(17, 9) @ r(9, 35), r(9, 70) @ r(70, 5), r(70, 67).T @ r(70, 9), r(3, 300) @ r(5, 300).T),
        "gemm wide": wide,
        "gemm packed": lambda: (r(14, 9) @ r(9, 260), r(9, 14).t() @ r(260, 9).t()),
        "gemm complex": lambda: (torch.complex(r(2, 5, 7), r(2, 5, 7)) @ (c := torch.complex(r(7, 19), r(7, 19))), c.mH @ c.conj()),
        "gemm batched": lambda: r(2, 5, 7) @ r(2, 7, 3),
        "gemm half": lambda: (r(17, 9).half() @ r(9, 5).half(), r(3, 9).bfloat16() @ r(9, 5).bfloat16()),
        "gemm small": lambda: (r(3, 9, 4) @ r(3, 4, 5), r(2, 3, 8).mT @ r(2, 5, 3).mT, r(3, 3, 3) @ r(3, 3, 1)),
        "gemm long": long,
        "gemm chain": chain,
        "gemm tall": lambda: (r(67, 9) @ r(9, 5), r(67, 9) @ r(11, 9).t(), torch.addmm(r(67, 5), r(3, 67).t(), r(3, 5), beta=2), (r(67, 3) @ r(3, 5) + r(5)).relu()),
        "gemm tiles": tiles,
        "gemm matrix units": matrix_units,
        "gemm gram": lambda: (r(4100, 2).t() @ r(4100, 3), r(2, 4100) @ r(3, 4100).t(), r(5, 4100) @ r(4100, 1).expand(4100, 2)),
        "gemv": lambda: (r(17, 33) @ r(33), r(33, 37).t() @ r(33), r(5, 300) @ r(300), r(2, 19, 17) @ r(17)),
        "gemv short": lambda: (r(67, 19) @ r(19), r(2, 70, 63) @ r(63), r(80, 2) @ r(2)),
        "gemv few": lambda: (r(3, 257) @ r(257, 260) + r(3, 257) @ r(260, 257).T, r(1100, 61) @ r(61, 3)),
        "random": lambda: (torch.rand(33) + torch.randn(33), torch.randint(9, (133,))),
        "random draws": lambda: (
            torch.poisson(20 * r(9).abs()), torch.bernoulli(r(9).abs()), torch._standard_gamma(2 * r(9).abs())
        ),
        "conv1d": lambda: grads(lambda x, w: F.conv1d(x, w, dilation=2), r(2, 3, 21), r(5, 3, 3)),
        "conv2d": lambda: grads(lambda x, w: F.conv2d(x, w, padding=1), r(1, 3, 5, 6), r(4, 3, 3, 3)),
        "conv2d of few filters": lambda: grads(lambda x, w: F.conv2d(x, w, padding=1), r(1, 17, 5, 6), r(3, 17, 3, 3) / 9),
        "conv2d of many filters": lambda: grads(lambda x, w: F.conv2d(x, w, padding=1), r(1, 17, 5, 6), r(18, 17, 3, 3)),
        "conv2d many": lambda: grads(
            lambda x, w: F.conv2d(x, w, stride=2, padding=1), r(2, 32, 5, 35), r(256, 32, 3, 3)
        ),
        "conv2d winograd": winograd,
        "conv2d grouped": lambda: grads(
            lambda x, w: F.conv2d(x, w, stride=2, groups=2), r(1, 4, 5, 5), r(4, 2, 3, 3)
        ),
        "conv2d depthwise": depthwise,
        "conv2d depthwise channels last": lambda: (
            *grads(lambda x, w: F.conv2d(x, w, padding=1, groups=11), last(6, 8, 11), r(11, 1, 3, 3)),
            *grads(lambda x, w: F.conv2d(x, w, padding=1, stride=2, groups=11), last(6, 8, 11), r(11, 1, 3, 3)),
        ),
        "conv3d": lambda: grads(lambda x, w: F.conv3d(x, w), r(1, 2, 3, 4, 5), r(3, 2, 2, 2, 2)),
        "conv transposed": lambda: grads(
            lambda x, w: F.conv_transpose2d(x, w, stride=2), r(1, 2, 3, 3), r(2, 3, 3, 3)
        ),
        "fold": lambda: F.fold(F.unfold(r(1, 2, 5, 5), 3, padding=1), (5, 5), 3, padding=1),
        "overlap": lambda: grads(lambda x: x.unfold(1, 5, 2), r(2, 13)),
        "max_pool2d": lambda: grads(lambda x: F.max_pool2d(x, 3, 2, 1), r(1, 2, 7, 7)),
        "max_pool2d wide": lambda: (F.max_pool2d(r(1, 2, 7, 35), 3, 2, 1), F.max_pool2d(r(1, 1, 5, 37), 2)),
        "max_pool2d channels last": lambda: (
            F.max_pool2d(last(7, 7, 5), 3, 2, 1), *grads(lambda x: F.max_pool2d(x, 3, 2, 1), last(7, 7, 19)),
            *grads(lambda x: F.avg_pool2d(x, 3, 2, 1), last(6, 5, 16)),
        ),
        "interpolate channels last": lambda: grads(lambda x: F.interpolate(x, size=(7, 9), mode="bilinear"), last(4, 5, 19)),
        "max_pool3d": lambda: grads(lambda x: F.max_pool3d(x, 2), r(1, 2, 4, 5, 4)),
        "max_unpool1d": lambda: F.max_unpool1d(*F.max_pool1d(r(1, 2, 8), 2, return_indices=True), 2),
        "max_pool2d side by side": lambda: (
            *grads(lambda x: F.max_pool2d(x, 2), r(1, 2, 7, 13)), *torch.autograd.grad(F.max_pool2d(x := r(1, 2, 7, 13).requires_grad_(), 2).sum(), x),
            *grads(lambda x: F.max_pool2d(x, 2, return_indices=True)[0], r(1, 2, 6, 8)),
        ),
        "avg_pool2d": lambda: grads(lambda x: F.avg_pool2d(x, 2), r(1, 2, 7, 6)),
        "avg_pool2d wide": lambda: grads(lambda x: F.avg_pool2d(x, (1, 5)), r(1, 2, 3, 11)),
        "avg_pool2d that meet": lambda: (
            *grads(lambda x: F.avg_pool2d(x, 3, 2, 1), r(1, 2, 7, 19)), *grads(lambda x: F.avg_pool2d(x, 3, 1, 1), r(1, 2, 4, 9)),
        ),
        "adaptive pooling": lambda: grads(lambda x: F.adaptive_avg_pool2d(x, 3), r(1, 2, 7, 5)),
        "adaptive max pooling": lambda: grads(lambda x: F.adaptive_max_pool2d(x, 3), r(1, 2, 7, 5)),
        "global max pooling": lambda: grads(lambda x: F.adaptive_max_pool2d(x, 1), r(1, 2, 7, 5)),
        "fractional pooling": lambda: grads(
            lambda x: F.fractional_max_pool2d(x, 2, output_size=3), r(1, 2, 7, 7)
        ),
        "interpolate": lambda: grads(
            lambda x: F.interpolate(x, size=(7, 3), mode="bilinear"), r(1, 2, 4, 5)
        ),
        "interpolate nearest": lambda: grads(lambda x: F.interpolate(x, size=(7, 3)), r(1, 2, 4, 5)),
        "interpolate cubic": lambda: grads(
            lambda x: F.interpolate(x, size=(3, 4), mode="bicubic", antialias=True), r(1, 2, 7, 6)
        ),
        "interpolate volume": lambda: grads(
            lambda x: F.interpolate(x, size=(2, 3, 5), mode="trilinear"), r(1, 1, 3, 4, 3)
        ),
        "interpolate bytes": lambda: F.interpolate(
            (r(1, 2, 7, 6) * 99 + 100).to(torch.uint8), size=(3, 9), mode="bilinear", antialias=True
        ),
        "grid_sample": lambda: grads(
            lambda x, g: F.grid_sample(x, g, align_corners=False), r(1, 2, 4, 5), r(1, 3, 3, 2)
        ),
        "grid_sample cubic": lambda: grads(
            lambda x, g: F.grid_sample(x, g, "bicubic", "reflection", False), r(1, 2, 4, 5), r(1, 3, 3, 2)
        ),
        "grid_sample volume": lambda: grads(
            lambda x, g: F.grid_sample(x, g, "bilinear", "border", True), r(1, 1, 3, 4, 3), r(1, 2, 2, 2, 3)
        ),
        "attention": lambda: attention(),
        "attention half by matrix units": attention_by_units,
        "attention half by tiles": attention_by_tiles,
        "attention of a few": lambda: (*attention(1), *attention(2, is_causal=True), *attention(3, attn_mask=r(3, 21)), *attention(2, 131)),
        "attention ragged": ragged_attention,
        "attention causal": lambda: attention(is_causal=True),
        "attention masked": lambda: attention(attn_mask=r(19, 21)),
        "attention dropout": lambda: attention(dropout_p=0.3),
        "ctc_loss": lambda: grads(
            lambda x: F.ctc_loss(
                x.log_softmax(2), torch.tensor([[1, 2], [3, 1]]), torch.tensor([5, 4]), torch.tensor([2, 1])
            ),
            r(5, 2, 4),
        ),
        "lstm": lambda: recurrent("lstm", 4),
        "gru": lambda: recurrent("gru", 3),
        "rnn packed": lambda: recurrent("rnn_tanh", 1, torch.tensor([3, 2, 2, 1])),
        "embedding_bag": lambda: grads(lambda w: F.embedding_bag(index, w), r(4, 5)),
        "embedding_bag max": lambda: grads(lambda w: F.embedding_bag(index, w, mode="max"), r(4, 19)),
        "embedding_bag weighted": lambda: grads(
            lambda w, s: F.embedding_bag(index, w, mode="sum", per_sample_weights=s), r(4, 5), r(3, 2)
        ),
        "segments": lambda: [
            *grads(lambda x: torch.segment_reduce(x, "mean", lengths=torch.tensor([4, 0, 3])), r(7, 19)),
            torch.segment_reduce(r(2, 37), "max", offsets=torch.tensor([[0, 33, 35], [1, 1, 37]]), axis=1),
        ],
        "tril": lambda: (r(2, 7, 37).tril(), r(37, 5).triu(-3)),
        "cdist": lambda: grads(lambda x, y: torch.cdist(x, y, 1.0), r(2, 9, 5), r(1, 7, 5)),
        "pdist": lambda: grads(lambda x: F.pdist(x, 3.0), r(9, 19)),
        "sparse mm": lambda: grads(
            lambda v, d: torch.sparse.mm(torch.sparse_coo_tensor(places, v, (4, 7)), d), r(6), r(7, 37)
        ),
        "sparse coalesce": lambda: grads(
            lambda v: torch.sparse_coo_tensor(places // 2, v, (2, 4, 19)).coalesce().to_dense(), r(6, 19)
        ),
        "sparse mv": lambda: grads(
            lambda v, d: torch.mv(torch.sparse_coo_tensor(places, v, (4, 7)), d), r(6), r(7)
        ),
        "linear systems": lambda: (
            torch.linalg.solve(r(2, 35, 35) + torch.eye(35), r(2, 35, 3)), torch.linalg.inv(r(2, 41, 41) + torch.eye(41)), torch.linalg.det(r(2, 3, 3)), *torch.linalg.slogdet(r(3, 3)),
        ),
        "linear systems side by side": lambda: (torch.linalg.inv(r(35, 3, 3) + torch.eye(3)), torch.linalg.cholesky(r(33, 2, 2) * 0.1 + torch.eye(2))),
        "cholesky": lambda: torch.linalg.cholesky(r(2, 5, 5) * 0.1 + torch.eye(5)),
        "ldl": lambda: [torch.linalg.ldl_solve(*torch.linalg.ldl_factor(a.tril(-1), hermitian=True), r(2, 7, 5).to(a.dtype), hermitian=True) for a in (r(2, 7, 7), torch.complex(r(7, 7), r(7, 7)))],
        "qr": lambda: torch.linalg.qr(r(2, 9, 6))[0],
        "eigh": condensed,
        "eigh of small matrices": lambda: (torch.linalg.eigh(r(19, 3, 3) ** 2)[1].abs(), torch.linalg.eigvalsh(r(5, 5) ** 2)),
        "eig": lambda: (torch.linalg.eig(r(2, 7, 7))[1].abs(), torch.linalg.eig(r(5, 5) * 1j)[1].abs(), torch.linalg.eigvals(r(3, 6, 6))),
        "svd": lambda: (torch.linalg.svd(apart(2, 7, 6))[0].abs(), torch.linalg.svd(apart(5, 6))[2].abs()),
        "eigh and svd divided": divided,
        "fft": lambda: torch.fft.fft(r(3, 30)),
        "fft line": lambda: (torch.fft.fft(r(2, 256) * 1j), torch.fft.irfft(torch.fft.rfft(r(3, 256)), 256)),
        "fft blocks": lambda: (torch.fft.ifft(r(3, 84)), torch.fft.fft(r(40, 3) * 1j, dim=0), torch.fft.hfft(torch.fft.rfft(r(3, 60)), 60), torch.fft.rfft(r(64, 9), dim=0), torch.stft(r(1, 200), 40, 9, window=r(40), return_complex=True)),
        "fft of odd radices": lambda: (torch.fft.fft(r(3, 22)), torch.fft.ifft(torch.fft.fft(r(2, 37)))),
        "fft long": lambda: torch.fft.fft(r(1, 1100)),
        "fft planes": lambda: (torch.fft.fft2(r(2, 6, 10)), torch.fft.irfft(torch.fft.rfft(r(3, 16)), 16)),
        "multi-tensor step": adam,
    }  # fmt: skip
