#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes the encrypted files of testdata/encrypted with pyarrow: python3 testdata/generate_encrypted.py

Needs pyarrow==26.0.1. Keys and nonces are random, so that the files differ from run to run; keys.tsv has the keys of those that are here. All files hold
the 60 rows of table(): a file is right if it reads as plain.parquet does. The key management service of kms_*.parquet wraps a key by writing the
master key in front of it, in Base64: enough to show which key was wrapped with which.
"""
import base64
import os
import random

import pyarrow as pa
import pyarrow.parquet as pq
import pyarrow.parquet.encryption as pe

HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "encrypted")
MASTERS = {"kf": "MASTERKEY-FOOTER", "ka": "MASTERKEY-COLUMN", "kb": "MASTERKEY-OTHERS"}
wrapped = {}


class Kms(pe.KmsClient):
    def __init__(self, _config):
        pe.KmsClient.__init__(self)

    def wrap_key(self, key, master):
        wrapped[master] = key
        return base64.b64encode(MASTERS[master].encode() + key)

    def unwrap_key(self, text, master):
        data, prefix = base64.b64decode(text), MASTERS[master].encode()
        assert data.startswith(prefix)
        return data[len(prefix):]


def table():
    rng = random.Random(1)
    n = 60
    return pa.table({
        "id": pa.array(range(n), pa.int64()),
        "name": pa.array([None if i % 7 == 3 else f"name {i % 5}" for i in range(n)], pa.string()),
        "amount": pa.array([rng.random() for _ in range(n)], pa.float64()),
        "tags": pa.array([[f"t{j}" for j in range(i % 4)] for i in range(n)], pa.list_(pa.string())),
    })


def write(path, properties, **options):
    # Small pages, so that a chunk has several.
    options = {"write_page_index": True, "data_page_size": 64, "write_batch_size": 10, **options}
    with pq.ParquetWriter(os.path.join(HERE, path), table().schema, encryption_properties=properties, **options) as writer:
        writer.write_table(table(), row_group_size=30)


def connection():
    return pe.KmsConnectionConfig(kms_instance_url="https://never.followed.example")


def main():
    os.makedirs(HERE, exist_ok=True)
    rng = random.SystemRandom()
    rows = ["file\tfooter_key\tcolumn_keys\taad_prefix"]
    write("plain.parquet", None)
    for algorithm, short in (("AES_GCM_V1", "gcm"), ("AES_GCM_CTR_V1", "ctr")):
        for bits in (128, 192, 256):
            for plaintext in (False, True):
                footer_name = "signed" if plaintext else "encrypted"
                version = {"data_page_version": "2.0" if bits == 192 else "1.0", "compression": "zstd" if bits == 256 else "snappy"}
                key = rng.randbytes(bits // 8)
                prefix = f"prefix {bits}"
                name = f"{short}_{bits}_{footer_name}_uniform.parquet"
                properties = pe.create_encryption_properties(
                    key, aad_prefix=prefix.encode(), store_aad_prefix=bits == 192, encryption_algorithm=algorithm, plaintext_footer=plaintext)
                write(name, properties, **version)
                rows.append(f"{name}\t{key.hex()}\t\t{'' if bits == 192 else prefix}")
                name = f"{short}_{bits}_{footer_name}_columns.parquet"
                conf = pe.EncryptionConfiguration(
                    footer_key="kf", column_keys={"ka": ["name"], "kb": ["amount", "tags.list.element"]}, encryption_algorithm=algorithm,
                    plaintext_footer=plaintext, data_key_length_bits=bits, double_wrapping=False)
                write(name, pe.CryptoFactory(Kms).file_encryption_properties(connection(), conf), **version)
                # Each column has a key of its own, and the service saw the last one of a master key: kms_*.parquet has columns that share one.
                rows.append(f"{name}\tkms\t\t")
    for double in (False, True):
        for internal in (False, True):
            name = f"kms_{'double' if double else 'single'}_{'internal' if internal else 'external'}.parquet"
            conf = pe.EncryptionConfiguration(
                footer_key="kf", column_keys={"ka": ["name"], "kb": ["amount", "tags.list.element"]}, double_wrapping=double,
                internal_key_material=internal, data_key_length_bits=128)
            properties = pe.CryptoFactory(Kms).file_encryption_properties(connection(), conf, os.path.join(HERE, name))
            write(name, properties)
            rows.append(f"{name}\tkms\t\t")
    with open(os.path.join(HERE, "keys.tsv"), "w") as out:
        out.write("\n".join(rows) + "\n")


main()
