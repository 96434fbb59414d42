"""Damaged OpenVINO IRs, given to the program: named, right exit status, input untouched, nothing half-written."""

import pathlib
import re
import resource
import signal
import subprocess
import sys

import numpy as np
import pytest

ov = pytest.importorskip("openvino")
from openvino import opset8 as op  # noqa: E402

PROGRAM = pathlib.Path(sys.executable).parent / "weightmill"
USAGE, BAD_FILE, UNSUPPORTED = 2, 3, 4


@pytest.fixture
def model(tmp_path):
    """A MatMul with fake-quantized weights, per channel."""
    x = op.parameter([1, 300], np.float32, name="x")
    weights = np.random.default_rng(0).normal(size=(200, 300)).astype(np.float32)
    high = np.abs(weights).max(axis=1, keepdims=True)
    quantized = op.fake_quantize(op.constant(weights), -high, high, -high, high, 255, name="fq")
    made = ov.Model([op.result(op.matmul(x, quantized, False, True, name="fc"))], [x])
    ov.serialize(made, str(tmp_path / "in.xml"))
    return tmp_path / "in.xml"


def fold(model, *options, output="out.xml", **how):
    """Exit status and message; nothing but a successful fold changes the folder."""
    folder = model.parent
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    command = [PROGRAM, "fold", model, "-o", folder / output, "--quiet", *options]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, **how)
    if done.returncode:
        assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
    return done.returncode, done.stderr


def edit(model, pattern, to):
    text, n = re.subn(pattern, to, model.read_text(), count=1, flags=re.DOTALL)
    assert n == 1, pattern
    model.write_text(text)


def edit_bin(model, offset, values):
    data = bytearray(model.with_suffix(".bin").read_bytes())
    patch = np.asarray(values, np.float32).tobytes()
    data[offset : offset + len(patch)] = patch
    model.with_suffix(".bin").write_bytes(data)


def layer_number(model, name):
    return re.search(rf'<layer id="(\d+)" name="{name}"', model.read_text()).group(1)


LIMITS = 4 * 200 * 300  # where input_low begins in the .bin


def test_the_model_itself_folds(model):
    assert fold(model, "--strict") == (0, "")


def test_missing_edge(model):
    number = layer_number(model, "fq")
    edit(model, rf'\s*<edge from-layer="\d+" from-port="0" to-layer="{number}" to-port="2" />', "")
    status, message = fold(model)
    assert status == BAD_FILE and "fq" in message


def test_wrong_number_of_ports(model):
    edit(model, r'(name="fq".*?)<port id="4" precision="FP32">.*?</port>', r"\1")
    status, message = fold(model)
    assert status == BAD_FILE and "fq" in message


def test_cycle(model):
    number, product = layer_number(model, "fq"), layer_number(model, "fc")
    edit(
        model,
        rf'<edge from-layer="\d+" from-port="0" to-layer="{number}" to-port="1" />',
        f'<edge from-layer="{product}" from-port="2" to-layer="{number}" to-port="1" />',
    )
    status, message = fold(model)
    assert status == BAD_FILE and "cycle" in message


@pytest.mark.parametrize("attribute", ["offset", "size"])
def test_constant_beyond_the_bin(model, attribute):
    edit(model, rf'{attribute}="\d+"', f'{attribute}="99999999"')
    status, message = fold(model)
    assert status == BAD_FILE and "in.bin" in message


def test_bin_too_short(model):
    data = model.with_suffix(".bin").read_bytes()
    model.with_suffix(".bin").write_bytes(data[:-5])
    status, message = fold(model)
    assert status == BAD_FILE and "in.bin" in message


def test_bin_missing(model):
    model.with_suffix(".bin").unlink()
    status, message = fold(model)
    assert status == BAD_FILE and "in.bin" in message


def test_xml_that_ends_early(model):
    model.write_text(model.read_text()[:900])
    status, message = fold(model)
    assert status == BAD_FILE and "in.xml" in message


def test_another_version_of_the_format(model):
    edit(model, 'version="11"', 'version="9"')
    status, message = fold(model)
    assert status == UNSUPPORTED and "9" in message


@pytest.mark.parametrize("levels", ["0", "-5", "1", "2", "257"])
def test_levels(model, levels):
    edit(model, 'levels="255"', f'levels="{levels}"')
    status, message = fold(model, "--strict")
    assert status == UNSUPPORTED and "fq" in message and "levels" in message
    assert fold(model)[0] == 0


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("offset", [LIMITS, LIMITS + 800])
def test_limits_that_are_no_numbers(model, value, offset):
    edit_bin(model, offset + 4, [value])
    status, message = fold(model, "--strict")
    assert status == UNSUPPORTED and "fq" in message and ("NaN" in message or "Inf" in message)


def test_weight_that_is_no_number(model):
    edit_bin(model, 40000, [np.nan])
    status, message = fold(model, "--strict")
    assert status == UNSUPPORTED and "fq: NaN in weights" in message


def test_infinite_weights_are_clamped(model):
    edit_bin(model, 40000, [np.inf, -np.inf])
    assert fold(model, "--strict") == (0, "")


def test_equal_limits(model):
    edit_bin(model, LIMITS + 4, [0.5])
    edit_bin(model, LIMITS + 800 + 4, [0.5])
    status, message = fold(model, "--strict")
    assert status == UNSUPPORTED and "fq: zero scale" in message


@pytest.mark.parametrize("output", ["in.xml", "./in.xml"])
def test_output_is_the_input(model, output):
    status, message = fold(model, output=output)
    assert status == USAGE and "is the input" in message


def test_folder_that_does_not_exist(model):
    status, message = fold(model, output="nowhere/out.xml")
    assert status == BAD_FILE and "out" in message


@pytest.mark.parametrize("size", [100, 5000, 60100])
def test_full_disk(model, size):
    """At the first block of codes, among them, and at the last constants or the .xml."""

    def small_files():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))

    status, message = fold(model, preexec_fn=small_files)
    assert status == BAD_FILE and "out" in message
