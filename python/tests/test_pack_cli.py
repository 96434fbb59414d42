"""pack, verify, inspect, codec and targets on real models, as a user types them: every difference is found, nothing is left half-written."""

import importlib.util
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
import safetensors.numpy

import weightmill

PROGRAM = pathlib.Path(sys.executable).parent / "weightmill"
MODELS = pathlib.Path(importlib.util.find_spec("pymicro_wakeword").origin).parent / "models"
NABU = MODELS / "okay_nabu.tflite"


def run(*arguments, **options) -> subprocess.CompletedProcess:
    return subprocess.run([PROGRAM, *map(str, arguments)], capture_output=True, text=True, timeout=120, **options)


@pytest.fixture(scope="module")
def packed(tmp_path_factory) -> pathlib.Path:
    folder = tmp_path_factory.mktemp("packed") / "nabu"
    result = run("pack", NABU, "--accelerator-config", "ethos-u55-128", "-o", folder)
    assert result.returncode == 0, result.stderr
    return folder


@pytest.mark.parametrize("model", sorted(MODELS.glob("*.tflite")), ids=lambda path: path.stem)
@pytest.mark.parametrize("accelerator", ["ethos-u55-32", "ethos-u65-512", "ethos-u85-128", "ethos-u85-2048"])
def test_packed_models_verify(model, accelerator, tmp_path):
    assert run("pack", model, "--accelerator-config", accelerator, "-o", tmp_path).returncode == 0
    result = run("verify", tmp_path, model, "--json")
    assert result.returncode == 0
    report = json.loads(result.stdout)
    assert report["identical"] and report["n_weights"] > 10_000 and report["n_findings"] == 0


def test_manifest_describes_the_blobs(packed):
    manifest = json.loads((packed / "manifest.json").read_text())
    blobs = safetensors.numpy.load_file(packed / "weights.safetensors")
    assert manifest["schema"] == "weightmill.packed/1" and manifest["source"]["file"] == "okay_nabu.tflite"
    for layer in manifest["layers"]:
        weights = blobs[layer["weights_blob"]]
        for depth_slice in layer["slices"]:
            for stream in depth_slice["streams"]:
                data = weights[stream["offset"] : stream["offset"] + stream["size_bytes"]].tobytes()
                assert stream["offset"] % 16 == 0 and len(data) == stream["size_bytes"]
                assert len(weightmill.decode(data)) == stream["n_ordered"]


def test_same_bytes_for_any_threads_folder_and_locale(packed, tmp_path):
    environment = {**os.environ, "LC_ALL": "de_DE.UTF-8", "LANG": "de_DE.UTF-8"}
    copy = tmp_path / "elsewhere" / "okay_nabu.tflite"
    copy.parent.mkdir()
    shutil.copy(NABU, copy)
    result = run("pack", copy, "--accelerator_config", "ethos-u55-128", "-o", "out", "--jobs", 7, cwd=tmp_path, env=environment)
    assert result.returncode == 0
    for name in ("manifest.json", "weights.safetensors"):
        assert (tmp_path / "out" / name).read_bytes() == (packed / name).read_bytes()


def test_any_flipped_bit_is_found(packed, tmp_path):
    blob = (packed / "weights.safetensors").read_bytes()
    start = 8 + int.from_bytes(blob[:8], "little")
    shutil.copytree(packed, tmp_path / "broken")
    for position in np.random.default_rng(1).integers(start, len(blob), 25):
        broken = bytearray(blob)
        broken[position] ^= 1 << (position % 8)
        (tmp_path / "broken" / "weights.safetensors").write_bytes(broken)
        result = run("verify", tmp_path / "broken", NABU)
        assert result.returncode == 1 and "differences" in result.stdout, position


