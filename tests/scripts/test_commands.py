"""The commands themselves, on a checkout in which all is set up: what they pass on and say."""

from __future__ import annotations

import os
import subprocess
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from scripts.checkout import Checkout


def test_run_says_what_it_does_and_hands_its_arguments_to_oyez(
    checkout: Checkout, tmp_path: Path
) -> None:
    checkout.finish("run")
    ended = checkout.run("scripts/run", "--input", "my file.wav", "--once", cwd=tmp_path)
    assert ended.returncode == 0, ended.stderr
    # The caller's own folder, so that relative paths mean what they say.
    assert ended.stdout.splitlines() == [str(tmp_path), "run", "--input", "my file.wav", "--once"]
    assert ended.stderr.startswith("scripts/run: sets up whatever is missing on this machine, then")
    assert "fetch\n--needed\n" in ended.stderr


@pytest.mark.parametrize("config", [["--config", "a b.yaml"], ["--config=a b.yaml"]])
def test_the_models_of_the_configuration_that_is_named_are_fetched(
    checkout: Checkout, config: list[str]
) -> None:
    checkout.finish("run")
    ended = checkout.run("scripts/run", "--once", *config)
    assert "\n".join(["models", "fetch", "--needed", *config]) + "\n" in ended.stderr


def test_the_exit_code_is_that_of_oyez(checkout: Checkout) -> None:
    checkout.finish("run")
    assert checkout.run("scripts/run", env={"OYEZ_EXIT": "78"}).returncode == 78


def test_setup_only_ends_when_everything_is_in_place(checkout: Checkout) -> None:
    checkout.finish("run")
    ended = checkout.run("scripts/run", "--setup-only")
    assert ended.returncode == 0
    assert ended.stdout == ""
    assert "everything is in place" in ended.stderr


@pytest.mark.parametrize("script", ["scripts/run", "scripts/test", "scripts/lock"])
def test_help_is_there_before_anything_is_set_up(checkout: Checkout, script: str) -> None:
    ended = checkout.run(script, "--help")
    assert ended.returncode == 0
    assert ended.stdout.startswith(f"{script}: ")
    assert not (checkout.root / ".venv").exists()


def test_run_works_through_a_link_from_anywhere(checkout: Checkout, tmp_path: Path) -> None:
    checkout.finish("run")
    link = tmp_path / "listen"
    link.symlink_to(checkout.root / "scripts" / "run")
    ended = subprocess.run(
        [link], cwd="/", env=checkout.env, capture_output=True, text=True, check=False
    )
    assert ended.stdout.splitlines() == ["/", "run"]


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&-", "<&- 2>&-", "<&- >&- 2>&-"])
def test_run_works_with_closed_standard_files_and_no_environment(
    checkout: Checkout, closed: str
) -> None:
    checkout.finish("run")
    ended = subprocess.run(
        [
            "bash",
            "-c",
            f'umask 077; exec env -i OYEZ_PYTHON= "$1" {closed}',
            "bash",
            checkout.root / "scripts" / "run",
        ],
        cwd=checkout.root,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    if ">&-" not in closed.replace("2>&-", ""):
        assert ended.stdout.splitlines()[-1] == "run"


def checks(checkout: Checkout, **results: int) -> None:
    """Fake the tools that scripts/test calls; each ends with the given status."""
    checkout.finish("dev")
    for tool in ("ruff", "mypy"):
        checkout.fake(
            tool,
            f'echo "{tool} $*"; exit {results.get(tool, 0)}',
            folder=checkout.root / ".venv/bin",
        )
    checkout.fake("shellcheck", f"exit {results.get('shellcheck', 0)}")
    checkout.fake(
        "pytest",
        f'echo "pytest $*"; echo "threads $OYEZ_TEST_THREADS"; echo "== 3 passed in 0.1s =="\n'
        f"exit {results.get('pytest', 0)}",
    )


def test_test_ends_with_pytests_own_words(checkout: Checkout) -> None:
    checks(checkout)
    ended = checkout.run("scripts/test")
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.splitlines()[-1] == "== 3 passed in 0.1s =="
    assert "threads 1" in ended.stdout
    assert "--cov" in ended.stdout
    for name in ("ruff check", "ruff format --check", "mypy"):
        assert f"{name}\n" in ended.stderr.replace(" \n", "\n")


@pytest.mark.parametrize(
    ("results", "status", "named"),
    [
        ({"ruff": 4, "mypy": 5}, 4, "failed before pytest: ruff check ruff format mypy"),
        ({"mypy": 5, "pytest": 1}, 5, "failed before pytest: mypy"),
        ({"shellcheck": 6}, 6, "failed before pytest: shellcheck"),
        ({"pytest": 1}, 1, ""),
    ],
)
def test_the_first_failure_gives_the_status_and_pytest_still_runs(
    checkout: Checkout, results: dict[str, int], status: int, named: str
) -> None:
    checks(checkout, **results)
    ended = checkout.run("scripts/test")
    assert ended.returncode == status
    assert named in ended.stderr
    assert ended.stdout.splitlines()[-1] == "== 3 passed in 0.1s =="


def test_arguments_go_to_pytest_alone(checkout: Checkout) -> None:
    checks(checkout, ruff=4)
    ended = checkout.run("scripts/test", "-k", "ring or gate")
    assert ended.returncode == 0
    assert "-m pytest -k ring or gate" in ended.stdout
    assert "ruff" not in ended.stderr


def test_the_tests_threads_are_the_callers_choice(checkout: Checkout) -> None:
    checks(checkout)
    assert "threads 2" in checkout.run("scripts/test", "-q", env={"OYEZ_TEST_THREADS": "2"}).stdout


def test_continuous_integration_drops_what_its_caller_had_set(checkout: Checkout) -> None:
    checks(checkout)
    settings = {"OYEZ_TEST_THREADS": "7", "PYTEST_ADDOPTS": "-x", "OYEZ_VENV": "/nowhere"}
    ended = checkout.run(".ci/run", env=settings)
    assert ended.returncode == 0, ended.stderr
    assert "threads 1" in ended.stdout


def test_continuous_integration_passes_the_status_on(checkout: Checkout) -> None:
    checks(checkout, pytest=3)
    assert checkout.run(".ci/run").returncode == 3


def test_no_script_needs_a_terminal_or_reads_its_callers_input(checkout: Checkout) -> None:
    checks(checkout)
    checkout.fake("pytest", 'read -r line && echo "read $line"; echo "== 1 passed =="')
    reader, writer = os.pipe()
    os.write(writer, b"the caller's\n")
    os.close(writer)
    with os.fdopen(reader) as stdin:
        ended = subprocess.run(
            [checkout.root / "scripts" / "test"],
            stdin=stdin,
            env=checkout.env,
            capture_output=True,
            text=True,
            check=False,
        )
    assert "read" not in ended.stdout
