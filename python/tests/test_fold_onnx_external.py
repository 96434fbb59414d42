"""External data of ONNX models: placement, refusals, size."""

import os
import pathlib
import shutil
import subprocess
import sys

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from onnx.external_data_helper import convert_model_to_external_data

import weightmill
from big_onnx import big_model, measured_fold
from onnx_engine import assert_same_results
from onnx_models import dequantized, model, value

BUGS = pathlib.Path(__file__).parents[3] / "shared" / "bugs"
PROGRAM = pathlib.Path(sys.executable).parent / "weightmill"


def weights_model(shape=(64, 48)):
    rng = np.random.default_rng(0)
    nodes, stored = dequantized(rng, "w", shape, "int8", "axis", 1)
    more_nodes, more_stored = dequantized(rng, "v", shape, "uint8", "tensor", zero_point=False)
    nodes += more_nodes + [helper.make_node("Sub", ["w", "v"], ["u"]), helper.make_node("MatMul", ["x", "u"], ["y"])]
    return model(nodes, stored + more_stored, [value("x", (1, shape[0]))], [value("y", (1, shape[1]))])


def save_external(made, path, location="weights.bin"):
    copy = onnx.ModelProto()
    copy.CopyFrom(made)
    convert_model_to_external_data(copy, location=location, size_threshold=0)
    onnx.save(copy, path)
    return path


def locations(path):
    stored = onnx.load(path, load_external_data=False).graph.initializer
    return {entry.name: {pair.key: pair.value for pair in entry.external_data} for entry in stored}


def test_inside_or_outside_gives_the_same_bytes(tmp_path, monkeypatch):
    made = weights_model()
    (tmp_path / "sub").mkdir()
    onnx.save(made, tmp_path / "inside.onnx")
    save_external(made, tmp_path / "sub" / "outside.onnx")
    monkeypatch.chdir("/")
    weightmill.fold(tmp_path / "inside.onnx", tmp_path / "a.onnx")
    weightmill.fold(tmp_path / "sub" / "outside.onnx", tmp_path / "b.onnx")
    assert (tmp_path / "a.onnx").read_bytes() == (tmp_path / "b.onnx").read_bytes()
    assert_same_results(tmp_path / "sub" / "outside.onnx", tmp_path / "b.onnx")
    assert sorted(path.name for path in tmp_path.rglob("*")) == [
        "a.onnx",
        "b.onnx",
        "inside.onnx",
        "outside.onnx",
        "sub",
        "weights.bin",
    ]


def test_always_puts_tensors_beside_the_model(tmp_path):
    made = weights_model()
    source, target = tmp_path / "in.onnx", tmp_path / "out.onnx"
    onnx.save(made, source)
    report = weightmill.fold(source, target, external_data="always")
    where = locations(target)
    assert where["w_q"]["location"] == where["v_q"]["location"] == "out.onnx.data"
    assert where["w_s"] == {}  # small: stays in the model
    assert report.bytes_after == target.stat().st_size + (tmp_path / "out.onnx.data").stat().st_size
    onnx.checker.check_model(str(target), full_check=True)
    assert_same_results(source, target)


def test_never_takes_external_data_inside(tmp_path):
    source = save_external(weights_model(), tmp_path / "in.onnx")
    target = tmp_path / "out.onnx"
    weightmill.fold(source, target, external_data="never")
    assert set(map(str, locations(target).values())) == {"{}"}
    assert_same_results(source, target)


def test_a_shared_region_is_written_once(tmp_path):
    shape = (64, 48)
    data = np.random.default_rng(1).normal(0, 1, shape).astype(np.float32)
    made = model(
        [helper.make_node("Add", ["a", "b"], ["y"])],
        [onnx.numpy_helper.from_array(data, "a"), onnx.numpy_helper.from_array(data, "b")],
        [],
        [value("y", shape)],
    )
    source, target = save_external(made, tmp_path / "in.onnx"), tmp_path / "out.onnx"
    tied = onnx.load(source, load_external_data=False)
    del tied.graph.initializer[1].external_data[:]
    tied.graph.initializer[1].external_data.extend(tied.graph.initializer[0].external_data)
    onnx.save(tied, source)
    weightmill.fold(source, target, external_data="always")
    assert (tmp_path / "out.onnx.data").stat().st_size == data.nbytes
    assert_same_results(source, target, {})


# Refusals


def edit(path, name, **entries):
    made = onnx.load(path, load_external_data=False)
    stored = next(entry for entry in made.graph.initializer if entry.name == name)
    del stored.external_data[:]
    for key, text in entries.items():
        stored.external_data.add(key=key, value=text)
    onnx.save(made, path)


