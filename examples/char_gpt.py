"""Train a character-level GPT on Python's own standard library, then let it write.

    python examples/char_gpt.py                 # on cltensor's default device
    python examples/char_gpt.py --torch         # the same lines on torch

The text is that of the modules named below, read from where this Python keeps them; the last
tenth is held out. The loss curves go to examples/out/char_gpt.png, a sample to the terminal.
"""

from __future__ import annotations

import argparse
import math
import sys
import sysconfig
import time
from pathlib import Path

from common import canvas, parser, report, save, start
from tqdm import tqdm

if "--torch" in sys.argv:
    import torch
else:
    import cltensor as torch

nn, F = torch.nn, torch.nn.functional

MODULES = (
    "argparse ast calendar configparser csv datetime difflib doctest enum fractions functools "
    "gettext heapq inspect ipaddress mailbox optparse pathlib pdb pickle pprint random "
    "shutil statistics string subprocess tarfile textwrap threading traceback typing "
    "unittest/case uuid zipfile"
)


class Block(nn.Module):
    """Attention to what came before, then two linear layers, each added to what enters."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv = nn.Linear(width, 3 * width, bias=False)
        self.out = nn.Linear(width, width, bias=False)
        self.mlp = nn.Sequential(
            nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)
        )

    def attend(self, x: torch.Tensor) -> torch.Tensor:
        batch, length, width = x.shape
        q, k, v = (
            t.view(batch, length, self.heads, width // self.heads).transpose(1, 2)
            for t in self.qkv(x).chunk(3, dim=-1)
        )
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(mixed.transpose(1, 2).reshape(batch, length, width))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + self.attend(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class GPT(nn.Module):
    """Map characters (batch, length) to scores of the next one (batch, length, kinds)."""

    def __init__(self, kinds: int, context: int, width: int, heads: int, layers: int) -> None:
        super().__init__()
        self.context = context
        self.token, self.place = nn.Embedding(kinds, width), nn.Embedding(context, width)
        self.blocks = nn.Sequential(*(Block(width, heads) for _ in range(layers)))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, kinds, bias=False)
        self.apply(self.start)
        for block in self.blocks:  # what layers add to the stream stays small at any depth
            for out in (block.out, block.mlp[2]):
                nn.init.normal_(out.weight, std=0.02 / math.sqrt(2 * layers))

    @staticmethod
    def start(module: nn.Module) -> None:
        if isinstance(module, nn.Linear | nn.Embedding):
            nn.init.normal_(module.weight, std=0.02)
        if isinstance(module, nn.Linear) and module.bias is not None:
            nn.init.zeros_(module.bias)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        places = torch.arange(x.shape[1], device=x.device)
        return self.head(self.norm(self.blocks(self.token(x) + self.place(places))))

    @torch.no_grad()
    def write(self, x: torch.Tensor, count: int, temperature: float) -> torch.Tensor:
        """Append `count` characters, each drawn from the scores; windows have one size."""
        for _ in range(count):
            window = x[:, -self.context :]
            seen = window.shape[1]
            scores = self(F.pad(window, (0, self.context - seen)))[:, seen - 1]
            drawn = torch.multinomial((scores / temperature).softmax(-1), 1)
            x = torch.cat([x, drawn], dim=1)
        return x


class Text:
    """The modules' characters as numbers, and batches drawn from them."""

    def __init__(self, context: int) -> None:
        folder = Path(sysconfig.get_path("stdlib"))
        files = [f for name in MODULES.split() if (f := folder / f"{name}.py").exists()]
        text = "\n".join(f.read_text("utf-8") for f in files)
        text = "".join(c for c in text if c == "\n" or " " <= c <= "~")
        self.kinds = sorted(set(text))
        numbers = torch.tensor([*map({c: i for i, c in enumerate(self.kinds)}.get, text)])
        cut = len(numbers) * 9 // 10
        self.parts = {"training": numbers[:cut], "held out": numbers[cut:]}
        self.reach = torch.arange(context + 1)

    def encode(self, text: str) -> torch.Tensor:
        return torch.tensor([[self.kinds.index(c) for c in text]])

    def decode(self, numbers: torch.Tensor) -> str:
        return "".join(self.kinds[i] for i in numbers.tolist())

    def batch(self, part: str, count: int) -> tuple[torch.Tensor, torch.Tensor]:
        """Return characters (count, context) from random places, and those that follow each."""
        numbers = self.parts[part]
        begin = torch.randint(len(numbers) - len(self.reach), (count, 1))
        drawn = numbers[begin + self.reach]
        return drawn[:, :-1], drawn[:, 1:]


