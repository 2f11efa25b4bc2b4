"""The module of PyTorch that a model becomes, which is imported with PyTorch only."""

from typing import Any

import numpy as np
import torch

from manyclass.data.rows import to_numpy
from manyclass.export.program import Program, is_single, probabilities_of, scores_of, threshold_of


class Exported(torch.nn.Module):
    """Carries out the program of a model on its buffers (see `to_torch`)."""

    def __init__(self, model: Any, dtype: str) -> None:
        super().__init__()
        self.program = Program(dtype)
        self.scores = scores_of(self.program, model)
        self.is_classifier = hasattr(model, "classes_")
        self.multilabel = self.is_classifier and model.multilabel_
        self.threshold = threshold_of(model) if self.is_classifier else None
        self.is_single = self.is_classifier and is_single(model)
        self.classes = np.array(to_numpy(model.classes_)) if self.is_classifier else None
        self.part = len(self.program.nodes)
        self.probabilities = probabilities_of(self.program, model, self.scores) if self.is_classifier else None
        for name, array in self.program.constants.items():
            self.register_buffer(name, torch.tensor(array))

    def forward(self, X: Any) -> Any:
        return self._carried_out(X, self.part, self.scores)

    def predict_proba(self, X: Any) -> Any:
        if self.probabilities is None:
            raise AttributeError("This model gives scores but no probabilities.")
        return self._carried_out(X, None, self.probabilities)

    def predict(self, X: Any) -> Any:
        if self.threshold is not None:
            return (self.predict_proba(X) > self.threshold).long()
        Z = self(X)
        if not self.is_classifier:
            return Z
        if self.multilabel:
            return (Z > 0).long()
        return (Z[:, 0] > 0).long() if self.is_single else Z.argmax(dim=1)

    def _carried_out(self, X: Any, n_nodes: int | None, wanted: str) -> Any:
        buffers = dict(self.named_buffers())
        dtype = next(held.dtype for held in buffers.values() if held.is_floating_point())
        values = {"X": X.to(dtype), **buffers}
        for node in self.program.nodes[:n_nodes]:
            inputs = [values[name] for name in node.inputs]
            values[node.output] = OPERATORS[node.operator](torch, *inputs, **node.attributes)
        return values[wanted]


OPERATORS: dict[str, Any] = {
    "Add": lambda torch, a, b: a + b,
    "Sub": lambda torch, a, b: a - b,
    "Mul": lambda torch, a, b: a * b,
    "Div": lambda torch, a, b: a / b,
    "Pow": lambda torch, a, b: a**b,
    "Max": lambda torch, a, b: torch.maximum(a, b),
    "Min": lambda torch, a, b: torch.minimum(a, b),
    "MatMul": lambda torch, a, b: a @ b,
    "Cos": lambda torch, a: a.cos(),
    "Exp": lambda torch, a: a.exp(),
    "Relu": lambda torch, a: a.relu(),
    "Sigmoid": lambda torch, a: a.sigmoid(),
    "Softmax": lambda torch, a, axis: a.softmax(dim=axis),
    "Clip": lambda torch, a, low, high: torch.clamp(a, low, high),
    "Concat": lambda torch, *parts, axis: torch.cat(parts, dim=axis),
    "Gather": lambda torch, a, index, axis: a.index_select(axis, index),
    "CumSum": lambda torch, a, axis: a.cumsum(dim=int(axis)),
    "TopK": lambda torch, a, k, axis: a.topk(int(k[0]), dim=axis).values,
    "ReduceSum": lambda torch, a, axes, keepdims: a.sum(dim=axes.reshape(-1).tolist(), keepdim=bool(keepdims)),
    "ReduceMax": lambda torch, a, axes, keepdims: a.amax(dim=axes.reshape(-1).tolist(), keepdim=bool(keepdims)),
}
"""What PyTorch does for each operator."""
