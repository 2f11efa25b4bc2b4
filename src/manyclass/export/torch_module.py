"""The PyTorch module that a model becomes. Only `to_torch` imports this file, as it needs PyTorch."""

import operator
from typing import Any

import numpy as np
import torch

from manyclass.data.rows import to_numpy
from manyclass.export.program import Program, codes_of, probabilities_of, scores_of


class Exported(torch.nn.Module):
    """Runs the program of a model, whose constants are its buffers (see `to_torch`)."""

    def __init__(self, model: Any, dtype: str) -> None:
        super().__init__()
        self.program = Program(dtype)
        self.scores, self.classes, self.probabilities, self.codes = scores_of(self.program, model), None, None, None
        if hasattr(model, "classes_"):
            self.classes = np.array(to_numpy(model.classes_))
            self.probabilities = probabilities_of(self.program, model, self.scores)
            self.codes = codes_of(self.program, model, self.scores, self.probabilities)
        for name, array in self.program.constants.items():
            self.register_buffer(name, torch.tensor(array))

    def forward(self, X: Any) -> Any:
        return self._run(X, self.scores)

    def predict_proba(self, X: Any) -> Any:
        if self.probabilities is None:
            raise AttributeError("This model gives scores but no probabilities.")
        return self._run(X, self.probabilities)

    def predict(self, X: Any) -> Any:
        return self._run(X, self.codes or self.scores)

    def _run(self, X: Any, output: str) -> Any:
        buffers, needed = dict(self.named_buffers()), {output}
        for node in reversed(self.program.nodes):
            needed |= set(node.inputs) if node.output in needed else set()
        dtype = next(buffer.dtype for buffer in buffers.values() if buffer.is_floating_point())
        values = {"X": X.to(dtype), **buffers}
        for node in self.program.nodes:
            if node.output in needed:
                inputs = [values[name] for name in node.inputs]
                values[node.output] = OPERATORS[node.operator](*inputs, **node.attributes)
        return values[output]


OPERATORS: dict[str, Any] = {
    "Add": operator.add,
    "Sub": operator.sub,
    "Mul": operator.mul,
    "Div": operator.truediv,
    "Pow": operator.pow,
    "Max": torch.maximum,
    "Min": torch.minimum,
    "MatMul": operator.matmul,
    "Cos": torch.cos,
    "Exp": torch.exp,
    "Relu": torch.relu,
    "Sigmoid": torch.sigmoid,
    "Softmax": lambda a, axis: a.softmax(dim=axis),
    "Clip": torch.clamp,
    "Concat": lambda *parts, axis: torch.cat(parts, dim=axis),
    "Gather": lambda a, index, axis: a.index_select(axis, index),
    "CumSum": lambda a, axis: a.cumsum(dim=int(axis)),
    "ArgMax": lambda a, axis, keepdims: a.argmax(dim=axis, keepdim=bool(keepdims)),
    "Greater": operator.gt,
    "Cast": lambda a, to: a.long(),
    "Squeeze": lambda a, axes: a.squeeze(int(axes[0])),
    "TopK": lambda a, k, axis: a.topk(int(k[0]), dim=axis).values,
    "ReduceSum": lambda a, axes, keepdims: a.sum(dim=axes.reshape(-1).tolist(), keepdim=bool(keepdims)),
    "ReduceMax": lambda a, axes, keepdims: a.amax(dim=axes.reshape(-1).tolist(), keepdim=bool(keepdims)),
}
"""The operators of ONNX in PyTorch."""
