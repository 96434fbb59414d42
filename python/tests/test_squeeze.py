"""Compiled models: squeezed, judged by Vela and LiteRT, in every carrier; and what must be refused."""

import json
import os
import zipfile
import zlib
from io import BytesIO
from pathlib import Path

import numpy as np
import pytest

import weightmill
from carriers import blob_of, blocks_of
from small_networks import NETWORKS as SMALL
from vela_tool import VELA, compile_with_vela, run_vela, stop_vela

MODELS = Path(os.environ.get("WEIGHTMILL_MODELS_DIR") or Path(__file__).parents[3] / "shared" / "models")
COMPILED = sorted((MODELS / "compiled").glob("*.tflite"))
LONG = os.environ.get("WEIGHTMILL_LONG") == "1"

needs_vela = pytest.mark.skipif(VELA is None, reason="vela is not installed: requirements/test.txt")
needs_models = pytest.mark.skipif(not COMPILED, reason="models/compiled not installed: set WEIGHTMILL_MODELS_DIR")
compiled = pytest.mark.parametrize("path", COMPILED or [None], ids=lambda p: p.stem if p else "none")


def squeeze_and_verify(path: Path, target: Path) -> dict:
    """Squeezes a file and holds the result against it."""
    report = weightmill.squeeze(path, target)
    assert target.stat().st_size == report["bytes_after"] <= report["bytes_before"] == path.stat().st_size
    assert weightmill.compare_compiled(path, target) is None
    assert weightmill.compare_compiled(target, path) is None
    return report


def rows_of(path: Path) -> list:
    """What must not change in the stream table."""
    same = ("op", "first_op", "core", "region", "weights", "zeros", "distinct", "uses", "format", "sparse", "crc32")
    tensors = weightmill.inspect_compiled(path)["read_only_tensors"]
    return [tuple(row[key] for key in same) for tensor in tensors for row in tensor["streams"]]


