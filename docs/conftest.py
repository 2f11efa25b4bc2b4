"""Pages are tested where what they show is installed."""

from importlib.util import find_spec

collect_ignore = [] if find_spec("torch") else ["guide/gpu.md", "guide/serving.md"]
