"""Libraries that write what npyfs reads, where they are installed."""

import importlib


def optional(name):
    """The module; None where it is not installed."""
    try:
        return importlib.import_module(name)
    except ImportError:
        return None