def assert_litert_accepts(data: bytes) -> None:
    """LiteRT verifies the flatbuffer before it builds a model of it."""
    from ai_edge_litert.interpreter import Interpreter

    with pytest.raises(ValueError, match="not a valid Flatbuffer"):
        Interpreter(model_content=data[: len(data) // 2])
    Interpreter(model_content=data)


@needs_models
@compiled
def test_the_squeezed_file_is_smaller_and_equal(path, tmp_path):
    target = tmp_path / path.name
    squeeze_and_verify(path, target)
    assert rows_of(target) == rows_of(path)
    assert_litert_accepts(target.read_bytes())
    assert weightmill.squeeze(target)["smaller"] is False
    assert weightmill.squeeze(path.read_bytes()) == target.read_bytes()


@needs_models
@compiled
def test_every_encoder_keeps_the_weights(path, tmp_path):
    reports = {}
    for options in ({"effort": "reference"}, {"effort": "regor"}, {"effort": "fast"}, {"effort": "max"}, {"effort": "best"},
                    {"effort": "best", "forms": "all"}):
        target = tmp_path / f"{'-'.join(options.values())}.tflite"
        reports[target.stem] = weightmill.squeeze(path, target, **options)
        assert weightmill.compare_compiled(path, target) is None
        assert rows_of(target) == rows_of(path)
    for effort in ("best", "max"):
        for change, (size, passes) in zip(reports[effort]["stream_changes"], smaller_streams(reports), strict=True):
            assert change["bytes_after"] <= size
            assert change["passes_after"] <= passes
        assert reports[effort]["passes_after"] <= sum(passes for _, passes in smaller_streams(reports))


def smaller_streams(reports: dict) -> list:
    """Bytes and passes of each stream with the encoder of Vela's that makes it smaller."""
    return [min((change["bytes_after"], change["passes_after"]) for change in changes)
            for changes in zip(*(reports[effort]["stream_changes"] for effort in ("reference", "regor")), strict=True)]


@needs_models
@needs_vela
@compiled
@pytest.mark.parametrize("forms", ["proven", "all"])
def test_velas_decoder_reads_every_stream(path, forms, tmp_path):
    from ethosu import mlw_codec

    target = tmp_path / path.name
    weightmill.squeeze(path, target, forms=forms)
    file = Doctored(target)
    for row in file.report["streams"]:
        if row["format"] == "mlw":
            weights = mlw_codec.decode(bytearray(file.read_only[row["offset"] : row["offset"] + row["bytes"]].tobytes()))
            assert f"{zlib.crc32(np.array(weights, '<i2').tobytes()):08x}" == row["crc32"]


@needs_models
def test_all_models_together_decode_in_fewer_passes():
    wanted, found = 0, {"fast": 0, "best": 0, "max": 0}
    for path in COMPILED:
        reports = {effort: weightmill.squeeze(path, effort=effort) for effort in (*found, "reference", "regor")}
        wanted += sum(passes for _, passes in smaller_streams(reports))
        for effort in found:
            found[effort] += reports[effort]["passes_after"]
    assert max(found.values()) < wanted


@needs_models
@needs_vela
@compiled
def test_vela_reads_the_squeezed_file_and_passes_it_through(path, tmp_path):
    target = tmp_path / path.name
    weightmill.squeeze(path, target)
    passed = run_vela(target, tmp_path / "vela")
    assert weightmill.compare_compiled(target, passed) is None
    assert weightmill.inspect_compiled(passed)["read_only_tensors"] == weightmill.inspect_compiled(target)["read_only_tensors"]


@needs_models
def test_a_file_that_does_not_get_smaller_is_copied_or_left_alone(tmp_path):
    once, twice = tmp_path / "once.tflite", tmp_path / "twice.tflite"
    weightmill.squeeze(COMPILED[0], once)
    before = once.stat()
    assert weightmill.squeeze(once, once)["smaller"] is False
    assert (once.stat().st_mtime_ns, once.stat().st_ino) == (before.st_mtime_ns, before.st_ino)
    assert weightmill.squeeze(once, twice)["smaller"] is False
    assert twice.read_bytes() == once.read_bytes()


@needs_models
@compiled
def test_the_result_does_not_depend_on_threads(path):
    data = path.read_bytes()
    assert weightmill.squeeze(data, jobs=3) == weightmill.squeeze(data, jobs=1)


@needs_models
def test_keep_dead_leaves_dead_bytes_in(tmp_path):
    for path in COMPILED:
        kept = weightmill.squeeze(path, tmp_path / path.name, keep_dead=True)
        assert kept["dead_bytes"] == 0
        assert weightmill.compare_compiled(path, tmp_path / path.name) is None


# Carriers


def raw_arrays(data: bytes) -> tuple[bytes, bytes]:
    """cmd_data and weight_data of a .npz with their trailing zeros."""
    def array(name):
        with zipfile.ZipFile(BytesIO(data)) as archive, archive.open(name) as file:
            assert archive.testzip() is None
            np.lib.format.read_magic(file)
            np.lib.format.read_array_header_1_0(file)
            return file.read()
    return array("cmd_data.npy"), array("weight_data.npy")


# The two cores write the arrays in different forms.
@needs_models
@needs_vela
@pytest.mark.parametrize("core", ["regor", "legacy"])
def test_velas_raw_output(core, tmp_path):
    raw = compile_with_vela(MODELS / "person_detect_int8.tflite", tmp_path / "raw", "ethos-u65-512", "Size", "Shared_Sram",
                            core, "--output-format", "raw")
    target = tmp_path / "small.npz"
    assert squeeze_and_verify(raw, target)["smaller"]
    payload, read_only = raw_arrays(raw.read_bytes())
    assert weightmill.squeeze(payload, read_only) == raw_arrays(target.read_bytes())
    old, new = np.load(raw, allow_pickle=True), np.load(target, allow_pickle=True)
    assert old.files == new.files
    for name in set(old.files) - {"cmd_data", "weight_data"}:
        assert np.array_equal(old[name], new[name]) or str(old[name]) == str(new[name])
    assert old["weight_data"].dtype.kind == new["weight_data"].dtype.kind
    assert new["weight_data"].tobytes().rstrip(b"\0") == raw_arrays(target.read_bytes())[1].rstrip(b"\0")
    blob, small_blob = tmp_path / "model.bin", tmp_path / "small.bin"
    blob.write_bytes(blob_of(blocks_of(payload, read_only)))
    assert squeeze_and_verify(blob, small_blob)["smaller"]
    assert small_blob.read_bytes() == blob_of(blocks_of(*weightmill.squeeze(payload, read_only)))
    assert weightmill.compare_compiled(blob, target) is None


# Freshly compiled networks

REAL = ["micro_speech_int8", "kws_dscnn_int8", "person_detect_int8", "resnet8_int8", "keyword_scrambled_16x8", "seanet_conv4_16x8",
        "mww_v2_okay_nabu_int8", "str_ww_ref_model"]
SLOW = ["ad01_int8", "dtln_int8", "mnist_lstm_int8", "mobilenet_v1_0.25_128_uint8", "openmv_blazeface_front_128_int8", "openmv_fomo_face_int8",
        "openmv_yolo_lc_192_int8", "vww_96_int8"]
ACCELERATORS = ["ethos-u55-128", "ethos-u55-256", "ethos-u65-512", "ethos-u85-256", "ethos-u85-1024"]


def configurations() -> list:
    """(network, accelerator, optimise, memory, core), everything with everything."""
    cases = []
    for network in [*SMALL, *REAL, *(SLOW if LONG else [])]:
        for accelerator in ACCELERATORS:
            cores = ("regor",) if accelerator.startswith("ethos-u85") else ("regor", "legacy")
            cases += [(network, accelerator, optimise, memory, core) for optimise in ("Size", "Performance")
                      for memory in ("Shared_Sram", "Dedicated_Sram", *(["Sram_Only"] if LONG else [])) for core in cores]
    return cases


def source_of(network: str, folder: Path) -> Path:
    if network not in SMALL:
        path = MODELS / f"{network}.tflite"
        return path if path.exists() else pytest.skip(f"{path.name} not installed")
    path = folder / f"{network}.tflite"
    path.write_bytes(SMALL[network]().bytes())
    return path


@needs_vela
@pytest.mark.parametrize("case", configurations(), ids="-".join)
def test_freshly_compiled_networks(case, tmp_path):
    network, *configuration = case
    path = compile_with_vela(source_of(network, tmp_path), tmp_path / "out", *configuration)
    target = tmp_path / "small.tflite"
    squeeze_and_verify(path, target)
    assert rows_of(target) == rows_of(path)
    assert_litert_accepts(target.read_bytes())


@needs_vela
def test_networks_in_pieces_share_a_tensor(tmp_path):
    path = compile_with_vela(source_of("pieces", tmp_path), tmp_path / "out", "ethos-u55-128", "Size", "Shared_Sram", "regor")
    report = weightmill.inspect_compiled(path)
    assert (report["npu_operators"], report["cpu_operators"], len(report["read_only_tensors"])) == (4, 3, 1)
    assert weightmill.squeeze(path)["smaller"]


@needs_models
@needs_vela
def test_subgraphs_have_tensors_of_their_own(tmp_path):
    path = compile_with_vela(source_of("mww_v2_okay_nabu_int8", tmp_path), tmp_path / "out", "ethos-u85-256", "Size", "Dedicated_Sram", "regor")
    report = weightmill.inspect_compiled(path)
    assert (report["npu_operators"], len(report["read_only_tensors"])) == (2, 2)
    changes = squeeze_and_verify(path, tmp_path / "small.tflite")["stream_changes"]
    assert len(changes) == sum(len(tensor["streams"]) for tensor in report["read_only_tensors"])


@needs_vela
def test_fast_streams_stay_fast(tmp_path):
    path = compile_with_vela(source_of("few_values", tmp_path), tmp_path / "out", "ethos-u85-1024", "Performance", "Sram_Only", "regor")
    squeeze_and_verify(path, tmp_path / "small.tflite")
    for file in (path, tmp_path / "small.tflite"):
        assert "fast" in {row["format"] for row in weightmill.inspect_compiled(file)["read_only_tensors"][0]["streams"]}


@needs_vela
@pytest.mark.parametrize("core", ["regor", "legacy"])
def test_a_vela_that_runs_again_and_again_writes_what_a_fresh_one_writes(core, tmp_path):
    arguments = (source_of("dilated", tmp_path), tmp_path / "again", "ethos-u65-512", "Size", "Dedicated_Sram", core)
    again = compile_with_vela(*arguments)
    stop_vela()
    fresh = compile_with_vela(arguments[0], tmp_path / "fresh", *arguments[2:])
    assert again.read_bytes() == fresh.read_bytes()


# Refusals


def refuses(data: bytes, tmp_path: Path, codes=("bad_file", "unsupported")) -> str:
    """Squeezing raises Error with one of the codes and leaves no output."""
    path, target = tmp_path / "broken.tflite", tmp_path / "out.tflite"
    path.write_bytes(data)
    with pytest.raises(weightmill.Error) as caught:
        weightmill.squeeze(path, target)
    assert caught.value.code in codes
    assert [p.name for p in tmp_path.iterdir()] == ["broken.tflite"]
    return str(caught.value)


@needs_models
@compiled
def test_refuses_truncated_files(path, tmp_path):
    data = path.read_bytes()
    for size in (0, 3, 8, 100, len(data) // 3, len(data) // 2, len(data) - 20):
        refuses(data[:size], tmp_path)


class Doctored:
    """A compiled file whose parts can be written over."""

    def __init__(self, path: Path) -> None:
        from ai_edge_litert import schema_py_generated as schema

        self.data = path.read_bytes()
        model = schema.Model.GetRootAs(self.data, 0)
        graph = model.Subgraphs(0)
        payload, self.read_only = (model.Buffers(graph.Tensors(graph.Operators(0).Inputs(i)).Buffer()).DataAsNumpy() for i in (0, 1))
        self.report = weightmill.inspect_compiled(path)["read_only_tensors"][0]
        self.n_words = self.report["command_words"][0]
        commands = payload[-4 * self.n_words :]
        self.commands_at = self._offset_of(commands)
        self.words = commands.view("<u4")

    def _offset_of(self, part: np.ndarray) -> int:
        return part.__array_interface__["data"][0] - np.frombuffer(self.data, np.uint8).__array_interface__["data"][0]

    def with_word(self, index: int, value: int) -> bytes:
        at = self.commands_at + 4 * (index % self.n_words)
        return self.data[:at] + int(value).to_bytes(4, "little") + self.data[at + 4 :]

    def with_stream(self, offset: int, change: bytes) -> bytes:
        at = self._offset_of(self.read_only) + offset
        return self.data[:at] + change + self.data[at + len(change) :]

    def writes(self, opcode: int) -> list[int]:
        """Where a two-word command with this opcode is; the value is one word on."""
        found, at = [], 0
        while at < self.n_words:
            if self.words[at] & 0xFFFF == opcode | 0x4000:
                found.append(at)
            at += 2 if self.words[at] & 0x4000 else 1
        return found


@needs_models
@compiled
def test_refuses_doctored_command_streams(path, tmp_path):
    doctored = Doctored(path)
    cases = [(0, 0x000001FF, "opcode 0x1FF"), (0, 0x00000500, "reserved bits"), (0, 0x00008100, "kind that is not known"),
             (0, 0xFFFF0000, "STOP is not the last command"), (0, 0x00000000, "STOP")]
    if doctored.report["product"] == "U85":
        cases.append((0, 0x00004100, "a branch"))
    for word, value, reason in cases:
        message = refuses(doctored.with_word(word, value), tmp_path)
        assert f"subgraph 0, operator 0, command word {word}: " in message and reason in message
    assert "does not end with STOP" in refuses(doctored.with_word(-1, 0x00000001), tmp_path)


@needs_models
@compiled
def test_refuses_doctored_weight_addresses(path, tmp_path):
    doctored = Doctored(path)
    for opcode, change in ((0x21, 8), (0x20, 4), (0x20, 1 << 30), (0x20, 16), (0x21, 16)):
        at = doctored.writes(opcode)[0]
        message = refuses(doctored.with_word(at + 1, int(doctored.words[at + 1]) + change), tmp_path)
        assert "subgraph 0, operator 0, command word" in message


@needs_models
@compiled
def test_refuses_streams_that_do_not_decode(path, tmp_path):
    doctored = Doctored(path)
    for row in doctored.report["streams"][:3]:
        message = refuses(doctored.with_stream(row["offset"], bytes(row["bytes"])), tmp_path)
        assert "subgraph 0, operator 0, command word" in message
        assert f"weight stream at {row['offset']} of the read-only tensor: " in message


@needs_models
def test_refuses_foreign_custom_operators(tmp_path):
    data = COMPILED[0].read_bytes()
    message = refuses(data.replace(b"ethos-u\0", b"ethos-x\0"), tmp_path, codes=("unsupported",))
    assert "nothing to do" in message


def test_refuses_models_that_were_not_compiled(tmp_path):
    source = MODELS / "kws_dscnn_int8.tflite"
    if not source.exists():
        pytest.skip("models not installed")
    assert "nothing to do" in refuses(source.read_bytes(), tmp_path, codes=("unsupported",))


def test_refuses_wrong_kinds_of_arguments():
    with pytest.raises(TypeError):
        weightmill.squeeze(b"", "path")
    with pytest.raises(weightmill.Error) as caught:
        weightmill.squeeze(b"COP1", b"", effort="fastest")
    assert caught.value.code == "bad_option"
    with pytest.raises(weightmill.Error):
        weightmill.squeeze(b"COP1", b"")


@needs_models
def test_reports_are_json(tmp_path):
    report = weightmill.squeeze(COMPILED[0])
    assert report["schema"] == "weightmill.squeeze/1"
    assert json.dumps(weightmill.inspect_compiled(COMPILED[0]))