def test_a_changed_manifest_is_found(packed, tmp_path):
    manifest = json.loads((packed / "manifest.json").read_text())
    shutil.copytree(packed, tmp_path / "broken")

    def verdict(change) -> int:
        copy = json.loads(json.dumps(manifest))
        change(copy["layers"][2])
        (tmp_path / "broken" / "manifest.json").write_text(json.dumps(copy))
        return run("verify", tmp_path / "broken", NABU).returncode

    assert verdict(lambda layer: None) == 0
    stream = lambda layer: layer["slices"][0]["streams"][0]
    assert verdict(lambda layer: stream(layer).update(n_ordered=stream(layer)["n_ordered"] + 1)) == 1
    assert verdict(lambda layer: stream(layer).update(offset=1 << 60)) == 1
    assert verdict(lambda layer: stream(layer)["geometry"].update(traversal="part_kernel_first")) == 1
    assert verdict(lambda layer: stream(layer)["geometry"].update(ofm_block_depth=0)) == 1
    assert verdict(lambda layer: stream(layer)["geometry"].update(ofm_block_depth=2**31 - 1, ofm_ublock_depth=2**31 - 1)) == 1
    assert verdict(lambda layer: layer["channels"]["bias"].__setitem__(3, 12345)) == 1
    assert verdict(lambda layer: layer["channels"]["shift"].__setitem__(0, 1)) == 1
    assert verdict(lambda layer: layer.update(ofm_scale=0.25)) == 1
    assert verdict(lambda layer: layer.update(same_as=99, weights_blob="layers.99.weights")) == 1
    assert verdict(lambda layer: layer.update(same_as=99)) == 3
    assert verdict(lambda layer: layer.update(ohwi=[64, 1, 64, 1])) == 1
    assert verdict(lambda layer: layer.update(weights={**layer["weights"], "tensor": 10**9})) == 1
    assert verdict(lambda layer: layer.update(slices=[])) == 1
    assert verdict(lambda layer: layer.update(zero_point=[5])) == 1
    assert verdict(lambda layer: layer.update(node=9)) == 1
    assert verdict(lambda layer: layer.update(op_name="DEPTHWISE_CONV_2D")) == 1
    assert verdict(lambda layer: layer["stride"].update(x=9)) == 1
    assert verdict(lambda layer: layer["weight_scale"].__setitem__(0, 0.5)) == 1
    assert verdict(lambda layer: layer.update(weights_blob="layers.0.weights")) == 3
    assert verdict(lambda layer: layer.pop("slices")) == 3
    assert verdict(lambda layer: layer.update(traversal="sideways")) == 3


def test_a_missing_layer_is_found(packed, tmp_path):
    manifest = json.loads((packed / "manifest.json").read_text())
    shutil.copytree(packed, tmp_path / "broken")
    for kept in (0, 14):
        (tmp_path / "broken" / "manifest.json").write_text(json.dumps({**manifest, "layers": manifest["layers"][:kept]}))
        result = run("verify", tmp_path / "broken", NABU)
        assert result.returncode == 1 and "no layer for its weights" in result.stdout


def test_another_model_is_found(packed):
    result = run("verify", packed, MODELS / "hey_jarvis.tflite")
    assert result.returncode == 1 and "SHA-256" in result.stdout


def test_without_the_model_the_manifest_is_checked(packed):
    result = run("verify", packed)
    assert result.returncode == 0 and "name the model" in result.stdout


def test_inspect_knows_models_and_packed_folders(packed):
    model = json.loads(run("inspect", NABU, "--json").stdout)
    assert model["schema"] == "weightmill.inspect/1" and len(model["weights"]) == 15
    table = json.loads(run("inspect", packed, "--json").stdout)
    assert table["schema"] == "weightmill.pack/1" and table["total"]["n_weights"] == 36480


def test_c_arrays_compile_and_hold_the_bytes(tmp_path):
    assert run("pack", NABU, "-o", tmp_path, "--c-array", "--accelerator-config", "ethos-u85-256").returncode == 0
    (tmp_path / "main.c").write_text(
        '#include <stdio.h>\n#include "weights.h"\n'
        "int main(void) { fwrite(weightmill_layer0_weights, 1, sizeof weightmill_layer0_weights, stdout); return 0; }\n"
    )
    subprocess.run(["gcc", "-std=c11", "-Wall", "-Werror", "main.c", "weights.c", "-o", "main"], cwd=tmp_path, check=True, timeout=60)
    out = subprocess.run([tmp_path / "main"], capture_output=True, check=True, timeout=10).stdout
    assert out == safetensors.numpy.load_file(tmp_path / "weights.safetensors")["layers.0.weights"].tobytes()


