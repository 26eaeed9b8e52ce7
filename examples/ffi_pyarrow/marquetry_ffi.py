"""Streams of batches between pyarrow and the C functions of ffi_pyarrow.rs, without copies."""

import ctypes
import pathlib
import sys

import pyarrow as pa

# Five pointers: struct ArrowArrayStream.
Stream = ctypes.c_void_p * 5

NAMES = {"darwin": "libffi_pyarrow.dylib", "win32": "ffi_pyarrow.dll"}
BUILT = pathlib.Path(__file__).parents[2] / "target/debug/examples"


class Marquetry:
    def __init__(self, library=None):
        library = library or BUILT / NAMES.get(sys.platform, "libffi_pyarrow.so")
        self.c = ctypes.CDLL(str(library))
        for function in (self.c.marquetry_read, self.c.marquetry_write):
            function.argtypes = [ctypes.c_char_p, ctypes.c_void_p]
            function.restype = ctypes.c_void_p
        self.c.marquetry_free.argtypes = [ctypes.c_void_p]

    def _check(self, error):
        if error:
            text = ctypes.string_at(error).decode()
            self.c.marquetry_free(error)
            raise OSError(text)

    def read(self, path):
        """A pyarrow.RecordBatchReader of a Parquet file."""
        stream = Stream()
        self._check(self.c.marquetry_read(str(path).encode(), ctypes.addressof(stream)))
        return pa.RecordBatchReader._import_from_c(ctypes.addressof(stream))

    def write(self, path, batches):
        """Writes what has a stream: a table, a RecordBatchReader."""
        stream = Stream()
        pa.RecordBatchReader.from_stream(batches)._export_to_c(ctypes.addressof(stream))
        self._check(self.c.marquetry_write(str(path).encode(), ctypes.addressof(stream)))
