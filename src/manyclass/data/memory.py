"""How much memory there is, and how much of it may be used."""

import math
import os
import re
from functools import cache
from typing import Any

MEMORY_SHARE = 0.5
"""Of the free memory that is used where no limit is given."""
WORK_SHARE = 0.6
"""Of a limit that is given, what is not for chunks of rows and what is made of them."""
UNKNOWN_GIB = 8
"""Of a device that does not tell its memory."""
MOST = 2.0**62
"""Of a limit, which may be infinite: sizes that follow from it are whole numbers."""
_UNITS = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}
_UNITS |= {"KI": 1 << 10, "MI": 1 << 20, "GI": 1 << 30, "TI": 1 << 40}


def free_memory() -> float:
    """Bytes."""
    try:
        with open("/proc/meminfo", "rb", buffering=0) as file:
            available = file.read(1 << 12).partition(b"MemAvailable:")[2].split(maxsplit=1)[0]
        return 1024.0 * float(available)
    except (OSError, IndexError, ValueError):
        pages = os.sysconf("SC_AVPHYS_PAGES") if "SC_AVPHYS_PAGES" in getattr(os, "sysconf_names", ()) else -1
        return float(pages * os.sysconf("SC_PAGE_SIZE")) if pages > 0 else 8e9


def room_for(limit: float | None) -> float:
    """The bytes that a method may ask for beside X, with a limit in bytes or without."""
    return MEMORY_SHARE * free_memory() if limit is None else WORK_SHARE * limit


def require(n_bytes: float, limit: float | None, what: str, advice: str) -> float:
    """`room_for` it, or a refusal of what takes more, before it is made."""
    room = room_for(limit)
    if n_bytes > room:
        of_all = f"half of the {told(room / MEMORY_SHARE)} that are free"
        of_limit = f"{WORK_SHARE:.0%} of the memory limit of {told(room / WORK_SHARE)}"
        which = of_all if limit is None else of_limit
        raise MemoryError(f"{what} would take {told(n_bytes)} beside X, more than {which}; {advice}.")
    return room


@cache
def times_as_large(device: Any) -> int:
    """Blocks on a device, in units of those on a processor: one for each GiB of its memory.

    Every block costs a launch of all its kernels there, and a short one leaves most of the device idle.
    """
    if hasattr(device, "mem_info"):  # CuPy's
        return max(int(device.mem_info[1] / 2**30), 1)
    kind = getattr(device, "type", "cpu")
    if kind == "cuda":
        import torch

        return max(int(torch.cuda.get_device_properties(device).total_memory / 2**30), 1)
    return 1 if kind == "cpu" else UNKNOWN_GIB


def device_name(device: Any) -> str:
    """What tells a device from others of other speed."""
    if getattr(device, "type", "") == "cuda":
        import torch

        return str(torch.cuda.get_device_name(device))
    return str(device)


def as_bytes(limit: float | str | None) -> float:
    """A limit given as a number of bytes or as text such as "1.5GB"; without one a share of the free memory."""
    if limit is None:
        return MEMORY_SHARE * free_memory()
    number = math.nan
    if isinstance(limit, str):
        found = re.fullmatch(r"\s*(\d+\.?\d*|\.\d+)\s*([KMGT]?I?)B?\s*", limit.upper())
        number = float(found[1]) * _UNITS.get(found[2], math.nan) if found else math.nan
    elif not isinstance(limit, bool):
        number = float(limit)
    if not number > 0:
        raise ValueError(f"memory_limit={limit!r} is no amount of memory; give a number of bytes, or text as '2GB'.")
    return min(number, MOST)


def told(n_bytes: float) -> str:
    """An amount of memory for a sentence."""
    units = ((1e9, "GB"), (1e6, "MB"), (1e3, "kB"), (1.0, "bytes"))
    unit, name = next((one for one in units if n_bytes >= one[0]), units[-1])
    return f"{n_bytes / unit:.3g} {name}"