def loss_of(model: GPT, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return F.cross_entropy(model(x).flatten(0, 1), y.flatten())


def train(args: argparse.Namespace, text: Text) -> tuple[GPT, list[tuple[int, float, float]]]:
    model = GPT(len(text.kinds), args.context, args.width, args.heads, args.layers)
    matrices = [p for p in model.parameters() if p.dim() > 1]
    vectors = [p for p in model.parameters() if p.dim() == 1]
    groups = [{"params": matrices, "weight_decay": 0.1}, {"params": vectors, "weight_decay": 0.0}]
    optimizer = torch.optim.AdamW(groups, lr=args.lr, betas=(0.9, 0.98))
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, max_lr=args.lr, total_steps=args.steps, pct_start=0.1
    )
    curve, every = [], max(1, args.steps // 20)
    total = torch.zeros(())
    bar = tqdm(range(1, args.steps + 1), unit="step")
    for step in bar:
        loss = loss_of(model, *text.batch("training", args.batch))
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        total += loss.detach()
        if step % every == 0:
            with torch.no_grad():
                held_out = sum(
                    loss_of(model, *text.batch("held out", args.batch)) for _ in range(4)
                )
            curve.append((step, total.item() / every, held_out.item() / 4))
            total.zero_()
            bar.set_postfix(training=f"{curve[-1][1]:.3f}", held_out=f"{curve[-1][2]:.3f}")
    return model, curve


def draw(args: argparse.Namespace, curve: list[tuple[int, float, float]], sample: str) -> None:
    """Write the two curves beside the beginning of the sample."""
    figure = canvas(11, 4.5)
    axes, words = figure.subplots(1, 2)
    steps, training, held_out = zip(*curve, strict=True)
    axes.plot(steps, [v / math.log(2) for v in training], label="training")
    axes.plot(steps, [v / math.log(2) for v in held_out], label="held out")
    axes.set(xlabel="step", ylabel="bits per character")
    axes.legend()
    lines = [line[:72] for line in sample.splitlines()[:28]]
    words.text(0, 1, "\n".join(lines), family="monospace", fontsize=6.5, va="top", parse_math=False)
    words.axis("off")
    save(figure, args.picture)


def main() -> int:
    options = parser(
        __doc__, "char_gpt", steps=600, batch=24, context=64, width=96, heads=4, layers=3, lr=3e-3
    )
    options.add_argument("--prompt", default="\n    def ", help="what the sample begins with")
    options.add_argument(
        "--characters", type=int, default=400, help="how long the sample is (default: 400)"
    )
    args = options.parse_args()
    if args.quick:
        args.steps, args.batch, args.layers, args.characters = 4, 4, 1, 4
    start(torch, args)
    text = Text(args.context)
    ready = time.perf_counter()
    model, curve = train(args, text)
    seconds = time.perf_counter() - ready
    written = model.eval().write(text.encode(args.prompt), args.characters, 0.8)
    sample = text.decode(written[0])
    writing = time.perf_counter() - ready - seconds
    draw(args, curve, sample)
    print(sample)
    _, training, held_out = curve[-1]
    report(
        torch,
        args,
        seconds,
        args.steps,
        text=f"{sum(map(len, text.parts.values())):,} characters of {len(text.kinds)} kinds",
        parameters=f"{sum(p.numel() for p in model.parameters()):,}",
        loss_per_character=f"{training:.3f} nats in training, {held_out:.3f} held out",
        perplexity=f"{math.exp(held_out):.2f} held out",
        writing=f"{writing:.2f} s for {args.characters} characters",
    )
    return 0 if args.quick or held_out < 2.3 else 1


if __name__ == "__main__":
    sys.exit(main())
