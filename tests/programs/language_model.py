"""A word-level language model: two LSTM layers, state that goes on, clipping, SGD by hand."""

from __future__ import annotations

from typing import Any

import numpy as np

from .weights import start

WIDTH, LAYERS, COLUMNS, WINDOW = 12, 2, 4, 5
WORDS = {"subject": ["cat", "dog", "bird", "child"], "verb": ["sees", "hears", "follows"]}


class Dictionary:
    def __init__(self) -> None:
        self.word2idx: dict[str, int] = {}
        self.idx2word: list[str] = []

    def add_word(self, word: str) -> int:
        if word not in self.word2idx:
            self.word2idx[word] = len(self.idx2word)
            self.idx2word.append(word)
        return self.word2idx[word]


def corpus(rng: np.random.Generator, sentences: int) -> tuple[Dictionary, list[int]]:
    """Return words of a small grammar and sentences in it, one after another, as numbers."""
    dictionary, ids = Dictionary(), []
    for _ in range(sentences):
        who, whom = rng.choice(WORDS["subject"], 2)
        for word in ["the", who, rng.choice(WORDS["verb"]), "the", whom, "<eos>"]:
            ids.append(dictionary.add_word(str(word)))
    return dictionary, ids


def model_of(torch: Any, kinds: int) -> Any:
    nn = torch.nn

    class RNNModel(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.encoder = nn.Embedding(kinds, WIDTH)
            self.rnn = nn.LSTM(WIDTH, WIDTH, LAYERS)
            self.decoder = nn.Linear(WIDTH, kinds)

        def forward(self, x: Any, hidden: Any) -> Any:
            output, hidden = self.rnn(self.encoder(x), hidden)
            scores = self.decoder(output).view(-1, kinds)
            return torch.nn.functional.log_softmax(scores, dim=1), hidden

        def init_hidden(self, columns: int) -> Any:
            weight = next(self.parameters())
            return tuple(weight.new_zeros(LAYERS, columns, WIDTH) for _ in range(2))

    return RNNModel()


def run(torch: Any, steps: int) -> list[float]:
    rng = np.random.default_rng(3)
    dictionary, ids = corpus(rng, 60)
    rows = len(ids) // COLUMNS
    data = torch.tensor(ids)[: rows * COLUMNS].view(COLUMNS, -1).t().contiguous()
    model = start(torch, model_of(torch, len(dictionary.idx2word)))
    criterion, losses = torch.nn.NLLLoss(), []
    hidden = model.init_hidden(COLUMNS)
    for step in range(steps):
        i = step * WINDOW % (rows - WINDOW - 1)
        source, target = data[i : i + WINDOW], data[i + 1 : i + 1 + WINDOW].view(-1)
        model.zero_grad()
        hidden = tuple(h.detach() for h in hidden)
        output, hidden = model(source, hidden)
        loss = criterion(output, target)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 0.5)
        for p in model.parameters():
            p.data.add_(p.grad, alpha=-2.0)
        losses.append(loss.item())
    return losses
