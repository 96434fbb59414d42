"""Which rounding rule each engine's kernel follows (docs/rounding.md), as the tests check it."""

ENGINES = ("ref", "opt", "xnn")


def litert_rule(engine: str, kind: str, dtype: str, *, grouped: bool = False, delegated: bool = True,
                bias32: bool = False) -> str:
    """The rule of a LiteRT kernel path, "ref", "opt" or "xnn", or of "tflm".

    `delegated`: XNNPACK runs the layer; otherwise the default interpreter uses the optimized kernels. `bias32`: an
    int16 layer with an int32 bias.
    """
    if engine == "tflm":
        return "int16x8" if dtype == "int16" and not bias32 else "gemmlowp_double"
    if dtype == "int16" and not bias32:
        return "double_gain" if kind == "fully_connected" else "int16x8"
    if engine == "xnn" and dtype == "int8" and delegated:
        return "float_gain"
    if engine == "ref":
        return "double_gain" if kind == "fully_connected" else "gemmlowp_double"
    if kind in ("depthwise", "transposed"):
        return "double_by_eights"
    return "gemmlowp_double" if grouped else "double_half_up"