def test_targets_lists_all_accelerators():
    targets = json.loads(run("targets", "--json").stdout)["targets"]
    assert len(targets) == 11 and targets[0]["name"] == "ethos-u55-32"


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "int32", ">i2", "int64"])
def test_codec_is_the_identity(dtype, tmp_path):
    weights = np.random.default_rng(2).integers(0, 100, 3000).astype(dtype)
    np.save(tmp_path / "w.npy", weights)
    assert run("codec", "encode", tmp_path / "w.npy", "-o", tmp_path / "w.bin", "--effort", "regor").returncode == 0
    assert run("codec", "decode", tmp_path / "w.bin", "-o", tmp_path / "back.npy").returncode == 0
    back = np.load(tmp_path / "back.npy")
    assert back.dtype == np.int16 and (back == weights).all()


def test_codec_speaks_the_fast_format(tmp_path):
    weights = np.random.default_rng(3).integers(-3, 4, 1000).astype(np.int8)
    np.save(tmp_path / "w.npy", weights)
    assert run("codec", "encode", tmp_path / "w.npy", "-o", tmp_path / "w.bin", "--fast").returncode == 0
    assert run("codec", "decode", tmp_path / "w.bin", "-o", tmp_path / "b.npy", "--fast").returncode == 2
    assert run("codec", "decode", tmp_path / "w.bin", "-o", tmp_path / "b.npy", "--fast", "--count", 1000).returncode == 0
    assert (np.load(tmp_path / "b.npy") == weights).all()


def usage_errors(tmp_path):
    yield ["pack", NABU], 2, "--output"
    yield ["pack", NABU, "-o", tmp_path, "--accelerator-config", "ethos-u55-129"], 2, "did you mean ethos-u55-128"
    yield ["pack", NABU, "-o", tmp_path, "--acelerator-config", "x"], 2, "did you mean --accelerator-config"
    yield ["pack", NABU, "-o", tmp_path, "--effort", "regr"], 2, "did you mean regor"
    yield ["pack", NABU, "-o", tmp_path, "--ofm-block-depth", "-1"], 2, "--ofm-block-depth"
    yield ["pack", NABU, "-o", tmp_path, "--jobs", "many"], 2, "--jobs"
    yield ["pack", tmp_path / "missing.tflite", "-o", tmp_path / "x"], 3, "missing.tflite"
    yield ["pack", tmp_path, "-o", tmp_path / "x"], 3, "regular file"
    yield ["inspect", "/dev/null"], 3, "/dev/null"
    yield ["verify", tmp_path, NABU], 3, "manifest.json"
    yield ["codec", "encode", NABU, "-o", tmp_path / "x"], 3, "npy"
    yield ["codec", "decode", NABU, "-o", tmp_path / "x"], 3, "stream"


def test_wrong_input_is_named_and_nothing_is_written(tmp_path):
    for arguments, status, word in usage_errors(tmp_path):
        result = run(*arguments)
        assert result.returncode == status, (arguments, result)
        assert word in result.stderr and result.stderr.startswith("error: ") and not result.stdout, result.stderr
        assert list(tmp_path.iterdir()) == [], arguments


def test_weights_out_of_range_are_refused(tmp_path):
    np.save(tmp_path / "w.npy", np.array([1, 300], np.int16))
    result = run("codec", "encode", tmp_path / "w.npy", "-o", tmp_path / "w.bin")
    assert result.returncode == 3 and "300" in result.stderr and not (tmp_path / "w.bin").exists()


