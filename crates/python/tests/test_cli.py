"""The command of the wheel is the tool."""

from __future__ import annotations

import json
import pathlib
import shutil
import subprocess
import sys

import marq
import pytest

EXECUTABLE = shutil.which("marq", path=str(pathlib.Path(sys.executable).parent)) or "marq"


def run(*args: str, **options: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(  # type: ignore[call-overload,no-any-return]
        [sys.executable, "-m", "marq", *args], capture_output=True, text=True, check=False, **options
    )


def test_the_command_and_the_module_are_one(trips: str) -> None:
    one = subprocess.run([EXECUTABLE, "count", trips], capture_output=True, text=True, check=True)
    assert one.stdout == run("count", trips).stdout and "1" in one.stdout


def test_it_says_its_version() -> None:
    assert marq.__version__ in run("--version").stdout


@pytest.mark.parametrize(
    ("args", "code"),
    [
        (["count", "TRIPS"], 0),
        (["count", "TRIPS", "--where", "id < 5"], 0),
        (["count", "/nowhere.parquet"], 1),
        (["count", "TRIPS", "--where", "nonsense <"], 2),
        (["--nonsense"], 2),
        (["count", "BROKEN"], 3),
    ],
)
def test_exit_codes_are_those_of_the_tool(
    args: list[str], code: int, trips: str, tmp_path: pathlib.Path
) -> None:
    broken = tmp_path / "broken.parquet"
    broken.write_bytes(b"PAR1 no footer PAR1")
    names = {"TRIPS": trips, "BROKEN": str(broken)}
    assert run(*[names.get(arg, arg) for arg in args]).returncode == code


def test_output_is_whole_when_it_is_long(trips: str) -> None:
    lines = run("cat", trips, "--format", "jsonl").stdout.splitlines()
    assert len(lines) == 1000 and json.loads(lines[-1])["id"] == 999


def test_a_pipe_that_closes_early_is_no_error(trips: str) -> None:
    command = f"'{sys.executable}' -m marq cat '{trips}' --format jsonl | head -n 1"
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=True)
    assert done.stdout.count("\n") == 1
    assert "Traceback" not in done.stderr and "panicked" not in done.stderr


def test_main_returns_the_code(trips: str) -> None:
    code = "import sys; from marq._cli import main; sys.exit(10 + main(['count', sys.argv[1]]))"
    done = subprocess.run([sys.executable, "-c", code, trips], capture_output=True, check=False)
    assert done.returncode == 10
