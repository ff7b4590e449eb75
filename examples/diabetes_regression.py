"""Predict the course of diabetes from ten measurements, beside scikit-learn's own models.

    python examples/diabetes_regression.py          # on cltensor's default device
    python examples/diabetes_regression.py --torch  # the same lines on torch

The 442 patients are scikit-learn's; a fifth, drawn by a seed, is held out. Least squares and ridge
regression are fitted by L-BFGS in float64 and reach scikit-learn's predictions; the perceptron is
trained by Adam for as many epochs as scikit-learn's. Predictions go to
examples/out/diabetes_regression.png.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from typing import Any

import numpy as np
from common import canvas, parser, report, save, start
from sklearn.datasets import load_diabetes
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LinearRegression, Ridge
from sklearn.neural_network import MLPRegressor
from tqdm import tqdm

if "--torch" in sys.argv:
    import torch
else:
    import cltensor as torch

nn = torch.nn
ALPHA = 20.0  # the weight of ridge regression's penalty


def split(seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, float]:
    """Return measurements and progressions for training, the held-out fifth, the progressions' unit.

    Training columns are scaled to mean 0 and variance 1, the held-out ones by the same numbers.
    """
    found = load_diabetes(scaled=False)
    order = np.random.default_rng(seed).permutation(len(found.target))
    x, y = found.data[order], found.target[order]
    fifth = len(order) // 5
    x = (x - x[fifth:].mean(0)) / x[fifth:].std(0)
    unit = y[fifth:].std()
    y = (y - y[fifth:].mean()) / unit
    return x[fifth:], y[fifth:], x[:fifth], y[:fifth], unit


def linear(x: torch.Tensor, y: torch.Tensor, alpha: float, bar: Any) -> nn.Module:
    """Minimise the squared error plus alpha times the squared weights; return the layer."""
    layer = nn.Linear(x.shape[1], 1, dtype=torch.float64)
    nn.init.zeros_(layer.weight)
    optimizer = torch.optim.LBFGS(
        layer.parameters(),
        max_iter=100,
        tolerance_grad=1e-10,
        tolerance_change=1e-14,
        line_search_fn="strong_wolfe",
    )

    def closure() -> torch.Tensor:
        optimizer.zero_grad()
        error = nn.functional.mse_loss(layer(x).squeeze(1), y, reduction="sum")
        loss = (error + alpha * layer.weight.square().sum()) / len(x)
        loss.backward()
        bar.update()
        return loss

    optimizer.step(closure)
    return layer


def perceptron(x: torch.Tensor, y: torch.Tensor, args: argparse.Namespace, bar: Any) -> nn.Module:
    """Train two layers on shuffled batches and return them."""
    model = nn.Sequential(nn.Linear(x.shape[1], args.hidden), nn.ReLU(), nn.Linear(args.hidden, 1))
    optimizer = torch.optim.Adam(model.parameters(), lr=args.lr, weight_decay=args.decay)
    dataset = torch.utils.data.TensorDataset(x, y)
    loader = torch.utils.data.DataLoader(dataset, args.batch, shuffle=True, drop_last=True)
    for _ in range(args.epochs):
        for batch_x, batch_y in loader:
            loss = nn.functional.mse_loss(model(batch_x).squeeze(1), batch_y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            bar.update()
    return model


def fitted(
    args: argparse.Namespace, x: np.ndarray, y: np.ndarray, test_x: np.ndarray
) -> tuple[dict[str, np.ndarray], int]:
    """Return the library's predictions for the held-out patients by model, and the steps taken."""
    wide = [torch.tensor(a, dtype=torch.float64) for a in (x, y, test_x)]
    single = [t.float() for t in wide]
    with tqdm(unit="step") as bar:
        models = {
            "linear": (linear(*wide[:2], 0.0, bar), wide[2]),
            "ridge": (linear(*wide[:2], ALPHA, bar), wide[2]),
            "perceptron": (perceptron(*single[:2], args, bar), single[2]),
        }
        steps = bar.n
    with torch.no_grad():
        predicted = {k: model(at).squeeze(1).cpu().numpy() for k, (model, at) in models.items()}
    return predicted, steps


def rivals(args: argparse.Namespace, x: np.ndarray, y: np.ndarray) -> dict[str, Any]:
    """Return scikit-learn's models of the same kinds, fitted."""
    models = {
        "linear": LinearRegression(),
        "ridge": Ridge(alpha=ALPHA),
        "perceptron": MLPRegressor(
            hidden_layer_sizes=(args.hidden,),
            batch_size=args.batch,
            alpha=args.decay * args.batch,
            learning_rate_init=args.lr,
            max_iter=args.epochs,
            n_iter_no_change=args.epochs + 1,
            random_state=args.seed,
        ),
    }
    with warnings.catch_warnings():  # that the perceptron stops after its epochs is meant
        warnings.simplefilter("ignore", ConvergenceWarning)
        return {name: model.fit(x, y) for name, model in models.items()}


def quality(predicted: np.ndarray, y: np.ndarray, unit: float) -> tuple[float, float]:
    """Return R² and the root of the mean squared error in the data's own unit."""
    error = np.square(predicted - y).mean()
    return 1 - error / y.var(), unit * float(np.sqrt(error))


def draw(args: argparse.Namespace, ours: dict[str, np.ndarray], y: np.ndarray) -> None:
    """Write predictions over what came, a panel per model."""
    figure = canvas(10, 3.6)
    for axes, (name, predicted) in zip(
        figure.subplots(1, len(ours), sharex=True, sharey=True), ours.items(), strict=True
    ):
        axes.scatter(y, predicted, s=12, alpha=0.7)
        axes.axline((0, 0), slope=1, color="gray", linewidth=0.8)
        axes.set(
            title=f"{name}, R² {quality(predicted, y, 1)[0]:.3f}", xlabel="progression, scaled"
        )
    figure.axes[0].set_ylabel("predicted")
    save(figure, args.picture)


def main() -> int:
    options = parser(
        __doc__, "diabetes_regression", epochs=60, batch=32, hidden=32, lr=2e-3, decay=0.05
    )
    args = options.parse_args()
    if args.quick:
        args.epochs = 1
    start(torch, args)
    x, y, test_x, test_y, unit = split(args.seed)
    ready = time.perf_counter()
    ours, steps = fitted(args, x, y, test_x)
    seconds = time.perf_counter() - ready
    theirs = {name: model.predict(test_x) for name, model in rivals(args, x, y).items()}
    draw(args, ours, test_y)

    print(f"{'model':14}{'R²':>8}{'RMSE':>8}{'scikit-learn R²':>18}{'RMSE':>8}")
    apart = 0.0
    for name, predicted in ours.items():
        r2, rmse = quality(predicted, test_y, unit)
        their_r2, their_rmse = quality(theirs[name], test_y, unit)
        print(f"{name:14}{r2:8.4f}{rmse:8.2f}{their_r2:18.4f}{their_rmse:8.2f}")
        if name != "perceptron":
            apart = max(apart, float(np.abs(predicted - theirs[name]).max()))
    report(
        torch,
        args,
        seconds,
        steps,
        largest_difference=f"{apart:.1e} between linear predictions and scikit-learn's",
    )
    return 0 if apart < 1e-4 else 1


if __name__ == "__main__":
    sys.exit(main())
