"""Reads a Parquet file into pyarrow, and writes a table of pyarrow."""

import pathlib
import tempfile

import pyarrow.compute as pc

from marquetry_ffi import Marquetry

marquetry = Marquetry()
trips = pathlib.Path(__file__).parents[2] / "testdata/trips.parquet"
table = marquetry.read(trips).read_all()
print(f"{table.num_rows} trips, {pc.sum(table['fare'])} in all")
with tempfile.TemporaryDirectory() as folder:
    path = f"{folder}/cheap.parquet"
    marquetry.write(path, table.filter(pc.less(table["fare"], 10)))
    print(f"{marquetry.read(path).read_all().num_rows} of them below 10")
