"""Runs Vela's legacy core with one codec or the other in the place of `ethosu.mlw_codec`.

    python vela_with_codec.py ours|vela VELA-ARGUMENT...

The last line on stderr says how often reorder_encode was called and the seconds spent in it. Not a test.
"""

import importlib
import sys
import time
import types


def timed_module(module) -> tuple[types.ModuleType, list]:
    """A module with the codec's functions, of which reorder_encode counts calls and seconds."""
    spent = [0, 0.0]

    def reorder_encode(*arguments):
        start = time.perf_counter()
        result = module.reorder_encode(*arguments)
        spent[0] += 1
        spent[1] += time.perf_counter() - start
        return result

    stand_in = types.ModuleType("ethosu.mlw_codec")
    stand_in.encode, stand_in.decode, stand_in.reorder_encode = module.encode, module.decode, reorder_encode
    return stand_in, spent


def main() -> None:
    name = "weightmill.compat.mlw_codec" if sys.argv[1] == "ours" else "ethosu.mlw_codec"
    stand_in, spent = timed_module(importlib.import_module(name))
    sys.modules["ethosu.mlw_codec"] = stand_in
    importlib.import_module("ethosu").mlw_codec = stand_in
    vela = importlib.import_module("ethosu.vela.vela")
    vela.main(sys.argv[2:])
    print(spent[0], spent[1], file=sys.stderr)


if __name__ == "__main__":
    main()
