"""The simulator's int8 convolutions against LiteRT's XNNPACK kernels: one thread, the same layer, the same minute.

Prints a table, and with --check fails where a 3x3 convolution takes more than 3 times XNNPACK's time.
"""

import argparse
import pathlib
import sys
import time

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "python" / "tests"))

import layer_samples
import weightmill

# kind, height = width, channels in, channels out, kernel, stride
LAYERS = [
    ("convolution", 56, 64, 64, 3, 1),
    ("convolution", 28, 128, 128, 3, 1),
    ("convolution", 14, 256, 256, 3, 1),
    ("convolution", 112, 32, 64, 3, 2),
    ("convolution", 224, 3, 32, 3, 2),
    ("convolution", 28, 128, 128, 1, 1),
    ("depthwise", 56, 128, 128, 3, 1),
    ("fully_connected", 1, 1024, 1000, 1, 1),
]
LIMIT = 3.0


def sample_of(kind, extent, n_inputs, n_outputs, kernel, stride) -> layer_samples.Sample:
    rng = np.random.default_rng(7)
    shapes = {"convolution": (n_outputs, kernel, kernel, n_inputs), "depthwise": (1, kernel, kernel, n_outputs),
              "fully_connected": (n_outputs, n_inputs)}
    weights = rng.integers(-127, 128, shapes[kind]).astype(np.int8)
    shape = (1, n_inputs) if kind == "fully_connected" else (1, extent, extent, n_inputs)
    out = -(-extent // stride)
    total = max((out - 1) * stride + kernel - extent, 0)
    geometry = {} if kind == "fully_connected" else {
        "stride": (stride, stride), "same": True, "padding": ((total // 2, total - total // 2),) * 2}
    return layer_samples.Sample(
        kind, "int8", weights, rng.integers(-5000, 5000, n_outputs).astype(np.int32),
        rng.integers(-128, 128, shape).astype(np.int8), np.float32(0.02), -3,
        rng.uniform(0.001, 0.003, n_outputs).astype(np.float32), np.float32(0.2), 5,
        (1, n_outputs) if kind == "fully_connected" else (1, out, out, n_outputs), **geometry)


def xnnpack_runner(sample):
    from ai_edge_litert.interpreter import Interpreter

    interpreter = Interpreter(model_content=layer_samples.tflite_model([sample]), num_threads=1)
    interpreter.allocate_tensors()
    interpreter.set_tensor(interpreter.get_input_details()[0]["index"], sample.input)
    interpreter.invoke()
    return interpreter.invoke, lambda: interpreter.get_tensor(interpreter.get_output_details()[0]["index"])


def seconds(call) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def measure(sample, rounds: int):
    """Least times in ms of XNNPACK and of the simulator, taken turn by turn; both have given the same codes."""
    invoke, output = xnnpack_runner(sample)
    simulator = weightmill.Simulator(layer_samples.layer_of(sample, "float_gain"))
    np.testing.assert_array_equal(simulator.run(sample.input), output())
    times = [(seconds(invoke), seconds(lambda: simulator.run(sample.input))) for _ in range(rounds)]
    return [1e3 * min(column) for column in zip(*times)]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true",
                        help=f"fail where a 3x3 convolution takes more than {LIMIT} times XNNPACK's time")
    parser.add_argument("--rounds", type=int, default=40)
    options = parser.parse_args()
    print(f"{'layer':<40} {'XNNPACK ms':>11} {'simulate ms':>12} {'ratio':>6}")
    worst = 0.0
    for kind, *numbers in LAYERS:
        extent, n_inputs, n_outputs, kernel, stride = numbers
        xnnpack, ours = measure(sample_of(kind, *numbers), options.rounds)
        name = f"{kind} {kernel}x{kernel}/{stride} {extent}x{extent}x{n_inputs} -> {n_outputs}"
        print(f"{name:<40} {xnnpack:11.3f} {ours:12.3f} {ours / xnnpack:6.2f}")
        if kind == "convolution" and kernel == 3:
            worst = max(worst, ours / xnnpack)
    print(f"worst 3x3 convolution: {worst:.2f} times XNNPACK; wanted at most {LIMIT}")
    return 1 if options.check and worst > LIMIT else 0


if __name__ == "__main__":
    sys.exit(main())
