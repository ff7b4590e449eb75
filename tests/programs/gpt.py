"""A decoder-only transformer over `scaled_dot_product_attention` learns to continue a pattern."""

from __future__ import annotations

from typing import Any

import numpy as np

from .weights import start

KINDS, CONTEXT, WIDTH, HEADS, BATCH = 11, 12, 16, 2, 4


def model_of(torch: Any) -> Any:
    nn, F = torch.nn, torch.nn.functional

    class Attention(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.qkv = nn.Linear(WIDTH, 3 * WIDTH)
            self.out = nn.Linear(WIDTH, WIDTH)

        def forward(self, x: Any) -> Any:
            b, t, c = x.size()
            q, k, v = self.qkv(x).split(WIDTH, dim=2)
            q, k, v = (m.view(b, t, HEADS, c // HEADS).transpose(1, 2) for m in (q, k, v))
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
            return self.out(y.transpose(1, 2).contiguous().view(b, t, c))

    class Block(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
            self.attention = Attention()
            self.mlp = nn.Sequential(
                nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH), nn.Dropout(0.0)
            )

        def forward(self, x: Any) -> Any:
            x = x + self.attention(self.norm1(x))
            return x + self.mlp(self.norm2(x))

    class GPT(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.parts = nn.ModuleDict(
                {
                    "token": nn.Embedding(KINDS, WIDTH),
                    "place": nn.Embedding(CONTEXT, WIDTH),
                    "blocks": nn.ModuleList([Block(), Block()]),
                    "norm": nn.LayerNorm(WIDTH),
                }
            )
            self.head = nn.Linear(WIDTH, KINDS, bias=False)
            self.parts["token"].weight = self.head.weight  # tied

        def forward(self, x: Any) -> Any:
            y = self.parts["token"](x) + self.parts["place"](torch.arange(x.size(1)))
            for block in self.parts["blocks"]:
                y = block(y)
            return self.head(self.parts["norm"](y))

        @torch.no_grad()
        def generate(self, x: Any, count: int) -> Any:
            for _ in range(count):
                logits = self(x[:, -CONTEXT:])[:, -1, :]
                x = torch.cat((x, logits.argmax(-1, keepdim=True)), dim=1)
            return x

    return GPT()


def run(torch: Any, steps: int) -> list[float]:
    model = start(torch, model_of(torch))
    decay = [p for p in model.parameters() if p.dim() >= 2]
    plain = [p for p in model.parameters() if p.dim() < 2]
    optimizer = torch.optim.AdamW(
        [{"params": decay, "weight_decay": 0.1}, {"params": plain, "weight_decay": 0.0}],
        lr=1e-2,
        betas=(0.9, 0.95),
    )
    rng, losses = np.random.default_rng(0), []
    for step in range(steps):
        for group in optimizer.param_groups:
            group["lr"] = 1e-2 * min(1.0, (step + 1) / 4)
        begin = rng.integers(0, KINDS, (BATCH, 1))
        numbers = torch.tensor((begin + 3 * np.arange(CONTEXT + 1)) % KINDS)
        x, y = numbers[:, :-1], numbers[:, 1:]
        logits = model(x)
        loss = torch.nn.functional.cross_entropy(
            logits.view(-1, logits.size(-1)), y.reshape(-1), ignore_index=-1
        )
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        losses.append(loss.item())
    written = model.eval().generate(torch.tensor([[1]]), 3)
    assert written.shape == (1, 4)
    return losses
