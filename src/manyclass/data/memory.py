"""How much memory there is, and how much of it one matrix may take."""

from __future__ import annotations

import os

MEMORY_SHARE = 0.5
"""Of the free memory that a method may ask for."""


def free_memory() -> float:
    """Bytes."""
    try:
        with open("/proc/meminfo", encoding="ascii") as file:
            fields = dict(line.split(":") for line in file)
        return 1024.0 * float(fields["MemAvailable"].split()[0])
    except (OSError, KeyError, ValueError):
        pages = getattr(os, "sysconf", lambda name: -1)("SC_AVPHYS_PAGES") if hasattr(os, "sysconf") else -1
        return float(pages * os.sysconf("SC_PAGE_SIZE")) if pages > 0 else 8e9


def room() -> float:
    """Bytes that a method may ask for."""
    return MEMORY_SHARE * free_memory()
