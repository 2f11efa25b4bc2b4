"""Wide fits on an accelerator: seconds, share of its speed, and torch's own L-BFGS and cuML beside.

The rows are drawn on the device from a seed: unit-norm class centres and noise, in half precision. The floor printed is
that of one pass over the rows, 4·n·d·k operations at the rate that the device reaches in a square product.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import Annotated, Any

import typer

from benchmarks import data, report

ALPHA, TOL = 1e-6, 1e-3
SPREAD = 1.0
"""Length of the noise relative to a class centre."""


def main(
    device: Annotated[str, typer.Option(help="As torch calls it.")] = "cuda",
    rows: Annotated[int, typer.Option()] = 1_281_167,
    features: Annotated[int, typer.Option()] = 2048,
    classes: Annotated[int, typer.Option()] = 1000,
    dtype: Annotated[str, typer.Option(help="bfloat16, float16 or float32.")] = "bfloat16",
    limit: Annotated[float, typer.Option(help="Seconds of each fit.")] = 120.0,
    path: Annotated[bool, typer.Option(help="Also a path of ten penalties.")] = True,
    mnist: Annotated[bool, typer.Option(help="Also stagewise fits of MNIST, where its files are.")] = True,
) -> None:
    """Fit softmax on synthetic embeddings to a relative gap of 1e-3, a path of ten penalties, and MNIST stagewise."""
    import torch

    from manyclass import GLMClassifier, GLMClassifierCV

    watch = Watch(torch, device)
    X, y = embeddings(torch, device, rows, features, classes, getattr(torch, dtype))
    rate = watch.products_a_second(X.dtype)
    one_pass = 4.0 * rows * features * classes / rate
    print(
        f"{rows} × {features} {dtype}, {classes} classes on {watch.name}; {rate / 1e12:.1f} Tflop/s in a square product"
    )
    print(f"floor of a pass: {one_pass:.3g} s")
    table = report.Table("Fits on a device", ["fit", "seconds", "passes", "gap", "share of the device"], live=True)

    def fit(name: str, model: Any) -> Any:
        seconds, fitted = watch(lambda: model.fit(X, y))
        gap = getattr(fitted, "duality_gap_", float("nan"))
        share = fitted.n_passes_ * one_pass / seconds
        table.add(name, f"{seconds:.2f}", f"{fitted.n_passes_:.0f}", f"{gap:.1e}", f"{share:.0%}")
        return fitted

    model = fit("GLMClassifier", GLMClassifier(ALPHA, tol=TOL, max_time=limit))
    target = model.history_[-1].objective
    seconds, reached = watch(lambda: torch_lbfgs(torch, X, y, classes, target, limit))
    table.add("torch.optim.LBFGS", f"{seconds:.2f}", reached[1], f"objective {reached[0]:.4f} (ours {target:.4f})", "")
    cuml(table, watch, X, y, limit)
    if path:
        held = rows // 10
        search = GLMClassifierCV(10, cv=(X[:held], y[:held]), tol=TOL, max_time=limit)
        X, y = X[held:], y[held:]
        fit("GLMClassifierCV, 10 penalties", search)
    if mnist:
        stagewise(torch, table, watch, device)
    table.publish("device")


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
    """Rows around unit-norm class centres, balanced classes in random order."""
    random = torch.Generator(device=device).manual_seed(0)
    centres = torch.randn((k, d), generator=random, device=device)
    centres /= torch.linalg.vector_norm(centres, dim=1, keepdim=True)
    y = torch.randperm(n, generator=random, device=device) % k
    X = torch.empty((n, d), dtype=dtype, device=device)
    for start in range(0, n, 1 << 16):
        part = y[start : start + (1 << 16)]
        noise = torch.randn((len(part), d), generator=random, device=device) * (SPREAD / d**0.5)
        X[start : start + len(part)] = (centres[part] + noise).to(dtype)
    return X, y


def torch_lbfgs(torch: Any, X: Any, y: Any, k: int, target: float, limit: float) -> tuple[float, int]:
    """The objective reached, and evaluations, by torch's own solver on the same objective, block by block."""
    W = torch.zeros((X.shape[1], k), device=X.device, requires_grad=True)
    b = torch.zeros(k, device=X.device, requires_grad=True)
    solver = torch.optim.LBFGS([W, b], max_iter=1, history_size=10, line_search_fn="strong_wolfe")
    deadline, evaluations = time.perf_counter() + limit, 0
    step = max(1, (1 << 28) // (4 * k))

    def closure() -> Any:
        nonlocal evaluations
        evaluations += 1
        solver.zero_grad()
        total = 0.5 * ALPHA * (W * W).sum()
        total.backward()
        for start in range(0, len(X), step):
            scores = (X[start : start + step] @ W.to(X.dtype)).float() + b
            loss = torch.nn.functional.cross_entropy(scores, y[start : start + step], reduction="sum") / len(X)
            loss.backward()
            total = total + loss.detach()
        return total.detach()

    value = float("inf")
    while value > target * (1.0 + 1e-3) and time.perf_counter() < deadline:
        value = float(solver.step(closure))
    return value, evaluations


def cuml(table: Any, watch: Watch, X: Any, y: Any, limit: float) -> None:
    """cuML's LogisticRegression on the same rows, in float32, where it is installed."""
    try:
        linear_model = import_module("cuml.linear_model")
    except ImportError:
        table.note("cuML is not installed here.")
        return
    model = linear_model.LogisticRegression(C=1.0 / (ALPHA * len(X)), max_iter=1000)
    seconds, _ = watch(lambda: model.fit(X.float(), y))
    table.add("cuML LogisticRegression", f"{seconds:.2f}", "", "its own tolerance", "")


def stagewise(torch: Any, table: Any, watch: Watch, device: str) -> None:
    from manyclass import StagewiseClassifier

    if data.found_data_dir() is None:
        table.note("MNIST is not here; set MANYCLASS_DATA to the folder that holds it.")
        return
    (X, y), (X_test, y_test) = (
        (torch.tensor(images, device=device), torch.tensor(labels, device=device))
        for images, labels in (data.mnist(part) for part in ("train", "test"))
    )
    for n_components in (16_384, 65_536):
        model = StagewiseClassifier(n_components=n_components, block_size=4096, loss="calibrated", random_state=0)
        seconds, fitted = watch(partial(model.fit, X, y))
        wrong = 1.0 - float((fitted.predict(X_test) == y_test).float().mean())
        table.add(f"StagewiseClassifier, {n_components} features", f"{seconds:.2f}", "", f"{wrong:.2%} errors", "")


if __name__ == "__main__":
    typer.run(main)
