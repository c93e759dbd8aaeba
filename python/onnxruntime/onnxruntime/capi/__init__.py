"""Modules of onnxruntime that programs import by name."""
