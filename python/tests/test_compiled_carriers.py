"""Vela's raw .npz, ExecuTorch's blob, pairs of files: squeezed through the program, and refused where they are broken."""

import os
import shutil
import subprocess
import sys
import zipfile
from io import BytesIO

import numpy as np
import pytest

import weightmill

pytest.importorskip("ai_edge_litert")

from carriers import blob_of, blocks_of, npz_of
from toy_compiled import toy_model, toy_parts

PROGRAM = shutil.which("weightmill", path=os.path.dirname(sys.executable))


def refused(data: bytes, code: str, reason: str | None = None) -> None:
    with pytest.raises(weightmill.Error, match=reason) as caught:
        weightmill.squeeze(data)
    assert caught.value.code == code


@pytest.mark.parametrize("form", ["string", "array"])
def test_npz_keeps_its_form_and_its_other_members(form):
    payload, read_only = toy_parts()
    small = weightmill.squeeze(npz_of(payload, read_only, form, scratch_shape=[4096]))
    assert small == npz_without_padding_of_sizes(npz_of(*weightmill.squeeze(payload, read_only), form, scratch_shape=[4096]), small)
    arrays = np.load(BytesIO(small))
    assert arrays["scratch_shape"].tolist() == [4096]
    assert arrays["cmd_data"].dtype.kind == ("S" if form == "string" else "u")
    assert zipfile.ZipFile(BytesIO(small)).testzip() is None


def npz_without_padding_of_sizes(wanted: bytes, found: bytes) -> bytes:
    """`found`, if both archives hold the same members with the same bytes in the same order."""
    a, b = zipfile.ZipFile(BytesIO(wanted)), zipfile.ZipFile(BytesIO(found))
    assert a.namelist() == b.namelist()
    assert all(a.read(name) == b.read(name) for name in a.namelist())
    return found


def test_refuses_broken_archives():
    payload, read_only = toy_parts()
    data = npz_of(payload, read_only)
    for size in range(4, len(data), 61):
        refused(data[:size], "bad_file")
    refused(data.replace(b"cmd_data", b"cmd_date"), "bad_file", "has no cmd_data.npy")
    at = data.index(b"COP1")
    refused(data[:at] + b"X" + data[at + 1 :], "bad_file", "cmd_data.npy: its checksum is wrong")
    end, directory = data.rindex(b"PK\5\6"), data.index(b"PK\1\2")
    local = [m.header_offset for m in zipfile.ZipFile(BytesIO(data)).infolist()]

    def patched(at: int, *change: int) -> bytes:
        return data[:at] + bytes(change) + data[at + len(change) :]

    refused(patched(end, 0), "bad_file", "the archive has no directory; it is truncated")
    refused(patched(end + 16, 0), "bad_file", "the archive's directory is broken")
    refused(patched(directory + 28, 255, 255), "bad_file", "not all in the archive|directory is broken")
    refused(patched(directory + 42, local[1] & 255, local[1] >> 8), "bad_file", "members of the archive overlap")
    refused(patched(directory + 24, 255, 255, 255), "bad_file", "a member at byte .* is not all in the archive")
    refused(patched(local[1], 0), "bad_file", "weight_data.npy: its header is broken")
    weight_entry = data.index(b"weight_data.npy", directory)
    refused(data[:weight_entry] + b"cmd_data.npy\0\0\0" + data[weight_entry + 15 :], "bad_file", "has no weight_data.npy")
    twice = BytesIO()
    with zipfile.ZipFile(twice, "w") as archive, pytest.warns(UserWarning, match="Duplicate name"):
        for name in ("cmd_data.npy", "weight_data.npy", "cmd_data.npy"):
            archive.writestr(name, b"x")
    refused(twice.getvalue(), "bad_file", "has two members cmd_data.npy")
    text = BytesIO()
    with zipfile.ZipFile(text, "w") as archive:
        archive.writestr("cmd_data.npy", b"no array")
        archive.writestr("weight_data.npy", b"no array")
    refused(text.getvalue(), "bad_file", "cmd_data.npy: is no .npy array")
    compressed = BytesIO()
    np.savez_compressed(compressed, cmd_data=np.array(payload), weight_data=np.array(read_only))
    refused(compressed.getvalue(), "unsupported", "is compressed; save it with numpy.savez")
    numbers = BytesIO()
    np.savez(numbers, cmd_data=np.arange(4), weight_data=np.array(read_only))
    refused(numbers.getvalue(), "bad_file", "cmd_data.npy: is neither a byte string nor an array of bytes")


def test_refuses_broken_blobs():
    blocks = blocks_of(*toy_parts())
    data = blob_of(blocks)
    assert weightmill.squeeze(data) == blob_of(blocks_of(*weightmill.squeeze(*toy_parts())))
    for size in range(16, len(data), 16):
        refused(data[:size], "bad_file")
    refused(blob_of(blocks[:1] + [(b"unknown", b"")] + blocks[1:]), "bad_file", "block at byte 32: has a name that is not known")
    refused(blob_of(blocks[:3] + blocks[2:]), "bad_file", "has 2 blocks weight_data")
    refused(blob_of(blocks[:1] + blocks[2:]), "bad_file", "has 0 blocks cmd_data")
    refused(blob_of(blocks + blocks[-1:]), "bad_file", "has 2 blocks vela_end_stream")
    refused(blob_of(blocks[:1] + blocks), "bad_file", "has 2 blocks vela_bin_stream")
    refused(blob_of(blocks[:-1] + [(b"vela_end_stream", b"x")]), "bad_file", "does not end with vela_end_stream")
    refused(data[:20], "bad_file", "block at byte 0: is truncated")
    refused(data[:20] + b"\1" + data[21:], "bad_file", "does not end with zeros")
    refused(data[:48] + b"\xff" * 4 + data[52:], "bad_file", "more than the file has left")


