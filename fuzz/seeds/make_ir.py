"""Writes fuzz/seeds/ir: IRs of a few layers, the .xml's length in four bytes before both files."""

import pathlib
import struct
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "bench"))

from big_ir import write_big_ir  # noqa: E402

# number, name, type, attributes of <data>, number of inputs
LAYERS = [
    (0, "w", "Const", 'element_type="i8" shape="4" offset="0" size="4"', 0),
    (1, "u", "Convert", 'destination_type="f32"', 1),
    (2, "z", "Const", 'element_type="f32" shape="" offset="4" size="4"', 0),
    (3, "s", "Subtract", "", 2),
    (4, "f", "FakeQuantize", 'levels="256"', 5),
    (5, "d", "Convert", 'destination_type="i8"', 1),
    (6, "e", "Convert", 'destination_type="f32"', 1),
    (7, "m", "Multiply", "", 2),
]
# from layer, to layer, to port
EDGES = [
    (0, 1, 0),
    (1, 3, 0),
    (2, 3, 1),
    (2, 4, 0),
    (2, 4, 1),
    (2, 4, 2),
    (2, 4, 3),
    (2, 4, 4),
    (4, 5, 0),
    (5, 6, 0),
    (6, 7, 0),
    (3, 7, 1),
]


def chain_xml() -> str:
    """An integer chain and a quantized one."""
    layers, edges = "", ""
    for number, name, kind, data, n_inputs in LAYERS:
        ports = "".join(f'<port id="{i}"/>' for i in range(n_inputs))
        layers += (
            f'<layer id="{number}" name="{name}" type="{kind}" version="opset1"><data {data}/><input>{ports}</input>'
        )
        layers += f'<output><port id="{n_inputs}"/></output></layer>\n'
    for source, target, port in EDGES:
        edges += f'<edge from-layer="{source}" from-port="{LAYERS[source][4]}" to-layer="{target}" to-port="{port}"/>\n'
    return f'<net name="c" version="10"><layers>{layers}</layers><edges>{edges}</edges></net>'


def write_seed(name: str, xml: bytes, payload: bytes) -> None:
    (ROOT / "fuzz/seeds/ir" / name).write_bytes(struct.pack("<I", len(xml)) + xml + payload)


def main() -> None:
    (ROOT / "fuzz/seeds/ir").mkdir(parents=True, exist_ok=True)
    write_seed("chains", chain_xml().encode(), bytes([1, 2, 3, 4]) + struct.pack("<f", 1.0))
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "m.xml")
        for levels, dtype in ((15, "f32"), (255, "f32"), (256, "f16")):
            write_big_ir(path, layers=1, rows=2, columns=3, levels=levels, dtype=dtype, symmetric=levels != 256)
            write_seed(f"{dtype}_{levels}", path.read_bytes(), path.with_suffix(".bin").read_bytes())


if __name__ == "__main__":
    main()
