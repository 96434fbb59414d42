"""The carriers of compiled models other than TFLite, written from their description."""

import struct
from io import BytesIO

import numpy as np


def npz_of(payload: bytes, read_only: bytes, form: str = "string", **more) -> bytes:
    """What Vela's raw output looks like: byte strings from one of its cores, arrays of bytes from the other."""
    make = np.array if form == "string" else lambda data: np.frombuffer(data, np.uint8)
    out = BytesIO()
    np.savez(out, cmd_data=make(payload), weight_data=make(read_only), weight_region=np.array(0), **more)
    return out.getvalue()


def blocks_of(payload: bytes, read_only: bytes) -> list:
    """The blocks of the blob of ExecuTorch's Ethos-U backend."""
    return [(b"vela_bin_stream", b""), (b"cmd_data", payload), (b"weight_data", read_only), (b"scratch_size", struct.pack("<I", 4096)),
            (b"inputs", struct.pack("<i", 0)), (b"outputs", struct.pack("<i", 0)), (b"vela_end_stream", b"")]


def blob_of(blocks: list) -> bytes:
    """16-byte names, sizes, data filled up to 16 bytes."""
    return b"".join(
        name.ljust(16, b"\0") + struct.pack("<i12x", len(data)) + data + bytes(-len(data) % 16) for name, data in blocks
    )
