"""Our schema of the TFLite container against the one in the installed LiteRT: every table, field, enum and value."""

import importlib.util
import pathlib
import shutil
import subprocess

import pytest

from schema_facts import schema_facts

litert_schema = pytest.importorskip("ai_edge_litert.schema_py_generated")
SCHEMA = pathlib.Path(__file__).parents[2] / "src/weightmill/formats/tflite/schema/tflite.fbs"


@pytest.fixture(scope="module")
def ours(tmp_path_factory):
    flatc = shutil.which("flatc")
    if flatc is None:
        pytest.skip("flatc is not installed: apt-get install flatbuffers-compiler")
    folder = tmp_path_factory.mktemp("schema")
    subprocess.run([flatc, "--python", "--gen-onefile", "-o", str(folder), str(SCHEMA)], check=True)
    spec = importlib.util.spec_from_file_location("our_schema", folder / "tflite_generated.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return schema_facts(module)


@pytest.fixture(scope="module")
def litert():
    return schema_facts(litert_schema)


def differences(ours, theirs):
    """One line for each name that only one side has, or that the sides say differently."""
    names = sorted(ours.keys() | theirs.keys())
    return [f"{name}: ours {ours.get(name, 'missing')}, LiteRT {theirs.get(name, 'missing')}"
            for name in names if ours.get(name) != theirs.get(name)]


def flat(facts):
    return {f"{owner}.{name}": fact for owner, members in facts.items() for name, fact in members.items()}


def test_the_watcher_sees_the_whole_schema(litert):
    assert len(litert["tables"]) >= 170 and len(litert["enums"]) >= 20
    assert litert["tables"]["Tensor"]["quantization"] == (4, "QuantizationParameters", None)
    assert litert["tables"]["AddOptions"]["potscaleint16"] == (1, "bool", True)
    assert litert["tables"]["Operator"]["builtinoptions"] == (4, "union", None)


@pytest.mark.parametrize("kind", ["tables", "enums"])
def test_every_table_and_enum_is_there(ours, litert, kind):
    assert sorted(ours[kind]) == sorted(litert[kind])


@pytest.mark.parametrize("kind", ["tables", "enums"])
def test_every_field_and_value_is_the_same(ours, litert, kind):
    assert differences(flat(ours[kind]), flat(litert[kind])) == []


def test_a_difference_is_named(litert):
    changed = {name: dict(fields) for name, fields in litert["tables"].items()}
    changed["Buffer"]["size"] = (3, "uint64", 0)
    del changed["Tensor"]["shape"]
    named = [line.split(":")[0] for line in differences(flat(changed), flat(litert["tables"]))]
    assert named == ["Buffer.size", "Tensor.shape"]
