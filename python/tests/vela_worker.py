"""Runs Vela many times in one process: starting it takes longer than most of its work here. Not a test.

One line of JSON on stdin, the list of Vela's arguments, is answered by one line on the file descriptor named as argument:
{"status": exit status, "output": what Vela printed}.
"""

import json
import os
import sys
import tempfile
import traceback


def run(vela, arguments: list[str]) -> int:
    """Vela's exit status, however it ends."""
    try:
        return vela.main(arguments) or 0
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else int(bool(end.code))
    except Exception:  # whatever Vela raises is its answer
        traceback.print_exc()
        return 1


def main() -> None:
    from ethosu.vela import vela

    with os.fdopen(int(sys.argv[1]), "w") as answers, tempfile.TemporaryFile("w+", errors="replace") as printed:
        os.dup2(printed.fileno(), 1)
        os.dup2(printed.fileno(), 2)
        for line in sys.stdin:
            printed.seek(0)
            printed.truncate()
            status = run(vela, json.loads(line))
            sys.stdout.flush()
            sys.stderr.flush()
            printed.seek(0)
            print(json.dumps({"status": status, "output": printed.read()}), file=answers, flush=True)


if __name__ == "__main__":
    main()
