"""Wide fits on an accelerator: seconds, share of its speed, and torch's own L-BFGS and cuML beside.

The rows are drawn on the device from a seed, in half precision: class centres, and noise whose covariance decays as
that of embeddings does, in no axes of its own, so that a part of the rows is on the wrong side. The floor printed is
that of one pass over the rows, 4·n·d·k operations at the rate that the device reaches in a square product of such
numbers.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from importlib import import_module
from typing import Annotated, Any

import typer

from benchmarks import data, report
from benchmarks.stagewise import mnist as views
from benchmarks.stagewise.curves import N_COMPONENTS, ROWS

TOL, TEST_ROWS = 1e-3, 65_536
ALPHAS = (1e-6, 1e-8)
VISITS = 2
"""Of each block of features of MNIST."""
SPREAD = 20.0
"""Length of the noise relative to a class centre; rows are divided by it."""


def main(
    device: Annotated[str, typer.Option(help="As torch calls it.")] = "cuda",
    rows: Annotated[int, typer.Option()] = 1_281_167,
    features: Annotated[int, typer.Option()] = 2048,
    classes: Annotated[int, typer.Option()] = 1000,
    dtype: Annotated[str, typer.Option(help="bfloat16, float16 or float32.")] = "bfloat16",
    alpha: Annotated[
        list[float] | None, typer.Option(help="Penalty of single fits; may be given several times. [1e-6, 1e-8]")
    ] = None,
    limit: Annotated[float, typer.Option(help="Seconds of each fit.")] = 120.0,
    peers: Annotated[bool, typer.Option(help="Also torch's L-BFGS and cuML.")] = True,
    path: Annotated[bool, typer.Option(help="Also a path of ten penalties.")] = True,
    mnist: Annotated[bool, typer.Option(help="Also stagewise fits of MNIST, where its files are.")] = True,
) -> None:
    """Fit softmax on synthetic embeddings to a relative gap of 1e-3, a path of ten penalties, and MNIST stagewise."""
    import torch

    from manyclass import GLMClassifier, GLMClassifierCV

    watch = Watch(torch, device)
    X, y = embeddings(torch, device, rows + TEST_ROWS, features, classes, getattr(torch, dtype))
    X, y, *test = X[:rows], y[:rows], X[rows:], y[rows:]
    rate = watch.products_a_second(X.dtype)
    race = Race(torch, watch, X, y, test, limit, floor=4.0 * rows * features * classes / rate)
    table = report.Table(
        f"{rows} × {features} {dtype}, {classes} classes, on {watch.name}",
        ["alpha", "fit", "seconds", "passes", "gap or distance", "test errors", "share of the device"],
        live=True,
    )
    race.table = table
    table.note(f"{rate / 1e12:.0f} Tflop/s in a square product: a pass takes {race.floor:.3g} s at least.")
    for number, penalty in enumerate(alpha or ALPHAS):
        if not number:
            race.fit("GLMClassifier, the first fit of a process", GLMClassifier(penalty, tol=TOL, max_time=limit))
        model = race.fit("GLMClassifier", GLMClassifier(penalty, tol=TOL, max_time=limit))
        if peers:
            race.torch_lbfgs("torch.optim.LBFGS", penalty, classes, best_of(model))
            torch.backends.cuda.matmul.allow_tf32 = True
            race.torch_lbfgs("torch.optim.LBFGS, tf32", penalty, classes, best_of(model))
            torch.backends.cuda.matmul.allow_tf32 = False
            race.cuml(penalty)
    if path:
        held = rows // 10
        search = GLMClassifierCV(10, cv=(X[:held], y[:held]), tol=TOL, max_time=limit)
        race.X, race.y = X[held:], y[held:]
        race.fit("GLMClassifierCV, 10 penalties, a tenth of the rows held out", search)
    table.publish("device")
    if mnist:
        stagewise(torch, watch, device)


def best_of(model: Any) -> float:
    """The objective that it ended with."""
    return float(model.history_[-1].objective)


class Watch:
    """Seconds until the device has done what was asked."""

    def __init__(self, torch: Any, device: str):
        self.torch, self.device = torch, device
        self.cuda = torch.device(device).type == "cuda"
        self.name = torch.cuda.get_device_name(device) if self.cuda else device

    def __call__(self, work: Callable[[], Any]) -> tuple[float, Any]:
        self._wait()
        started = time.perf_counter()
        result = work()
        self._wait()
        return time.perf_counter() - started, result

    def products_a_second(self, dtype: Any, size: int = 4096) -> float:
        """Operations, in the best of a few square products."""
        size = size if self.cuda else 1024
        A = self.torch.ones((size, size), dtype=dtype, device=self.device)
        return 2.0 * size**3 / min(self(lambda: A @ A)[0] for _ in range(4))

    def _wait(self) -> None:
        if self.cuda:
            self.torch.cuda.synchronize(self.device)


def embeddings(torch: Any, device: str, n: int, d: int, k: int, dtype: Any) -> tuple[Any, Any]:
    """Rows around class centres, balanced classes in random order, the noise of column j of variance 1/j, rotated."""
    random = torch.Generator(device=device).manual_seed(0)
    draw = partial(torch.randn, generator=random, device=device)
    centres = draw((k, d))
    centres /= torch.linalg.vector_norm(centres, dim=1, keepdim=True)
    spread = torch.arange(1, d + 1, device=device) ** -0.5
    spread *= SPREAD / torch.linalg.vector_norm(spread)
    axes = torch.linalg.qr(draw((d, d)))[0]
    y = torch.randperm(n, generator=random, device=device) % k
    X = torch.empty((n, d), dtype=dtype, device=device)
    for start in range(0, n, 1 << 16):
        part = y[start : start + (1 << 16)]
        X[start : start + len(part)] = ((centres[part] + (draw((len(part), d)) * spread) @ axes) / SPREAD).to(dtype)
    return X, y


class Race:
    """Fits to the same rows, and what they have come to in lines of a table."""

    def __init__(self, torch: Any, watch: Watch, X: Any, y: Any, test: list[Any], limit: float, floor: float):
        self.torch, self.watch, self.X, self.y, self.test = torch, watch, X, y, test
        self.limit, self.floor = limit, floor
        self.table: Any = None

    def fit(self, name: str, model: Any) -> Any:
        seconds, fitted = self.watch(lambda: model.fit(self.X, self.y))
        gap = f"gap {getattr(fitted, 'duality_gap_', float('nan')):.1e}"
        alpha = getattr(fitted, "alpha_", fitted.get_params().get("alpha"))
        self._add(alpha, name, seconds, fitted.n_passes_, gap, fitted.predict(self.test[0]))
        return fitted

    def torch_lbfgs(self, name: str, alpha: float, k: int, target: float) -> None:
        """Until torch's own solver has seen the same objective, block by block, or time is over."""
        torch, X, y = self.torch, self.X, self.y
        W = torch.zeros((X.shape[1], k), device=X.device, requires_grad=True)
        b = torch.zeros(k, device=X.device, requires_grad=True)
        # With fewer iterations at a time it forgets what it has learnt.
        solver = torch.optim.LBFGS([W, b], max_iter=20, history_size=10, line_search_fn="strong_wolfe")
        evaluations, step, n, best = 0, max(1, (1 << 28) // (4 * k)), len(X), float("inf")

        def closure() -> Any:
            # n times the objective: it keeps no pair whose product is below 1e-10, as all are of the mean of so many.
            nonlocal evaluations, best
            evaluations += 1
            solver.zero_grad()
            total = 0.5 * n * alpha * (W * W).sum()
            total.backward()
            total = total.detach()
            for start in range(0, n, step):
                scores = X[start : start + step].float() @ W + b
                loss = torch.nn.functional.cross_entropy(scores, y[start : start + step], reduction="sum")
                loss.backward()
                total = total + loss.detach()
            best = min(best, float(total) / n)
            if best <= target * (1.0 + TOL) or time.perf_counter() > deadline:
                raise StopIteration
            return total

        def until_there() -> None:
            with suppress(StopIteration):
                while True:
                    solver.step(closure)

        deadline = time.perf_counter() + self.limit
        seconds, _ = self.watch(until_there)
        with torch.no_grad():
            predicted = (self.test[0].float() @ W + b).argmax(dim=1)
        self._add(alpha, name, seconds, evaluations, f"{best / target - 1.0:+.1e} of ours", predicted)

    def cuml(self, alpha: float) -> None:
        """cuML's LogisticRegression on the same rows, in float32, where it is installed."""
        try:
            linear_model = import_module("cuml.linear_model")
        except ImportError:
            absent = "cuML is not installed here."
            if absent not in self.table.notes:
                self.table.note(absent)
            return
        model = linear_model.LogisticRegression(C=1.0 / (alpha * len(self.X)), max_iter=1000)
        seconds, _ = self.watch(lambda: model.fit(self.X.float(), self.y))
        predicted = self.torch.as_tensor(model.predict(self.test[0].float()), device=self.X.device)
        self._add(alpha, "cuML LogisticRegression", seconds, float("nan"), "its own tolerance", predicted)

    def _add(self, alpha: float, name: str, seconds: float, passes: float, distance: str, predicted: Any) -> None:
        wrong, share = float((predicted != self.test[1]).float().mean()), passes * self.floor / seconds
        numbers = f"{seconds:.2f}", f"{passes:.0f}", distance, f"{wrong:.1%}", f"{share:.0%}"
        self.table.add(f"{alpha:.2g}", name, *numbers)


def stagewise(torch: Any, watch: Watch, device: str) -> None:
    """On the rows that `benchmarks.stagewise.curves` calls views, which are made on the host."""
    table = report.Table(
        f"Calibrated stagewise least squares on MNIST (views) on {watch.name}",
        ["features", "visits", "seconds", "test error, %"],
        live=True,
    )
    if data.found_data_dir() is None:
        table.note("MNIST is not here; set MANYCLASS_DATA to the folder that holds it.")
        return
    kind = ROWS["views"]
    (X, y, X_test, y_test), preparing = kind.prepare(data.split("mnist"), 0)
    X, y, X_test, y_test = (
        torch.tensor(part, device=device) for part in (X.astype("f4"), y, X_test.astype("f4"), y_test)
    )
    made = partial(
        views.stagewise,
        X,
        N_COMPONENTS,
        bandwidth=kind.bandwidth,
        generator=kind.generator(kind.bandwidth),
        max_iter=VISITS,
    )
    first, _ = watch(lambda: made().fit(X, y))
    _, fitted = watch(lambda: made().fit(X, y))
    stages = N_COMPONENTS // views.BLOCK
    for number, (record, predicted) in enumerate(zip(fitted.history_, fitted.staged_predict(X_test), strict=True), 1):
        if number in (stages // 8, stages // 4, stages // 2) or number % stages == 0:
            wrong = float((predicted != y_test).float().mean())
            visit = -(-number // stages)
            table.add(record["n_features"], visit, f"{record.seconds:.2f}", f"{100 * wrong:.2f}")
    table.note(f"Rows as in stagewise_mnist_views.md; preparing them took another {preparing:.1f} s on the host.")
    table.note(f"The first fit of a process, which also loads what it calls, took {first:.2f} s.")
    table.publish("device_mnist")


if __name__ == "__main__":
    typer.run(main)
