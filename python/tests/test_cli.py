"""The program's face: help, version, wrong words, exit statuses."""

import pathlib
import subprocess
import sys

import weightmill

PROGRAM = pathlib.Path(sys.executable).parent / "weightmill"


def run(*arguments: str, **options) -> subprocess.CompletedProcess:
    return subprocess.run([PROGRAM, *arguments], capture_output=True, text=True, timeout=60, **options)


def test_help_and_version_go_to_stdout():
    help_text = run("--help")
    assert help_text.returncode == 0 and "Example:" in help_text.stdout and not help_text.stderr
    assert run("--version").stdout.startswith("weightmill ")


def test_no_verb_is_a_usage_error():
    result = run()
    assert result.returncode == 2 and result.stderr.startswith("error: ") and not result.stdout


def test_unknown_verb_is_a_usage_error():
    result = run("frobnicate")
    assert result.returncode == 2
    assert "no verb 'frobnicate'" in result.stderr


def test_full_disk_behind_stdout_is_reported():
    with open("/dev/full", "w") as full:
        result = subprocess.run([PROGRAM, "--help"], stdout=full, stderr=subprocess.PIPE, text=True, timeout=60)
    assert result.returncode == 3
    assert "standard output" in result.stderr


def test_every_verb_shows_an_example_of_its_own():
    for verb in ("fold", "pack", "squeeze", "verify", "inspect", "codec", "targets"):
        text = run(verb, "--help").stdout
        if verb != "pack":
            assert f"weightmill {verb}" in text.split("Example:")[1], text


def test_options_that_would_do_nothing_are_refused(tmp_path):
    stream = tmp_path / "a.bin"
    stream.write_bytes(weightmill.encode([1, 2, 3]))
    result = run("codec", "decode", stream, "-o", tmp_path / "a.npy", "--count", "3")
    assert result.returncode == 2 and "--count" in result.stderr and not (tmp_path / "a.npy").exists()
