"""The simulator against OpenVINO's CPU plug-in, live: quantized layers bit for bit under the rules openvino*."""

import os

import numpy as np
import pytest

pytest.importorskip("onnx")
pytest.importorskip("openvino")

import openvino_engine
import qdq_samples

# Of each kind and each draw, with and without ReLU. WEIGHTMILL_LONG=1 runs ten times as many.
N_SAMPLES = 600 if os.environ.get("WEIGHTMILL_LONG") else 60
N_AT_ONCE = 30
WRONG_PADDING = "this kernel does not pad with the zero point: wrong by many steps"
WRONG_COLUMN = "this kernel reads beside a single column of outputs: wrong by many steps"
KINDS = ("convolution", "convolution_3d", "depthwise", "gemm", "matmul")


def rule_of(sample) -> str:
    return "openvino_dense" if sample.kind in ("gemm", "matmul") else "openvino"


def has_one_wide_column(sample, output_shape: tuple[int, ...]) -> bool:
    """One output along the last axis, whose inputs lie apart in both ways."""
    attributes = sample.attributes
    apart = "strides" in attributes and attributes["strides"][-1] > 1 and attributes["dilations"][-1] > 1
    return apart and output_shape[-1] == 1


def exception_for(sample, kernel: str, relu: bool, output_shape: tuple[int, ...]) -> str | None:
    """Why OpenVINO's codes may be off: by a step, or wrong."""
    if "amx" in kernel and has_one_wide_column(sample, output_shape):
        return WRONG_COLUMN
    if not kernel.endswith("_I8"):
        return "runs in float32"
    if kernel == "jit_gemm_I8" and any(sample.attributes.get("pads", ())) and sample.input_zero_point != 0:
        return WRONG_PADDING
    has_bias = sample.bias is not None and sample.bias.any()
    one_scale = (sample.weight_scale == sample.weight_scale.flat[0]).all()
    relu_counts = relu and sample.output_zero_point != 0
    if sample.kind == "gemm" and has_bias and one_scale and sample.input_zero_point != 0 and not relu_counts:
        return "dense, bias, one weight scale and an input zero point"
    return None


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("relu", [False, True], ids=["plain", "relu"])
@pytest.mark.parametrize("draw", [qdq_samples.draw, qdq_samples.draw_near_ties], ids=["any", "near_ties"])
def test_simulation_is_openvino_bit_for_bit(kind, draw, relu):
    if draw is qdq_samples.draw and not openvino_engine.has_vnni():
        pytest.skip("without VNNI the engine saturates sums of two products to 16 bits; small weights are tested")
    n_exact, n_codes, n_off = 0, 0, 0
    for first in range(0, N_SAMPLES, N_AT_ONCE):
        samples = [openvino_engine.fit(draw(kind, seed)) for seed in range(first, first + N_AT_ONCE)]
        outputs, kernels = openvino_engine.run(samples, relu)
        for k, (sample, codes) in enumerate(zip(samples, outputs)):
            found = qdq_samples.simulate(sample, rule_of(sample), "relu" if relu else "none")
            exception = exception_for(sample, kernels[k], relu, found.shape)
            if exception is None:
                np.testing.assert_array_equal(found, codes, f"seed {first + k}, {kernels[k]}")
                n_exact += 1
            if exception in (None, WRONG_PADDING, WRONG_COLUMN):
                continue
            distance = np.abs(found.astype(int) - codes)
            assert distance.max() <= 1, f"seed {first + k}, {kernels[k]}"
            n_codes, n_off = n_codes + distance.size, n_off + np.count_nonzero(distance)
    assert n_exact >= 0.6 * N_SAMPLES
    print(f"{kind}: {n_exact} layers equal; {n_off} of {n_codes} codes of the others one step off")
