"""Orders, records and scales against the installed Vela: the same bytes in random cases, the same refusals."""

import random

import numpy as np
import pytest

import weightmill
from weightmill.compat import mlw_codec as our_codec
from weightmill.compat import vela_api as ours

api = pytest.importorskip("ethosu.vela.api", reason="ethos-u-vela is not installed")
codec = pytest.importorskip("ethosu.mlw_codec", reason="ethos-u-vela is not installed")
scaling = pytest.importorskip("ethosu.vela.scaling", reason="ethos-u-vela is not installed")

ACCELERATORS = [member.name for member in api.NpuAccelerator]


def random_volume(rng, depthwise, dtype=np.int16, most=4000):
    """Weights as they occur: dense, sparse, clustered, nine bits wide; extents around block and sub-kernel limits."""
    height, width = rng.choice(
        [(1, 1), (1, 1), (3, 3), (5, 5), (1, 9), (9, 2), (10, 17), (rng.randint(1, 12), rng.randint(1, 12))]
    )
    n_i = 1 if depthwise else rng.choice([1, 3, 7, 8, 9, 16, 17, 31, 32, 33, rng.randint(1, 70)])
    n_o = rng.choice([1, 2, 7, 8, 9, 16, 17, rng.randint(1, 70)])
    while height * width * n_i * n_o > most:
        n_o, n_i = max(n_o // 2, 1), max(n_i // 2, 1)
        height, width = max(height - 1, 1), max(width - 1, 1)
    low, high = (-128, 127) if dtype == np.int8 else rng.choice([(-128, 127), (-255, 255), (-3, 3), (0, 255)])
    numbers = np.random.default_rng(rng.getrandbits(32))
    values = numbers.integers(low, high, (n_o, height, width, n_i), endpoint=True)
    if rng.random() < 0.4:
        values[numbers.random(values.shape) < rng.choice([0.5, 0.8, 0.95])] = 0
    return values.astype(dtype)


def test_npu_encode_weights_gives_velas_bytes():
    for seed in range(5000):
        rng = random.Random(seed)
        name = rng.choice(ACCELERATORS)
        depthwise = rng.random() < 0.3
        part_kernel = not depthwise and rng.random() < 0.5
        volume = random_volume(rng, depthwise, rng.choice([np.int8, np.int16]), most=2000)
        block_depth = rng.choice([1, 4, 8, 12, 16, 24, 32, 64, 128])
        traversal = "PART_KERNEL_FIRST" if part_kernel else "DEPTH_FIRST"
        rest = ((rng.choice([1, 2]), rng.choice([1, 2])), rng.choice([8, 16]), block_depth, depthwise)
        wanted = api.npu_encode_weights(api.NpuAccelerator[name], volume, *rest, api.NpuBlockTraversal[traversal])
        found = ours.npu_encode_weights(ours.NpuAccelerator[name], volume, *rest, ours.NpuBlockTraversal[traversal])
        assert found == wanted, (seed, name, volume.shape, rest, traversal)


def test_reorder_encode_gives_velas_bytes():
    for seed in range(5000):
        rng = random.Random(seed)
        depthwise, part_kernel = rng.random() < 0.3, rng.random() < 0.5
        volume = random_volume(rng, depthwise and rng.random() < 0.8, most=1500)
        if rng.random() < 0.1:
            volume = volume[::-1, :, ::-1]
        head = (rng.choice([1, 4, 8, 16]), rng.choice([1, 4, 8, 16, 5]))
        tail = (
            rng.randint(1, 130),
            depthwise,
            part_kernel,
            rng.choice([8, 16, 32]),
            rng.randint(1, 9),
            rng.randint(1, 9),
        )
        assert our_codec.reorder_encode(*head, volume, *tail) == codec.reorder_encode(*head, volume, *tail), (
            seed,
            volume.shape,
            head,
            tail,
        )


def test_npu_encode_bias_gives_velas_bytes():
    rng = random.Random(1)
    for _ in range(3000):
        arguments = (
            np.int64(rng.randint(-(1 << 39), (1 << 39) - 1)),
            rng.randint(0, (1 << 32) - 1),
            rng.randint(0, 63),
        )
        assert ours.npu_encode_bias(*arguments) == api.npu_encode_bias(*arguments)


def outcome(function, arguments):
    """What a function returns as plain numbers, or that it raises."""
    try:
        with np.errstate(all="ignore"):
            return [float(value) for value in function(*arguments)]
    except (ArithmeticError, ValueError, AssertionError):
        return "refused"


def random_scale(rng):
    return float(np.float32(rng.uniform(0.5, 1.0) * 2.0 ** rng.randint(-40, 20)))


def test_scaling_functions_equal_velas():
    for seed in range(4000):
        rng = random.Random(seed)
        a, b, out = (random_scale(rng) for _ in range(3))
        b = a if rng.random() < 0.1 else b
        x = rng.choice(
            [0.0, -a, a * b / out, rng.uniform(-1, 1), 2.0 ** rng.randint(-70, 70), float("inf"), float("nan")]
        )
        cases = [
            ("quantise_scale", (x,)),
            ("reduced_quantise_scale", (x,)),
            ("quantise_pooling_scale", (rng.randint(0, 70000), rng.randint(0, 8))),
            ("elementwise_mul_scale", (a, b, out, rng.random() < 0.5)),
            ("advanced_elementwise_add_sub_scale", (a, b, out, rng.choice([8, 16]))),
            ("simplified_elementwise_add_sub_scale", (a, b, out, rng.choice([15, 16, 20]))),
        ]
        for name, arguments in cases:
            assert outcome(getattr(weightmill, name), arguments) == outcome(getattr(scaling, name), arguments), (
                seed,
                name,
                arguments,
            )


def test_accepts_what_vela_accepts():
    volume = random_volume(random.Random(3), False, np.int8)
    wanted = codec.reorder_encode(8, 8, volume, 16, False, True, 8, 8, 8)
    for same in (
        volume.astype(">i2"),
        volume.tolist(),
        np.asfortranarray(volume),
        np.repeat(volume, 2, axis=2)[:, :, ::2],
        volume[..., None],
    ):
        assert our_codec.reorder_encode(8, 8, same, 16, 0, 1, np.int64(8), 8, 8) == wanted
    assert (
        ours.npu_encode_weights(
            api.NpuAccelerator.Ethos_U55_128, volume, (1, 1), 8, 16, False, api.NpuBlockTraversal.PART_KERNEL_FIRST
        )
        == wanted[0]
    )
    assert ours.npu_get_api_version() == api.npu_get_api_version()
    assert [m.value for m in ours.NpuAccelerator] == [m.value for m in api.NpuAccelerator]
    assert [m.value for m in ours.NpuBlockTraversal] == [m.value for m in api.NpuBlockTraversal]


def raised(function, *arguments):
    try:
        function(*arguments)
    except Exception as error:  # noqa: BLE001: any type is an answer here
        return type(error), str(error)
    return None


def good_arguments(module):
    return {
        "accelerator": module.NpuAccelerator.Ethos_U55_128,
        "weights_volume": np.ones((4, 3, 3, 4), np.int8),
        "dilation_xy": (1, 1),
        "ifm_bitdepth": 8,
        "ofm_block_depth": 8,
        "is_depthwise": False,
        "block_traversal": module.NpuBlockTraversal.DEPTH_FIRST,
    }


def bad_changes(module):
    volume = np.ones((4, 3, 3, 4), np.int8)
    part_kernel = module.NpuBlockTraversal.PART_KERNEL_FIRST
    return [
        {"accelerator": 3},
        {"weights_volume": [1]},
        {"dilation_xy": [1, 1]},
        {"dilation_xy": (3, 1)},
        {"dilation_xy": (1, 4)},
        {"dilation_xy": (1,)},
        {"ifm_bitdepth": 8.0},
        {"ifm_bitdepth": np.int64(8)},
        {"ofm_block_depth": np.int64(8)},
        {"is_depthwise": 1},
        {"block_traversal": 1},
        {"weights_volume": volume[0]},
        {"weights_volume": volume[None]},
        {"is_depthwise": True, "block_traversal": part_kernel},
        {"weights_volume": volume.astype(np.int64)},
        {"weights_volume": volume.astype(float)},
        {"weights_volume": volume[:0]},
        {"weights_volume": volume[:, :0]},
        {"weights_volume": volume[:, :, :0]},
        {"weights_volume": volume[..., :0]},
    ]


@pytest.mark.parametrize("case", range(20))
def test_refuses_weights_as_vela_does(case):
    wanted = raised(lambda: api.npu_encode_weights(**{**good_arguments(api), **bad_changes(api)[case]}))
    found = raised(lambda: ours.npu_encode_weights(**{**good_arguments(ours), **bad_changes(ours)[case]}))
    assert wanted is not None and found[0] is wanted[0]
    if wanted[1]:
        assert found[1] == wanted[1]


BAD_BIASES = [
    (3, 5, 6),
    (np.int32(3), 5, 6),
    (np.int64(3), np.int64(5), 6),
    (np.int64(3), 5, np.int64(6)),
    (np.int64(3), 5.0, 6),
    (np.int64(1 << 39), 5, 6),
    (np.int64(-(1 << 39) - 1), 5, 6),
    (np.int64(3), 1 << 32, 6),
    (np.int64(3), -1, 6),
    (np.int64(3), 5, 64),
    (np.int64(3), 5, -1),
]


@pytest.mark.parametrize("arguments", BAD_BIASES, ids=str)
def test_refuses_biases_as_vela_does(arguments):
    assert raised(api.npu_encode_bias, *arguments)[0] is AssertionError
    assert raised(ours.npu_encode_bias, *arguments)[0] is AssertionError


VOLUME = np.ones((2, 3, 3, 4), np.int16)
BAD_REORDERS = [
    (8, 8, "abc", 8, 0, 0, 8, 8, 8),
    (8, 8, None, 8, 0, 0, 8, 8, 8),
    (8, 8, VOLUME.astype(np.uint16), 8, 0, 0, 8, 8, 8),
    (8, 8, [[[[70000]]]], 8, 0, 0, 8, 8, 8),
    (8, 8, VOLUME[0], 8, 0, 0, 8, 8, 8),
    (8, 8, 5, 8, 0, 0, 8, 8, 8),
    (8, 8, [[1, 2], [3]], 8, 0, 0, 8, 8, 8),
    (8, 8, VOLUME[:0], 8, 0, 0, 8, 8, 8),
    (8, 8, VOLUME[:, :0, :, :0], 8, 0, 0, 8, 8, 8),
    ("8", 8, VOLUME, 8, 0, 0, 8, 8, 8),
    (8.5, 8, VOLUME, 8, 0, 0, 8, 8, 8),
    (8, 8, VOLUME, 8, None, 0, 8, 8, 8),
    (8, 8, VOLUME, 8, 0, 0, 8, 8, 8, "x"),
    (8, 8, VOLUME),
]


@pytest.mark.parametrize("case", range(len(BAD_REORDERS)))
def test_refuses_volumes_as_vela_does(case):
    wanted, found = raised(codec.reorder_encode, *BAD_REORDERS[case]), raised(
        our_codec.reorder_encode, *BAD_REORDERS[case]
    )
    assert found[0] is wanted[0]
    if wanted[0] is ValueError:
        assert found[1] == wanted[1]


@pytest.mark.parametrize("change", [(0, 0), (1, 0), (3, 0), (7, 0), (8, 0), (3, -4), (1, -8)])
def test_raises_where_vela_never_returns(change):
    arguments = [8, 8, VOLUME, 8, 0, 0, 8, 8, 8]
    arguments[change[0]] = change[1]
    with pytest.raises(weightmill.Error):
        our_codec.reorder_encode(*arguments)


@pytest.mark.parametrize("weight", [256, -256, 1000, 32767])
def test_raises_where_vela_writes_other_weights(weight):
    volume = VOLUME.copy()
    volume[1, 2, 0, 3] = weight
    with pytest.raises(weightmill.Error, match=str(weight)):
        our_codec.reorder_encode(8, 8, volume, 8, 0, 0, 8, 8, 8)
    with pytest.raises(weightmill.Error):
        ours.npu_encode_weights(
            ours.NpuAccelerator.Ethos_U65_256, volume, (1, 1), 8, 8, False, ours.NpuBlockTraversal.DEPTH_FIRST
        )
