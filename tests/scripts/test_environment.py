"""The virtual environment: when it is taken as it is, and how what goes wrong with pip is told."""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from scripts.checkout import Checkout

PACKAGE, DISK, NETWORK, PERMISSION = 70, 74, 75, 77


def is_set_up(checkout: Checkout, kind: str = "run", **env: str) -> bool:
    return checkout.bash(f"is_set_up {kind}", **env).returncode == 0


def test_a_finished_set_up_is_taken_as_it_is(checkout: Checkout) -> None:
    checkout.finish("run")
    assert is_set_up(checkout)
    assert not is_set_up(checkout, "dev")


@pytest.mark.parametrize(
    "changed", ["pyproject.toml", "scripts/locks/run.lock", "scripts/locks/build.lock"]
)
def test_other_pins_call_for_another_set_up(checkout: Checkout, changed: str) -> None:
    checkout.finish("run")
    with (checkout.root / changed).open("a", encoding="utf-8") as file:
        file.write("\n")
    assert not is_set_up(checkout)


def test_an_environment_whose_python_is_gone_is_not_trusted(checkout: Checkout) -> None:
    checkout.finish("run")
    checkout.fake("python", "exit 127", folder=checkout.root / ".venv" / "bin")
    assert not is_set_up(checkout)


def test_a_moved_checkout_is_set_up_anew(checkout: Checkout, tmp_path: Path) -> None:
    checkout.finish("run")
    checkout.root = checkout.root.rename(tmp_path / "moved")
    assert not is_set_up(checkout)
    extended = checkout.bash("find_python; can_be_extended")
    assert extended.returncode == 1


def test_another_python_that_is_asked_for_calls_for_another_set_up(checkout: Checkout) -> None:
    checkout.finish("run")
    other = checkout.fake("other", "echo '3.12.99||yes|yes|/opt/python3.12'")
    assert not is_set_up(checkout, OYEZ_PYTHON=str(other))


def test_a_finished_set_up_is_extended_and_an_interrupted_one_begun_anew(
    checkout: Checkout,
) -> None:
    checkout.finish("run")
    assert checkout.bash("find_python; can_be_extended").returncode == 0
    checkout.bash("set_stamps_aside")
    assert checkout.bash("find_python; can_be_extended").returncode == 1


@pytest.mark.parametrize(
    ("pip_said", "still_set_up"),
    [
        ("Collecting numpy==2.4.6", True),
        ("Installing collected packages: numpy", False),
    ],
)
def test_a_failure_before_pip_changes_anything_leaves_the_old_set_up_usable(
    checkout: Checkout, pip_said: str, *, still_set_up: bool
) -> None:
    checkout.finish("run", "dev")
    ended = checkout.bash(
        f"claim_venv; step installing; set_stamps_aside; echo '{pip_said}' >>\"$log\"\n"
        "explain_pip_failure"
    )
    assert ended.returncode == PACKAGE
    assert is_set_up(checkout) == still_set_up
    assert is_set_up(checkout, "dev") == still_set_up


def test_rebuilding_keeps_the_log_alone(checkout: Checkout) -> None:
    checkout.finish("run")
    leftover = checkout.root / ".venv" / "lib" / "leftover"
    leftover.mkdir(parents=True)
    ended = checkout.bash("find_python; claim_venv; work() { :; }; build_venv")
    assert ended.returncode == 0, ended.stderr
    assert sorted(path.name for path in (checkout.root / ".venv").iterdir()) == ["oyez-set-up"]
    assert sorted(path.name for path in checkout.state.iterdir()) == ["log"]


def test_an_index_that_does_not_answer_is_named_with_the_remedy(checkout: Checkout) -> None:
    """The real pip asks a port at which nobody listens; --dry-run keeps it from installing."""
    ended = checkout.bash(
        'venv=$(dirname -- "$(dirname -- "$OYEZ_PYTHON")"); claim_venv; step installing\n'
        "pip_install --dry-run --ignore-installed --require-hashes"
        ' -r "$root/scripts/locks/build.lock" || explain_pip_failure',
        PIP_CONFIG_FILE="/dev/null",
        PIP_INDEX_URL="http://127.0.0.1:9/simple",
    )
    assert ended.returncode == NETWORK, ended.stderr
    assert "the package index is not reachable" in ended.stderr
    assert "remedy: connect the machine to the network" in ended.stderr
    assert "Connection refused" in ended.stderr
    assert f"log: {checkout.state}/log" in ended.stderr