def refused(path, *words):
    before = sorted(path.parent.rglob("*"))
    with pytest.raises(weightmill.Error) as error:
        weightmill.fold(path, path.parent / "out.onnx")
    assert error.value.code == "bad_file"
    for word in words:
        assert word in str(error.value)
    assert sorted(path.parent.rglob("*")) == before


SIZE = str(64 * 48 * 4)


@pytest.fixture
def external(tmp_path):
    folder = tmp_path / "model"
    folder.mkdir()
    return save_external(weights_model(), folder / "in.onnx")


def test_missing_file(external):
    edit(external, "w_w", location="nowhere.bin", offset="0", length=SIZE)
    refused(external, "w_w", "nowhere.bin", str(external.parent))


def test_file_too_short(external):
    (external.parent / "short.bin").write_bytes(bytes(1000))
    edit(external, "w_w", location="short.bin", offset="0", length=SIZE)
    refused(external, "w_w", SIZE + " bytes at offset 0", "short.bin has 1000")


def test_offset_behind_the_end(external):
    edit(external, "w_w", location="weights.bin", offset="18446744073709551615", length=SIZE)
    refused(external, "w_w", "offset 18446744073709551615")


@pytest.mark.parametrize("offset", ["-1", "abc", "1e3", "99999999999999999999", ""])
def test_malformed_offset(external, offset):
    edit(external, "w_w", location="weights.bin", offset=offset, length=SIZE)
    refused(external, "w_w", "offset is")


def test_length_that_contradicts_the_shape(external):
    edit(external, "w_w", location="weights.bin", offset="0", length="16")
    refused(external, "w_w", SIZE, "length 16")


@pytest.mark.parametrize("entries", [{}, {"length": "0"}])
def test_no_elements_take_no_bytes(external, entries):
    made = onnx.load(external, load_external_data=False)
    made.graph.initializer.append(TensorProto(name="none", data_type=TensorProto.FLOAT, dims=[0, 5]))
    made.graph.initializer[-1].data_location = TensorProto.EXTERNAL
    onnx.save(made, external)
    edit(external, "none", location="weights.bin", offset="0", **entries)
    weightmill.fold(external, external.parent / "out.onnx")
    folded = onnx.load(external.parent / "out.onnx")
    onnx.checker.check_model(folded)
    assert {entry.name: len(entry.raw_data) for entry in folded.graph.initializer}["none"] == 0


def test_length_where_there_are_no_elements(external):
    made = onnx.load(external, load_external_data=False)
    made.graph.initializer.append(TensorProto(name="none", data_type=TensorProto.FLOAT, dims=[0, 5]))
    made.graph.initializer[-1].data_location = TensorProto.EXTERNAL
    onnx.save(made, external)
    edit(external, "none", location="weights.bin", offset="0", length="4")
    refused(external, "none", "needs 0 bytes", "length 4")


def test_no_location(external):
    edit(external, "w_w", offset="0", length=SIZE)
    refused(external, "w_w", "location")


@pytest.mark.parametrize(
    "location",
    [
        "../secret.bin",
        "/etc/hostname",
        "a/../../secret.bin",
        "link.bin",
        "folder/secret.bin",
        "../model2/secret.bin",
        "./../secret.bin",
    ],
)
def test_file_outside_of_the_directory(external, location):
    outside = external.parent.parent
    (outside / "secret.bin").write_bytes(bytes(20000))
    (outside / "model2").mkdir()
    (outside / "model2" / "secret.bin").write_bytes(bytes(20000))
    (external.parent / "link.bin").symlink_to(outside / "secret.bin")
    (external.parent / "folder").symlink_to(outside)
    edit(external, "w_w", location=location, offset="0", length=SIZE)
    refused(external, "w_w", "outside the model's directory")


@pytest.mark.parametrize("location", [".", "folder"])
def test_no_regular_file(external, location):
    (external.parent / "folder").mkdir()
    edit(external, "w_w", location=location, offset="0", length=SIZE)
    refused(external, "is not a regular file")


def test_a_link_to_a_model_reads_beside_what_it_leads_to(external, tmp_path):
    """As download caches store models: the directory of links leads to one of contents."""
    links = tmp_path / "links"
    links.mkdir()
    (links / "in.onnx").symlink_to(external)
    (links / "weights.bin").symlink_to(external.parent / "weights.bin")
    weightmill.fold(links / "in.onnx", tmp_path / "out.onnx")
    assert_same_results(external, tmp_path / "out.onnx")


