"""Type checkers accept the package and what users write."""

from __future__ import annotations

import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).parent.parent


def test_mypy_is_strict() -> None:
    pytest.importorskip("mypy")
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "python/marq", "tests/typed"],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_pyright_has_nothing_to_say() -> None:
    pytest.importorskip("pyright")
    done = subprocess.run(
        [sys.executable, "-m", "pyright", "--pythonpath", sys.executable, "tests/typed"],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )
    if "nodeenv" in done.stderr or "node" in done.stderr and "0 errors" not in done.stdout:
        pytest.skip("pyright needs Node.js, which cannot be fetched here")
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_stub_names_what_the_module_has() -> None:
    import ast

    import marq._marq as native

    stub = ast.parse((ROOT / "python" / "marq" / "_marq.pyi").read_text())
    for node in stub.body:
        if isinstance(node, ast.ClassDef):
            for of in node.body:
                if isinstance(of, ast.FunctionDef) and of.name not in ("__init__", "__iter__", "__buffer__"):
                    assert hasattr(getattr(native, node.name), of.name), (node.name, of.name)
        elif isinstance(node, ast.FunctionDef):
            assert hasattr(native, node.name), node.name
