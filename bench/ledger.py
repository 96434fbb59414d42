"""sizes.csv: a line for each model, accelerator and encoder. It is in git, so that a changed byte count is a diff that somebody defends."""

import csv
import pathlib

LEDGER = pathlib.Path(__file__).resolve().parent / "sizes.csv"
# Models that are compiled already have passes of the NPU's decoding loop and bytes of the whole file as well.
COLUMNS = ("model", "accelerator", "effort", "weights", "stream_bytes", "record_bytes", "bits_per_weight", "passes", "file_bytes")


def update(lines: list[dict]) -> None:
    """Puts lines in the place of older ones of the same models; those of models that were not measured stay."""
    old = list(csv.DictReader(LEDGER.open())) if LEDGER.exists() else []
    measured = {line["model"] for line in lines}
    new = [{column: str(line.get(column) or "") for column in COLUMNS} for line in lines]
    kept = [line for line in old if line["model"] not in measured]
    everything = sorted(kept + new, key=lambda line: (line["model"], line["accelerator"], line["effort"]))
    with LEDGER.open("w", newline="") as out:
        writer = csv.DictWriter(out, fieldnames=COLUMNS, restval="", lineterminator="\n")
        writer.writeheader()
        writer.writerows(everything)
    print(f"sizes.csv: {len(everything)} lines, {sum(line not in old for line in new)} changed")