@pytest.mark.parametrize(
    ("pip_says", "exit_code", "reason", "remedy"),
    [
        (
            "ERROR: Could not install packages: [Errno 28] No space left on device",
            DISK,
            "the disk is full",
            "free some space",
        ),
        (
            "ERROR: THESE PACKAGES DO NOT MATCH THE HASHES FROM THE REQUIREMENTS FILE.",
            PACKAGE,
            "is not the one that is pinned",
            "pip cache purge",
        ),
        (
            "WARNING: Retrying after connection broken by 'SSLError(CERTIFICATE_VERIFY_FAILED)'",
            NETWORK,
            "certificate is not accepted",
            "clock",
        ),
        (
            (
                "WARNING: Retrying after connection broken by 'NewConnectionError(...)'\n"
                "ERROR: No matching distribution found for numpy==2.4.6"
            ),
            NETWORK,
            "not reachable",
            "mirror or proxy",
        ),
        (
            "ERROR: No matching distribution found for numpy==2.4.6",
            PACKAGE,
            "does not offer a package that is pinned",
            "mirror",
        ),
        (
            "  alsaaudio.c:28:10: fatal error: alsa/asoundlib.h: No such file or directory",
            PACKAGE,
            "cannot be installed",
            "too little memory",
        ),
        (
            "ERROR: Could not install packages due to an OSError: [Errno 13] Permission denied",
            PERMISSION,
            "cannot be written",
            "as the user who owns it",
        ),
    ],
)
def test_what_pip_says_is_told_in_short_with_a_remedy(
    checkout: Checkout, pip_says: str, exit_code: int, reason: str, remedy: str
) -> None:
    ended = checkout.bash(
        'claim_venv; step earlier; echo "ERROR: No space left on device" >>"$log"\n'
        'step installing; printf "%s\\n" "$PIP_SAYS" >>"$log"; explain_pip_failure',
        PIP_SAYS=pip_says,
    )
    assert ended.returncode == exit_code
    assert reason in ended.stderr
    assert remedy in ended.stderr
    assert pip_says.splitlines()[-1].strip() in ended.stderr


def test_a_disk_so_full_that_the_log_could_not_say_it_is_still_named(checkout: Checkout) -> None:
    checkout.fake("df", "printf 'Avail\\n    0\\n'")
    ended = checkout.bash("claim_venv; step installing; explain_pip_failure")
    assert ended.returncode == DISK
    assert "the disk is full" in ended.stderr


def pip_that(checkout: Checkout, script: str) -> None:
    asked_too = f'echo "$@" >>"{checkout.tools}/asked"\n{script}'
    checkout.fake("python", asked_too, folder=checkout.root / ".venv" / "bin")


def asked(checkout: Checkout) -> list[str]:
    return (checkout.tools / "asked").read_text(encoding="utf-8").splitlines()


def test_no_patience_is_spent_on_an_index_that_cannot_be_reached(checkout: Checkout) -> None:
    pip_that(checkout, "echo NewConnectionError; exit 1")
    ended = checkout.bash("claim_venv; step installing; pip_install -r a.lock")
    assert ended.returncode == 1
    [only] = asked(checkout)
    assert "--retries 1 --timeout 8" in only


def test_an_index_that_is_slow_is_asked_again_with_the_users_own_patience(
    checkout: Checkout,
) -> None:
    pip_that(checkout, '[[ "$*" != *--retries* ]] || { echo ReadTimeoutError; exit 1; }')
    ended = checkout.bash("claim_venv; step installing; pip_install -r a.lock")
    assert ended.returncode == 0
    assert ["--retries" in line for line in asked(checkout)] == [True, False]


def test_an_index_that_has_answered_gets_the_users_own_patience(checkout: Checkout) -> None:
    pip_that(checkout, 'echo "  Downloading numpy.whl"')
    checkout.bash("claim_venv; step one; pip_install -r a.lock; step two; pip_install -r b.lock")
    assert ["--retries" in line for line in asked(checkout)] == [True, False]


def test_two_set_ups_at_once_wait_for_each_other(checkout: Checkout) -> None:
    checkout.state.mkdir(parents=True)
    held = os.open(checkout.state, os.O_RDONLY)
    fcntl.flock(held, fcntl.LOCK_EX)
    with subprocess.Popen(
        checkout.bash_command("claim_venv; say claimed"),
        env=checkout.env,
        stderr=subprocess.PIPE,
        text=True,
    ) as second:
        assert second.stderr is not None
        assert "another set-up is running" in second.stderr.readline()
        os.close(held)
        assert "claimed" in second.stderr.readline()
    assert second.returncode == 0


@pytest.mark.parametrize(
    ("number", "exit_code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)]
)
def test_a_signal_ends_set_up_and_all_that_it_started(
    checkout: Checkout, number: signal.Signals, exit_code: int
) -> None:
    """A grandchild holds the pipe open: that the pipe ends shows that the grandchild has ended."""
    checkout.finish("run")
    pipe = checkout.root / "pipe"
    os.mkfifo(pipe)
    script = (
        'claim_venv; step working; set_stamps_aside; stop_on_signals; export pipe="$root/pipe"\n'
        'work bash -c \'bash -c "exec sleep 100" >"$pipe" & wait\''
    )
    with subprocess.Popen(
        checkout.bash_command(script), env=checkout.env, stderr=subprocess.PIPE, text=True
    ) as stopped:
        with pipe.open("rb") as reader:
            stopped.send_signal(number)
            assert reader.read() == b""
        assert stopped.stderr is not None
        said = stopped.stderr.read()
    assert stopped.returncode == exit_code
    assert "stopped; run it again" in said
    assert is_set_up(checkout)  # nothing had been changed
