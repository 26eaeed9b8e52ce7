"""Keys of encrypted files."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

__all__ = ["Decryption", "Encryption"]


@dataclass(frozen=True, kw_only=True, repr=False)
class Decryption:
    """Keys for reading.

    >>> import marq, io
    >>> out = io.BytesIO()
    >>> keys = marq.Encryption(footer_key=b"0123456789012345")
    >>> _ = marq.write(marq.read("trips.parquet", limit=10), out, encryption=keys)
    >>> marq.read(out, keys=marq.Decryption(footer_key=b"0123456789012345")).num_rows
    10
    """

    footer_key: bytes | None = None
    #: Keys by the dotted paths of columns.
    column_keys: Mapping[str, bytes] = field(default_factory=dict)
    aad_prefix: bytes | None = None
    #: Called with the path of a column (``None`` for the footer) and the key metadata in the file;
    #: returns the key, or ``None`` if there is none.
    retriever: Callable[[str | None, bytes | None], bytes | None] | None = None
    #: Whether files that are not encrypted are read, too.
    plaintext_files: bool = False
    #: Whether a plaintext footer is read without its signature being verified.
    unverified_footers: bool = False
    #: Whether pages that are not authenticated are read (AES_GCM_CTR_V1).
    unauthenticated_pages: bool = False

    def _native(self) -> dict[str, Any]:
        return {**self.__dict__, "column_keys": list(self.column_keys.items())}

    def __repr__(self) -> str:
        return f"<marq.Decryption with {len(self.column_keys)} column keys>"


@dataclass(frozen=True, kw_only=True, repr=False)
class Encryption:
    """What is encrypted, and with which keys: 16, 24 or 32 bytes each.

    With the key of the footer alone, everything is encrypted with it.
    """

    footer_key: bytes
    #: Keys by the dotted paths of columns; the others are in plain text, see ``encrypt_unlisted``.
    column_keys: Mapping[str, bytes] = field(default_factory=dict)
    footer_key_metadata: bytes | None = None
    plaintext_footer: bool = False
    aad_prefix: bytes | None = None
    store_aad_prefix: bool = False
    #: ``aes_gcm_v1``, or ``aes_gcm_ctr_v1``, whose pages are not authenticated.
    algorithm: str = "aes_gcm_v1"
    #: Whether columns without a key of their own are encrypted with that of the footer.
    encrypt_unlisted: bool = False

    def _native(self) -> dict[str, Any]:
        return {**self.__dict__, "column_keys": list(self.column_keys.items())}

    def __repr__(self) -> str:
        return f"<marq.Encryption with {len(self.column_keys)} column keys>"
