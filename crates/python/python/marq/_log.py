"""Messages to ``logging``, under the name ``marq``, if the program uses it."""

from __future__ import annotations

import sys
from typing import Any


def debug(text: str, *args: Any) -> None:
    """What is read or written: level DEBUG."""
    logging = sys.modules.get("logging")
    if logging is not None:
        logging.getLogger("marq").debug(text, *args)


def warning(text: str, *args: Any) -> None:
    """What was left out of a result: level WARNING."""
    import logging

    logging.getLogger("marq").warning(text, *args)
