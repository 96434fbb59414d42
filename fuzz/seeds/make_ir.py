"""Writes fuzz/seeds/ir: IRs of a few layers, the .xml's length in four bytes before both files."""

import pathlib
import struct
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "bench"))

from big_ir import write_big_ir  # noqa: E402

CHAIN = """<net name="c" version="10"><layers>
<layer id="0" name="w" type="Const" version="opset1"><data element_type="i8" shape="4" offset="0" size="4"/><output><port id="0"/></output></layer>
<layer id="1" name="u" type="Convert" version="opset1"><data destination_type="f32"/><input><port id="0"/></input><output><port id="1"/></output></layer>
<layer id="2" name="z" type="Const" version="opset1"><data element_type="f32" shape="" offset="4" size="4"/><output><port id="0"/></output></layer>
<layer id="3" name="s" type="Subtract" version="opset1"><data/><input><port id="0"/><port id="1"/></input><output><port id="2"/></output></layer>
<layer id="4" name="f" type="FakeQuantize" version="opset1"><data levels="256"/><input><port id="0"/><port id="1"/><port id="2"/><port id="3"/>
<port id="4"/></input><output><port id="5"/></output></layer>
<layer id="5" name="d" type="Convert" version="opset1"><data destination_type="i8"/><input><port id="0"/></input><output><port id="1"/></output></layer>
<layer id="6" name="e" type="Convert" version="opset1"><data destination_type="f32"/><input><port id="0"/></input><output><port id="1"/></output></layer>
<layer id="7" name="m" type="Multiply" version="opset1"><data/><input><port id="0"/><port id="1"/></input><output><port id="2"/></output></layer>
</layers><edges><edge from-layer="0" from-port="0" to-layer="1" to-port="0"/><edge from-layer="1" from-port="1" to-layer="3" to-port="0"/>
<edge from-layer="2" from-port="0" to-layer="3" to-port="1"/><edge from-layer="2" from-port="0" to-layer="4" to-port="0"/>
<edge from-layer="2" from-port="0" to-layer="4" to-port="1"/><edge from-layer="2" from-port="0" to-layer="4" to-port="2"/>
<edge from-layer="2" from-port="0" to-layer="4" to-port="3"/><edge from-layer="2" from-port="0" to-layer="4" to-port="4"/>
<edge from-layer="4" from-port="5" to-layer="5" to-port="0"/><edge from-layer="5" from-port="1" to-layer="6" to-port="0"/>
<edge from-layer="6" from-port="1" to-layer="7" to-port="0"/><edge from-layer="3" from-port="2" to-layer="7" to-port="1"/></edges></net>
"""


def write_seed(name: str, xml: bytes, payload: bytes) -> None:
    (ROOT / "fuzz/seeds/ir" / name).write_bytes(struct.pack("<I", len(xml)) + xml + payload)


def main() -> None:
    (ROOT / "fuzz/seeds/ir").mkdir(parents=True, exist_ok=True)
    write_seed("chains", CHAIN.encode(), bytes([1, 2, 3, 4]) + struct.pack("<f", 1.0))
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "m.xml")
        for levels, dtype in ((15, "f32"), (255, "f32"), (256, "f16")):
            write_big_ir(path, layers=1, rows=2, columns=3, levels=levels, dtype=dtype, symmetric=levels != 256)
            write_seed(f"{dtype}_{levels}", path.read_bytes(), path.with_suffix(".bin").read_bytes())


if __name__ == "__main__":
    main()
