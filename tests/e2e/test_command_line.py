"""The command line: help, version, exit codes, and what it does with odd standard streams."""

from __future__ import annotations

import json

import pytest

import oyez
from oyez.cli import EXIT_CODES

COMMANDS = (
    (),
    ("run",),
    ("check",),
    ("config",),
    ("config", "show"),
    ("config", "schema"),
    ("models",),
    ("models", "list"),
    ("models", "fetch"),
    ("models", "verify"),
    ("models", "path"),
    ("transcribe",),
    ("say",),
    ("devices",),
    ("meter",),
    ("calibrate",),
    ("version",),
)


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_help_lists_the_exit_codes(product, command):
    done = product.run(*command, "--help")
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith(f"usage: {' '.join(('oyez', *command))}")
    assert done.out.endswith(EXIT_CODES)


@pytest.mark.parametrize(
    "arguments", [(), ("config",), ("models",), ("run", "--nonsense"), ("say",)]
)
def test_a_command_line_that_makes_no_sense_is_refused(product, arguments):
    done = product.run(*arguments)
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith("usage: oyez")


def test_fetching_no_model_at_all_makes_no_sense(product):
    done = product.run("models", "fetch", "--config", product.config)
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith("oyez: no model is named\n")


def test_the_version_is_for_people_and_for_programs(product):
    assert product.run("version").out == f"oyez {oyez.__version__}\n"
    assert json.loads(product.run("version", "--json").out) == {"version": oyez.__version__}


def test_the_configuration_in_use_is_right_and_shown_with_its_origin(product):
    done = product.run("check", product.config)
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith(f"{product.config}: right, 1 of ")
    shown = product.run("config", "show", "--config", product.config)
    assert shown.code == 0
    assert f"{product.config}:1" in shown.out


@pytest.mark.parametrize("stream", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_closed_standard_streams_are_no_failure(product, stream):
    done = product.run("version", prefix=("sh", "-c", f'exec "$0" "$@" {stream}'))
    assert (done.code, done.err) == (0, "")
    assert done.out == ("" if ">&-" in stream.split() else f"oyez {oyez.__version__}\n")


def test_a_full_disk_under_stdout_is_told(product):
    done = product.run("version", prefix=("sh", "-c", 'exec "$0" "$@" >/dev/full'))
    assert done.code == 74
    assert done.err == "oyez: standard output cannot be written: No space left on device\n"
