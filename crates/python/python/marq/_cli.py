"""The command ``marq``."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from subprocess import CompletedProcess


def main(args: Sequence[str] | None = None) -> int:
    """Runs the tool, and returns its exit code. From then on it handles the signals that end it."""
    from ._marq import command

    return command(["marq", *(sys.argv[1:] if args is None else args)])


def call(*args: str) -> CompletedProcess[bytes]:
    """Runs the tool in a process of its own. An exit code above 1 is an error, as is a message."""
    import subprocess

    from ._errors import Error

    done = subprocess.run([sys.executable, "-m", "marq", *args], capture_output=True, check=False)
    if done.returncode not in (0, 1, 4, 5) or (done.returncode == 1 and not done.stdout):
        raise Error(done.stderr.decode(errors="replace").strip())
    return done
