"""Where glibc is told to give back what is freed, it keeps it while a task works."""

import json
import mmap
import os
import platform
import subprocess
import sys

import pytest

from manyclass.execution.dask import TRIM_VARIABLE

FAULTS = """
import json, resource
from contextlib import nullcontext
import numpy as np
from manyclass.execution.dask import memory_kept

def pages(context):
    with context:
        np.ones(1 << 17)
        before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
        for _ in range(50):
            np.ones(1 << 17)
        return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

with memory_kept():
    nested = pages(memory_kept()), pages(nullcontext())
print(json.dumps([pages(nullcontext()), pages(memory_kept()), *nested, pages(nullcontext())]))
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="needs glibc")
def test_pages_are_asked_for_once_while_it_lasts():
    """An array of 1 MiB, 50 times."""
    once = (1 << 20) // mmap.PAGESIZE

    def pages(told):
        environment = {name: value for name, value in os.environ.items() if not name.startswith("MALLOC_")} | told
        done = subprocess.run([sys.executable, "-c", FAULTS], env=environment, capture_output=True, check=True)
        return json.loads(done.stdout)

    before, *kept, after = pages({TRIM_VARIABLE: "65536"})
    assert min(before, after) > 40 * once and max(kept) < 2 * once
    assert max(pages({})) < 2 * once  # as it is where nobody is told
