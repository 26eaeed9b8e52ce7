"""Runs parquity (PyPI, 0.2.2) with marq as one of its engines: python benches/parquity_marq.py scan FILES --out FOLDER

parquity compares how readers interpret files. It knows its engines by a list, so that a copy of the package gets
one more entry, in a temporary folder.
"""

import importlib.util
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

ADAPTER = '''
from dataclasses import dataclass
from pathlib import Path

import marq
import pyarrow as pa

from .base import EngineIdentity, ProviderOperationError


@dataclass(frozen=True, slots=True)
class MarqEngine:
    identity: EngineIdentity

    def write(self, table: pa.Table, path: Path) -> None:
        try:
            marq.write(table, path)
        except marq.Error as error:
            raise ProviderOperationError(self.identity.name, "write", error) from error

    def read(self, path: Path) -> pa.Table:
        try:
            return marq.read(path).to_pyarrow()
        except marq.Error as error:
            raise ProviderOperationError(self.identity.name, "read", error) from error


def create_engine(version: str) -> MarqEngine:
    return MarqEngine(EngineIdentity("marq", version))
'''
ENTRY = '''CORE_ENGINE_DESCRIPTORS = (
    EngineDescriptor(
        name="marq", distribution="marq", import_name="marq", adapter_module="parquity.engines.marq",
        installation_hint="pip install marq", tier="core", reader=True, writer=True,
    ),'''


def main() -> int:
    spec = importlib.util.find_spec("parquity")
    if spec is None or spec.origin is None:
        sys.exit("parquity is not installed: pip install parquity==0.2.2")
    with tempfile.TemporaryDirectory() as folder:
        package = pathlib.Path(folder) / "parquity"
        shutil.copytree(pathlib.Path(spec.origin).parent, package)
        (package / "engines" / "marq.py").write_text(ADAPTER)
        engines = package / "engines" / "__init__.py"
        engines.write_text(engines.read_text().replace("CORE_ENGINE_DESCRIPTORS = (", ENTRY, 1))
        environment = {**os.environ, "PYTHONPATH": folder}
        return subprocess.call([sys.executable, "-m", "parquity", *sys.argv[1:]], env=environment)


if __name__ == "__main__":
    sys.exit(main())
