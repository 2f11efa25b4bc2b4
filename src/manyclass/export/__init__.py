"""Fitted models for other programs: ONNX, PyTorch and safetensors, without this package at prediction time."""

from manyclass.export.files import load_coefficients, save_coefficients
from manyclass.export.onnx import register_converters, to_onnx
from manyclass.export.torch import to_torch

__all__ = ["load_coefficients", "register_converters", "save_coefficients", "to_onnx", "to_torch"]
