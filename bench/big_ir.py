"""Writes OpenVINO IRs of any size: fake-quantized weights, each with a MatMul, as quantized networks have them."""

from __future__ import annotations

import pathlib

import numpy as np

_PRECISIONS = {"f32": "FP32", "f16": "FP16"}


class _Xml:
    def __init__(self) -> None:
        self.layers: list[str] = []
        self.edges: list[str] = []

    def layer(
        self, name: str, kind: str, data: str, inputs: list[tuple[str, tuple]], output: tuple[str, tuple] | None
    ) -> int:
        number = len(self.layers)
        ports = [self._port(i, *port) for i, port in enumerate(inputs)]
        text = f'<layer id="{number}" name="{name}" type="{kind}" version="opset1"><data {data} />'
        if ports:
            text += "<input>" + "".join(ports) + "</input>"
        if output:
            text += "<output>" + self._port(len(inputs), *output) + "</output>"
        self.layers.append(text + "</layer>")
        return number

    def edge(self, source: int, source_port: int, target: int, target_port: int) -> None:
        self.edges.append(
            f'<edge from-layer="{source}" from-port="{source_port}" to-layer="{target}" to-port="{target_port}" />'
        )

    @staticmethod
    def _port(number: int, precision: str, shape: tuple) -> str:
        return f'<port id="{number}" precision="{precision}">' + "".join(f"<dim>{d}</dim>" for d in shape) + "</port>"

    def text(self, name: str) -> str:
        return (
            f'<?xml version="1.0"?>\n<net name="{name}" version="11"><layers>'
            + "\n".join(self.layers)
            + "</layers><edges>"
            + "\n".join(self.edges)
            + "</edges><rt_info /></net>\n"
        )


def write_big_ir(
    path: pathlib.Path,
    layers: int,
    rows: int,
    columns: int,
    levels: int = 255,
    dtype: str = "f32",
    symmetric: bool = True,
    sparse: bool = False,
) -> None:
    """`layers` weights [rows, columns], limits for each row. `sparse`: but for a few rows the weights are holes of the
    .bin, which take no room on the disk."""
    xml, offset = _Xml(), 0
    width = 4 if dtype == "f32" else 2
    precision = _PRECISIONS[dtype]
    numpy_type = np.dtype("<f4" if dtype == "f32" else "<f2")
    random = np.random.default_rng(1)
    block = random.standard_normal((rows, columns), dtype=np.float32).astype(numpy_type)
    with open(path.with_suffix(".bin"), "wb") as out:

        def constant(name: str, shape: tuple, values: np.ndarray) -> int:
            nonlocal offset
            size = int(np.prod(shape)) * width
            out.seek(offset)
            out.write(values.data)
            data = f'element_type="{dtype}" shape="{", ".join(map(str, shape))}" offset="{offset}" size="{size}"'
            offset += size
            return xml.layer(name, "Const", data, [], (precision, shape))

        for i in range(layers):
            high = (np.abs(random.standard_normal((rows, 1))) + 2).astype(numpy_type)
            low = -high if symmetric else (-high * np.abs(random.standard_normal((rows, 1)))).astype(numpy_type)
            weights = np.roll(block[: 4 if sparse else rows], i + 1, axis=1)
            shape, limit = (rows, columns), (rows, 1)
            inputs = [constant(f"w{i}", shape, weights)]
            inputs += [constant(f"{n}{i}", limit, v) for n, v in (("il", low), ("ih", high), ("ol", low), ("oh", high))]
            quantize = xml.layer(
                f"fq{i}",
                "FakeQuantize",
                f'levels="{levels}" auto_broadcast="numpy"',
                [(precision, shape)] + [(precision, limit)] * 4,
                (precision, shape),
            )
            for port, source in enumerate(inputs):
                xml.edge(source, 0, quantize, port)
            parameter = xml.layer(
                f"x{i}", "Parameter", f'shape="1,{columns}" element_type="{dtype}"', [], (precision, (1, columns))
            )
            product = xml.layer(
                f"fc{i}",
                "MatMul",
                'transpose_a="false" transpose_b="true"',
                [(precision, (1, columns)), (precision, shape)],
                (precision, (1, rows)),
            )
            xml.edge(parameter, 0, product, 0)
            xml.edge(quantize, 5, product, 1)
            result = xml.layer(f"y{i}", "Result", "", [(precision, (1, rows))], None)
            xml.edge(product, 2, result, 0)
        out.truncate(offset)
    path.write_text(xml.text("big"))
