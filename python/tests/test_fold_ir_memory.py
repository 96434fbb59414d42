"""Peak memory of the IR fold, in a process of its own."""

import pathlib
import shutil
import sys

import pytest

from big_onnx import measured_fold

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "bench"))
from big_ir import write_big_ir  # noqa: E402

LIMIT = 128 << 20
EXTENT = 4096  # a weight: 64 MiB of float32


# 4 GiB take about five seconds: most of it is the system filling its page cache with the file's holes.
@pytest.mark.parametrize("gib", [0.25, 4])
def test_memory_does_not_grow_with_the_model(tmp_path, gib):
    layers = int(gib * 16)
    needed = layers * EXTENT * EXTENT + (1 << 30)
    if shutil.disk_usage(tmp_path).free < needed:
        pytest.skip(f"needs {needed >> 20} MiB of disk")
    write_big_ir(tmp_path / "in.xml", layers, EXTENT, EXTENT, sparse=True)
    assert (tmp_path / "in.bin").stat().st_size >= gib * 2**30
    result = measured_fold(tmp_path / "in.xml", tmp_path / "out.xml")
    assert result["folded"] == layers and result["peak_rss"] <= LIMIT
    assert (tmp_path / "out.bin").stat().st_size < gib * 2**30 / 3.9


@pytest.mark.parametrize("semantics", ["strict", "openvino", "mo2021"])
def test_memory_does_not_grow_with_zero_points(tmp_path, semantics):
    """Zero points have the constant read twice."""
    layers = 8
    write_big_ir(tmp_path / "in.xml", layers, EXTENT, EXTENT, levels=256, symmetric=False, sparse=True)
    result = measured_fold(tmp_path / "in.xml", tmp_path / "out.xml", semantics=semantics)
    assert result["folded"] == layers and result["peak_rss"] <= LIMIT
