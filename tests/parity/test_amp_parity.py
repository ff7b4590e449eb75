"""Under autocast on the cpu, ops return the dtypes they return in torch; GradScaler goes through the same states."""

from __future__ import annotations

from typing import Any

import pytest
from parity.oracle import dtype_name, lines, th
from support import ct, data

# a, b, sq float32 (4, 4); s positive definite; h bfloat16 (4, 4); v (4,); x (1, 2, 4, 4); w (2, 2, 3, 3); t classes (4,)
CALLS = """
a @ b
h @ a
a.mm(b)
torch.bmm(a[None], b[None])
torch.addmm(a, a, b)
torch.baddbmm(a[None], a[None], b[None])
torch.addbmm(a, a[None], b[None])
torch.mv(a, v)
torch.addmv(v, a, v)
torch.dot(v, v)
torch.einsum('ij,jk->ik', a, b)
torch.tensordot(a, b, 1)
torch.linalg.multi_dot([a, b, a])
torch.linalg.vecdot(a, b)
F.linear(a, b, v)
F.conv2d(x, w)
F.conv1d(x[0], w[0])
F.conv_transpose2d(x, w)
F.prelu(a, v[:1])
F.bilinear(a, b, torch.ones(2, 4, 4))
torch.linalg.matrix_exp(torch.ones(4, 4))
torch.linalg.pinv(s)
torch.linalg.pinv(s.double())
F.scaled_dot_product_attention(a[None], b[None], a[None])
a.double() @ b.double()
a + h
h + h
h.exp()
h.softmax(0)
h.log_softmax(0)
h.sum()
h.cumsum(0)
h.prod()
h.trace()
h.pow(2)
h.norm()
torch.cat([a, h])
torch.stack([h, h])
torch.stack([h, a])
F.mse_loss(h, a)
F.l1_loss(h, h)
F.smooth_l1_loss(h, a)
F.huber_loss(h, a)
F.cross_entropy(h, t)
F.nll_loss(h, t)
F.kl_div(h, a)
F.binary_cross_entropy_with_logits(h, a.sigmoid())
F.binary_cross_entropy(h.sigmoid(), a.sigmoid())
F.margin_ranking_loss(v, v, v)
F.cosine_embedding_loss(h, a, v.sign())
F.triplet_margin_loss(h, a, a)
F.hinge_embedding_loss(h, a.sign())
F.soft_margin_loss(h, a)
F.poisson_nll_loss(h, a)
F.layer_norm(h, (4,))
F.gelu(h)
F.dropout(h, 0.0)
F.max_pool2d(x.bfloat16(), 2)
F.avg_pool3d(x.bfloat16(), 2)
F.adaptive_avg_pool3d(x.bfloat16(), 1)
F.max_pool3d(x.bfloat16(), 2)
torch.cdist(h, a)
torch.linalg.inv(s.bfloat16())
torch.linalg.cholesky(s.bfloat16())
torch.linalg.solve(s.bfloat16(), v.bfloat16())
torch.linalg.qr(h)[0]
torch.linalg.svdvals(h)
torch.fft.fft(h)
torch.quantile(h, 0.5)
torch.index_copy(h, 0, t, h)
a.to(torch.bfloat16)
"""


def result(module: Any, line: str) -> tuple[str, Any]:
    """Return ("dtype", that of a line's result under autocast) or ("error", its class and text)."""
    arrays = {
        "a": data(4, 4),
        "b": data(4, 4, seed=1),
        "v": data(4),
        "x": data(1, 2, 4, 4),
        "w": data(2, 2, 3, 3),
    }
    names = {k: module.tensor(v) for k, v in arrays.items()}
    names["s"] = names["a"] @ names["a"].T + module.eye(4)
    names["h"] = names["a"].bfloat16()
    names["t"] = module.tensor([0, 3, 1, 2])
    with module.autocast("cpu"):
        try:
            value = eval(line, {"torch": module, "F": module.nn.functional, **names})
        except Exception as error:
            return "error", type(error).__name__ + str(error)
    return "dtype", dtype_name(value)


@pytest.mark.parametrize("line", lines(CALLS))
def test_dtypes(line: str) -> None:
    expected, found = result(th, line), result(ct, line)
    if expected[0] == "error" and "not implemented for" in expected[1]:
        return  # a dtype torch lacks may work here
    assert found == expected


def test_scaler() -> None:
    found = []
    for module in (ct, th):
        p = module.tensor(data(5)).requires_grad_()
        o = module.optim.Adam([p], lr=0.1)
        scaler = module.amp.GradScaler(
            "cpu", init_scale=4.0, growth_interval=2, backoff_factor=0.25
        )
        history = []
        for step in range(7):
            o.zero_grad()
            loss = (p * p).sum() * (float("nan") if step in (1, 4) else 1.0)
            scaler.scale(loss).backward()
            if step % 2:
                scaler.unscale_(o)
            scaler.step(o)
            scaler.update()
            history.append((scaler.state_dict(), [round(v, 4) for v in p.tolist()]))
        found.append(history)
    assert found[0] == found[1]


def test_steps_of_scaling() -> None:
    found = []
    for torch in (ct, th):
        scale, tracker = torch.tensor(8.0), torch.tensor(0, dtype=torch.int32)
        history = []
        for bad in (0.0, 1.0, 0.0, 0.0, 0.0, 0.0):
            made = torch._amp_update_scale_(scale, tracker, torch.tensor([bad]), 2.0, 0.25, 3)
            history.append((made is scale, scale.item(), tracker.item()))
        grads = [torch.ones(3), torch.arange(6.0).reshape(2, 3)[:, :2]]
        flag = torch.zeros(1)
        for _ in range(2):
            torch._amp_foreach_non_finite_check_and_unscale_(grads, flag, torch.tensor(0.5))
            history.append((flag.item(), [g.tolist() for g in grads]))
            grads[0][1] = float("inf")
        found.append(history)
    assert found[0] == found[1]


def test_sparse_gradients_are_unscaled() -> None:
    found = []
    for torch in (ct, th):
        table = torch.nn.Embedding(4, 2, sparse=True)
        o, scaler = torch.optim.SGD(table.parameters(), 0.1), torch.amp.GradScaler("cpu", 8.0)
        scaler.scale(table(torch.tensor([1, 1, 3])).sum()).backward()
        scaler.unscale_(o)
        found.append(
            (
                table.weight.grad.to_dense().tolist(),
                scaler._found_inf_per_device(o).popitem()[1].item(),
            )
        )
        half = table.half()
        half.weight.grad = torch.sparse_coo_tensor(
            [[1, 1]], [[6e4, 1.0], [6e4, 1.0]], (4, 2), dtype=torch.float16
        )
        flag, one = torch.zeros(()), torch.tensor(1.0)
        made = scaler._unscale_grads_(o, one, flag, True).popitem()[1].item()
        found.append((made, half.weight.grad.is_coalesced()))
    assert found[:2] == found[2:]
