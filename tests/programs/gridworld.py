"""Deep Q-learning on a small grid: replay memory, a slow target network, clipped gradients."""

from __future__ import annotations

import math
import random
from collections import deque
from typing import Any, NamedTuple

import numpy as np

from .weights import start

SIDE, BATCH, GAMMA, TAU = 3, 16, 0.9, 0.05
MOVES = np.array([(-1, 0), (1, 0), (0, -1), (0, 1)])


class Transition(NamedTuple):
    state: Any
    action: Any
    next_state: Any
    reward: Any


class Grid:
    """A walker on a square: a step costs 0.1, the far corner gives 1 and ends the episode."""

    def __init__(self, rng: np.random.Generator) -> None:
        self.rng = rng

    def reset(self) -> np.ndarray:
        self.place = self.rng.integers(0, SIDE, 2)
        self.place[0] = 0
        return self.seen()

    def seen(self) -> np.ndarray:
        return np.concatenate([np.eye(SIDE)[v] for v in self.place]).astype(np.float32)

    def step(self, action: int) -> tuple[np.ndarray, float, bool]:
        self.place = np.clip(self.place + MOVES[action], 0, SIDE - 1)
        done = bool((self.place == SIDE - 1).all())
        return self.seen(), 1.0 if done else -0.1, done


def model_of(torch: Any) -> Any:
    nn, F = torch.nn, torch.nn.functional

    class DQN(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer1 = nn.Linear(2 * SIDE, 16)
            self.layer2 = nn.Linear(16, 16)
            self.layer3 = nn.Linear(16, len(MOVES))

        def forward(self, x: Any) -> Any:
            return self.layer3(F.relu(self.layer2(F.relu(self.layer1(x)))))

    return DQN()


def run(torch: Any, steps: int) -> list[float]:
    rng, dice = np.random.default_rng(5), random.Random(5)
    policy, target = start(torch, model_of(torch)), model_of(torch)
    target.load_state_dict(policy.state_dict())
    optimizer = torch.optim.AdamW(policy.parameters(), lr=5e-3, amsgrad=True)
    memory: deque[Transition] = deque(maxlen=200)
    grid, losses = Grid(rng), []

    def select_action(state: Any, taken: int) -> Any:
        if dice.random() > 0.1 + 0.9 * math.exp(-taken / 20):
            with torch.no_grad():
                return policy(state).max(1).indices.view(1, 1)
        return torch.tensor([[dice.randrange(len(MOVES))]], dtype=torch.long)

    def optimize() -> float:
        batch = Transition(*zip(*dice.sample(list(memory), BATCH), strict=True))
        alive = torch.tensor([s is not None for s in batch.next_state], dtype=torch.bool)
        next_states = torch.cat([s for s in batch.next_state if s is not None])
        values = policy(torch.cat(batch.state)).gather(1, torch.cat(batch.action))
        next_values = torch.zeros(BATCH)
        with torch.no_grad():
            next_values[alive] = target(next_states).max(1).values
        expected = next_values * GAMMA + torch.cat(batch.reward)
        loss = torch.nn.SmoothL1Loss()(values, expected.unsqueeze(1))
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_value_(policy.parameters(), 100)
        optimizer.step()
        return loss.item()

    state, taken = torch.tensor(grid.reset()).unsqueeze(0), 0
    while len(losses) < steps:
        action = select_action(state, taken)
        observation, reward, done = grid.step(action.item())
        seen = None if done else torch.tensor(observation).unsqueeze(0)
        memory.append(Transition(state, action, seen, torch.tensor([reward])))
        state, taken = (torch.tensor(grid.reset()).unsqueeze(0) if done else seen), taken + 1
        if len(memory) >= BATCH:
            losses.append(optimize())
            followed, leading = target.state_dict(), policy.state_dict()
            for key in leading:
                followed[key] = leading[key] * TAU + followed[key] * (1 - TAU)
            target.load_state_dict(followed)
    return losses