@pytest.mark.parametrize("name", ["in.onnx", "link.onnx", "sub/../in.onnx"])
def test_output_is_the_input(external, name):
    (external.parent / "sub").mkdir()
    (external.parent / "link.onnx").symlink_to(external)
    content = external.read_bytes()
    with pytest.raises(weightmill.Error, match="is a file of the input") as error:
        weightmill.fold(external, external.parent / name)
    assert error.value.code == "bad_option" and external.read_bytes() == content


def test_output_data_is_a_file_of_the_input(external):
    data = external.parent / "out.onnx.data"
    shutil.move(external.parent / "weights.bin", data)
    made = onnx.load(external, load_external_data=False)
    for entry in made.graph.initializer:
        for pair in entry.external_data:
            pair.value = data.name if pair.key == "location" else pair.value
    onnx.save(made, external)
    content = data.read_bytes()
    with pytest.raises(weightmill.Error, match="is a file of the input"):
        weightmill.fold(external, external.parent / "out.onnx", external_data="always")
    assert data.read_bytes() == content and not (external.parent / "out.onnx").exists()


def test_folder_that_does_not_exist(external, tmp_path):
    with pytest.raises(weightmill.Error) as error:
        weightmill.fold(external, tmp_path / "no" / "out.onnx")
    assert error.value.code == "bad_file"


def test_full_disk_leaves_nothing(external):
    """A limit on the size of files stands for a full disk: writes fail in the same place."""
    script = (
        "import resource, signal, sys, weightmill\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (2000, 2000))\n"
        "try:\n    weightmill.fold(sys.argv[1], sys.argv[2], external_data=sys.argv[3])\n"
        "except weightmill.Error as error:\n    print(error.code, error)\n"
    )
    before = sorted(external.parent.iterdir())
    for placement in ("never", "always"):
        done = subprocess.run(
            [sys.executable, "-c", script, external, external.parent / "out.onnx", placement],
            capture_output=True,
            text=True,
            check=True,
        )
        assert done.stdout.startswith("bad_file") and "out.onnx" in done.stdout
        assert sorted(external.parent.iterdir()) == before


# Known reports


@pytest.mark.skipif(not (BUGS / "13_external_data").is_dir(), reason="bugs/13_external_data not installed")
def test_report_13(tmp_path):
    """Its numbered lines, by the program, from another directory."""
    source = BUGS / "13_external_data" / "sub"
    files = sorted(path.name for path in source.iterdir())

    def fold(name, target):
        command = [PROGRAM, "fold", source / f"{name}.onnx", "-o", tmp_path / target, "--quiet"]
        done = subprocess.run(command, cwd="/", capture_output=True, text=True)
        return done.returncode, done.stderr

    # 1
    assert fold("ext", "a.onnx")[0] == fold("model", "b.onnx")[0] == 0
    assert (tmp_path / "a.onnx").read_bytes() == (tmp_path / "b.onnx").read_bytes()
    # 2, 3, 4: exit status 3 is that of a file that is not as it should be.
    for name, words in {
        "ext_missing": ("tensor w", "nowhere.bin", str(source)),
        "ext_short": ("tensor w", "4608 bytes at offset 0", "short.bin has 1000"),
        "ext_escape": ("tensor w", "outside the model's directory"),
    }.items():
        status, message = fold(name, "c.onnx")
        assert status == 3 and all(word in message for word in words), message
    # 6: no file is left, neither beside the output nor beside the input.
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.onnx", "b.onnx"]
    assert sorted(path.name for path in source.iterdir()) == files


def test_memory_does_not_grow_with_external_data(tmp_path):
    gib = 2.5 if os.environ.get("WEIGHTMILL_LONG") else 0.5
    extent = 8192 if gib == 2.5 else 4096
    source = big_model(tmp_path, 10 if gib == 2.5 else 8, extent, extent)
    target = tmp_path / "out.onnx"
    assert measured_fold(source, target)["peak_rss"] <= 256 << 20
    where = locations(target)
    assert all(entry["location"] == "out.onnx.data" for name, entry in where.items() if name.startswith("q"))
    assert (tmp_path / "out.onnx.data").stat().st_size < gib * 2**30 / 3.9


def test_memory_does_not_grow_with_a_large_model_file(tmp_path):
    """All tensors in one protobuf file of 0.5 GiB."""
    source = big_model(tmp_path, 8, 4096, 4096)
    weightmill.fold(source, tmp_path / "inside.onnx", external_data="never", compress_weights=False)
    (tmp_path / "big.bin").unlink()
    assert (tmp_path / "inside.onnx").stat().st_size > 2**29
    assert measured_fold(tmp_path / "inside.onnx", tmp_path / "out.onnx")["peak_rss"] <= 256 << 20
    assert not (tmp_path / "out.onnx.data").exists()
    assert len(onnx.load(tmp_path / "out.onnx").graph.initializer) == 17