def test_truncated_models_are_refused(tmp_path):
    whole = NABU.read_bytes()
    for size in [0, 1, 7, 100, 5000, len(whole) // 2, len(whole) - 1]:
        (tmp_path / "t.tflite").write_bytes(whole[:size])
        result = run("pack", tmp_path / "t.tflite", "-o", tmp_path / "out")
        assert result.returncode == 3 and not (tmp_path / "out").exists(), size


def test_a_full_disk_leaves_no_half_file(tmp_path):
    out = tmp_path / "out"
    limited = ["bash", "-c", f'ulimit -f 8; exec "{PROGRAM}" pack "{NABU}" -o "{out}"']
    result = subprocess.run(limited, capture_output=True, text=True, timeout=60)
    assert result.returncode == 3 and "cannot be written" in result.stderr
    assert list(out.iterdir()) == []


def test_a_folder_that_cannot_be_made_is_named(tmp_path):
    (tmp_path / "file").write_text("x")
    result = run("pack", NABU, "-o", tmp_path / "file" / "out")
    assert result.returncode == 3 and "file" in result.stderr


def test_a_failed_pack_keeps_the_old_folder(packed, tmp_path):
    shutil.copytree(packed, tmp_path / "old")
    before = (tmp_path / "old" / "weights.safetensors").read_bytes()
    (tmp_path / "old" / "manifest.json").unlink()
    (tmp_path / "old" / "manifest.json").mkdir()
    assert run("pack", MODELS / "hey_jarvis.tflite", "-o", tmp_path / "old").returncode == 3
    assert (tmp_path / "old" / "weights.safetensors").read_bytes() == before


def test_pipes_and_the_model_itself_are_not_replaced(tmp_path):
    os.mkfifo(tmp_path / "weights.safetensors")
    assert run("pack", NABU, "-o", tmp_path).returncode == 3
    assert [path.name for path in tmp_path.iterdir()] == ["weights.safetensors"]
    (tmp_path / "weights.safetensors").unlink()
    shutil.copy(NABU, tmp_path / "weights.safetensors")
    result = run("pack", tmp_path / "weights.safetensors", "-o", tmp_path)
    assert result.returncode == 2 and "model itself" in result.stderr


def test_a_closed_stderr_is_no_crash():
    for redirection in ("2>&-", "2>/dev/full", ">&- 2>&-", ">/dev/full 2>/dev/full"):
        assert subprocess.run(["bash", "-c", f'"{PROGRAM}" inspect missing {redirection}'], timeout=30).returncode == 3
    assert subprocess.run(["bash", "-c", f'"{PROGRAM}" targets >/dev/full 2>/dev/full'], timeout=30).returncode == 3


def test_an_interrupt_leaves_nothing(tmp_path):
    np.save(tmp_path / "w.npy", np.random.default_rng(4).integers(-100, 100, 30_000_000).astype(np.int8))
    out = tmp_path / "out"
    out.mkdir()
    process = subprocess.Popen([PROGRAM, "codec", "encode", tmp_path / "w.npy", "-o", out / "w.bin"], stderr=subprocess.PIPE)
    time.sleep(0.1)
    process.send_signal(signal.SIGINT)
    status = process.wait(timeout=30)
    # A machine that is done within a tenth of a second has the whole file; every other has none.
    assert status in (-signal.SIGINT, 0)
    assert [path.name for path in out.iterdir()] == (["w.bin"] if status == 0 else [])


def test_python_packs_and_verifies(packed, tmp_path):
    result = weightmill.pack(NABU, accelerator="ethos-u55-128", output=tmp_path)
    assert result.manifest == json.loads((packed / "manifest.json").read_text())
    assert result.report["total"]["n_weights"] == 36480
    assert weightmill.verify(result, NABU)["identical"]
    assert weightmill.verify(tmp_path, NABU)["identical"]
    assert result.blob("layers.0.weights") == safetensors.numpy.load_file(tmp_path / "weights.safetensors")["layers.0.weights"].tobytes()
    with pytest.raises(weightmill.Error, match="no blob"):
        result.blob("layers.99.weights")
    with pytest.raises(weightmill.Error, match="did you mean"):
        weightmill.pack(NABU, accelerator="ethos-u55-127")