def run(*arguments) -> subprocess.CompletedProcess:
    return subprocess.run([PROGRAM, *map(str, arguments)], capture_output=True, text=True, timeout=60)


@pytest.mark.skipif(PROGRAM is None, reason="the program is not installed")
class TestProgram:
    def test_a_pair_of_files(self, tmp_path):
        payload, read_only = toy_parts()
        (tmp_path / "c").write_bytes(payload)
        (tmp_path / "w").write_bytes(read_only)
        done = run("squeeze", tmp_path / "c", "--weights", tmp_path / "w", "-o", tmp_path / "c2", "--weights-output", tmp_path / "w2")
        assert done.returncode == 0, done.stderr
        assert ((tmp_path / "c2").read_bytes(), (tmp_path / "w2").read_bytes()) == weightmill.squeeze(payload, read_only)

    def test_a_pair_in_place(self, tmp_path):
        parts = toy_parts()
        paths = tmp_path / "c", tmp_path / "w"
        for path, data in zip(paths, parts, strict=True):
            path.write_bytes(data)
        pair = (paths[0], "--weights", paths[1], "-o", paths[0], "--weights-output")
        refused = run("squeeze", *pair, tmp_path / "." / "c")
        assert refused.returncode == 2 and "both blobs would go there" in refused.stderr
        assert tuple(path.read_bytes() for path in paths) == parts
        assert run("squeeze", *pair, paths[1]).returncode == 0
        assert tuple(path.read_bytes() for path in paths) == weightmill.squeeze(*parts)
        assert sorted(os.listdir(tmp_path)) == ["c", "w"]

    def test_every_stream_is_listed(self, tmp_path):
        path = tmp_path / "m.tflite"
        path.write_bytes(toy_model().bytes())
        listed = run("squeeze", path, "--dry-run", "--streams").stdout.splitlines()
        assert listed[0].split() == ["operator", "op", "core", "offset", "weights", "bytes", "after", "passes", "after"]
        assert len([line for line in listed if line.startswith("subgraph 0, operator 0")]) == 2
        report = weightmill.squeeze(path)
        for key in ("passes_before", "passes_after"):
            assert sum(change[key] for change in report["stream_changes"]) == report[key] > 0
        for key in ("bytes_before", "bytes_after"):
            assert sum(change[key] for change in report["stream_changes"]) == report[f"stream_{key}"]
        rows = weightmill.inspect_compiled(path)["read_only_tensors"][0]["streams"]
        assert [(row["offset"], row["bytes"], row["passes"]) for row in rows] == [
            (change["offset"], change["bytes_before"], change["passes_before"]) for change in report["stream_changes"]]

    def test_in_place_and_again(self, tmp_path):
        path = tmp_path / "m.tflite"
        path.write_bytes(toy_model().bytes())
        assert "2 of 2 streams" in run("squeeze", path, "-o", path).stdout
        small = path.read_bytes()
        assert "not smaller; it stays as it is" in run("squeeze", path, "-o", path).stdout
        assert "not smaller; the output is a copy" in run("squeeze", path, "-o", tmp_path / "n.tflite").stdout
        assert path.read_bytes() == (tmp_path / "n.tflite").read_bytes() == small

    def test_verify_and_inspect(self, tmp_path):
        a, b, c = (tmp_path / name for name in ("a.tflite", "b.tflite", "c.bin"))
        a.write_bytes(toy_model().bytes())
        run("squeeze", a, "-o", b)
        c.write_bytes(blob_of(blocks_of(*toy_parts(seed=9))))
        assert run("verify", a, b).returncode == 0
        different = run("verify", a, c)
        assert different.returncode == 1 and "they differ" in different.stdout
        assert run("verify", a).returncode == 2
        assert run("inspect", a).stdout.count(" conv ") == 2

    @pytest.mark.parametrize(
        "data, status",
        [(b"", 3), (b"TFL", 3), (toy_model().bytes()[:500], 3), (toy_model().bytes().replace(b"ethos-u", b"ethos-x"), 4),
         (toy_model().bytes().replace(b"COP1", b"COP9"), 3), (blob_of(blocks_of(*toy_parts()))[:-32], 3)],
        ids=["empty", "short", "truncated", "foreign custom operator", "unknown payload", "blob without end"],
    )
    def test_bad_input_has_a_status_and_no_output(self, data, status, tmp_path):
        path = tmp_path / "in"
        path.write_bytes(data)
        done = run("squeeze", path, "-o", tmp_path / "out")
        assert done.returncode == status, done.stderr
        assert done.stderr.startswith("error: ") and not done.stdout
        assert os.listdir(tmp_path) == ["in"]

    def test_usage(self, tmp_path):
        for arguments in (["in"], ["in", "-o", "out", "--effort", "fastest"], ["in", "-o", "out", "--weights", "w"],
                          ["in", "-o", "out", "--weights-output", "w"]):
            assert run("squeeze", *arguments).returncode == 2
