"""Machines that cannot run Oyez, and machines that lack something: reason, remedy, exit code."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from scripts.checkout import Checkout

UNAVAILABLE, DISK, NETWORK, PERMISSION = 69, 74, 75, 77


def everything_below(folder: Path) -> set[Path]:
    return set(folder.rglob("*"))


def refused(checkout: Checkout, exit_code: int, *words: str, **env: str) -> None:
    """Run the command; it must end with this code and these words, and leave all as it was."""
    before = everything_below(checkout.root)
    ended = checkout.run("scripts/run", env=env)
    assert ended.returncode == exit_code, ended.stderr
    assert "remedy: " in ended.stderr
    for word in words:
        assert word in ended.stderr
    assert ended.stdout == ""
    assert everything_below(checkout.root) == before


def uname(machine: str, system: str = "Linux") -> str:
    return f"case $1 in -m) echo {machine} ;; *) echo {system} ;; esac"


@pytest.mark.parametrize("machine", ["aarch64", "armv8l"])
def test_a_32_bit_system_on_a_64_bit_kernel_is_told_to_install_the_64_bit_image(
    checkout: Checkout, machine: str
) -> None:
    checkout.fake("getconf", "echo 32")
    checkout.fake("dpkg", "echo armhf")
    checkout.fake("uname", uname(machine))
    refused(
        checkout,
        UNAVAILABLE,
        f"32-bit system (armhf) on a 64-bit kernel ({machine})",
        "install a 64-bit system",
        "64-bit Raspberry Pi OS",
    )


def test_a_32_bit_machine_is_not_said_to_have_a_64_bit_kernel(checkout: Checkout) -> None:
    checkout.fake("getconf", "echo 32")
    checkout.fake("dpkg", "echo armhf")
    checkout.fake("uname", uname("armv7l"))
    refused(checkout, UNAVAILABLE, "this is a 32-bit system (armhf); the speech engines")


def test_a_processor_without_engines_is_named(checkout: Checkout) -> None:
    checkout.fake("dpkg", "echo riscv64")
    checkout.fake("uname", uname("riscv64"))
    refused(
        checkout, UNAVAILABLE, "no speech engines for this processor (riscv64)", "amd64 or arm64"
    )


def test_another_operating_system_is_named(checkout: Checkout) -> None:
    checkout.fake("uname", uname("arm64", "Darwin"))
    refused(checkout, UNAVAILABLE, "runs on Linux, not on Darwin")


def test_a_python_that_was_named_and_is_too_old_is_refused_by_version(checkout: Checkout) -> None:
    old = checkout.fake("old-python", "echo '3.10.4|unsupported|yes|yes|/opt/python3.10'")
    refused(
        checkout,
        UNAVAILABLE,
        f"{old} is 3.10.4 (unsupported)",
        "set OYEZ_PYTHON to a fitting interpreter",
        OYEZ_PYTHON=str(old),
    )


def test_a_python_that_was_named_and_does_not_exist_is_refused(checkout: Checkout) -> None:
    refused(checkout, UNAVAILABLE, "/no/python does not run", OYEZ_PYTHON="/no/python")


def test_where_no_python_fits_every_one_that_was_found_is_named(checkout: Checkout) -> None:
    checkout.fake("python3", "echo '3.9.2|unsupported|yes|yes|/usr/bin/python3.9'")
    checkout.fake("python3.13", "echo '3.13.1|free-threaded|yes|yes|/opt/python3.13t'")
    ended = checkout.bash(
        "python_candidates=(python3 python3.13 python3.77); unset OYEZ_PYTHON; find_python"
    )
    assert ended.returncode == UNAVAILABLE
    assert f"{checkout.tools}/python3 is 3.9.2 (unsupported)" in ended.stderr
    assert "python3.13 is 3.13.1 (free-threaded)" in ended.stderr
    assert "Debian 12 and 13 bring one" in ended.stderr


def test_a_machine_without_any_python_gets_debians(checkout: Checkout) -> None:
    ended = checkout.bash(
        "python_candidates=(python3.77); unset OYEZ_PYTHON; is_debian() { true; }\n"
        'find_python; find_missing; echo "${missing_packages[@]}"'
    )
    assert ended.returncode == 0, ended.stderr
    assert "python3 python3-dev python3-venv" in ended.stdout


def test_a_complete_python_is_preferred_to_one_without_headers(checkout: Checkout) -> None:
    checkout.fake("first", "echo '3.11.2||yes|no|/usr/bin/python3.11'")
    checkout.fake("second", "echo '3.12.1||yes|yes|/opt/python3.12'")
    ended = checkout.bash(
        'python_candidates=(first second); unset OYEZ_PYTHON; find_python; echo "$python"'
    )
    assert ended.stdout == "/opt/python3.12\n"


def test_the_first_python_is_taken_where_none_is_complete(checkout: Checkout) -> None:
    checkout.fake("first", "echo '3.13.5||no|no|/usr/bin/python3.13'")
    checkout.fake("second", "echo '3.12.1||yes|no|/opt/python3.12'")
    ended = checkout.bash(
        "python_candidates=(first second); unset OYEZ_PYTHON; find_python; find_missing\n"
        'echo "$python: ${missing_packages[*]}"'
    )
    assert ended.stdout.startswith("/usr/bin/python3.13: ")
    assert "python3.13-venv" in ended.stdout
    assert "python3.13-dev" in ended.stdout


def test_the_running_interpreter_is_found_to_fit(checkout: Checkout) -> None:
    ended = checkout.bash('find_python; echo "$python_version $python_has_venv"')
    assert ended.returncode == 0, ended.stderr
    version, has_venv = ended.stdout.split()
    assert version in {"3.11", "3.12", "3.13"}
    assert has_venv == "yes"


def plain_user_without_portaudio(checkout: Checkout) -> None:
    checkout.fake("id", "echo 1000")
    checkout.fake("ldconfig", "true")
    checkout.fake("apt-get", f'touch "{checkout.tools}/apt was called"')


def test_a_user_without_sudo_is_given_the_command_for_root(checkout: Checkout) -> None:
    checkout.without("sudo")
    plain_user_without_portaudio(checkout)
    refused(
        checkout,
        PERMISSION,
        "there is no sudo to install them: libportaudio2",
        "run as root: apt-get update && apt-get install --yes --no-install-recommends libporta",
    )
    assert not (checkout.tools / "apt was called").exists()


def test_a_password_is_not_asked_for_without_a_terminal(checkout: Checkout) -> None:
    plain_user_without_portaudio(checkout)
    checkout.fake("sudo", '[[ $1 == -n ]] || touch "$0 asked"; exit 1')
    refused(
        checkout,
        PERMISSION,
        "sudo wants a password but there is no terminal",
        "run as root: apt-get update && apt-get install",
    )
    assert not (checkout.tools / "sudo asked").exists()
    assert not (checkout.tools / "apt was called").exists()


def test_another_system_than_debian_hears_what_is_missing_in_words(checkout: Checkout) -> None:
    checkout.without("apt-get")
    checkout.fake("ldconfig", "true")
    refused(
        checkout,
        UNAVAILABLE,
        "missing on this system: PortAudio (libportaudio.so.2)",
        "the system's package manager (on Debian: libportaudio2)",
    )


def test_sudo_is_used_where_it_asks_for_nothing(checkout: Checkout) -> None:
    checkout.fake("id", "echo 1000")
    checkout.fake("sudo", 'echo "sudo $*" >>"$0.log"; [[ $1 != -n ]] || shift; exec "$@"')
    checkout.fake("apt-get", 'umask >>"$0.log"; echo "$DEBIAN_FRONTEND $*" >>"$0.log"')
    ended = checkout.bash(
        "umask 077; find_way_to_root libportaudio2; claim_venv\n"
        "install_debian_packages libportaudio2"
    )
    assert ended.returncode == 0, ended.stderr
    assert "installing Debian packages: libportaudio2" in ended.stderr
    told = (checkout.tools / "apt-get.log").read_text(encoding="utf-8")
    assert told.startswith("0022\n")  # what root installs must be readable whatever our umask is
    assert "noninteractive" in told
    assert "install --yes --no-install-recommends libportaudio2" in told
    assert "sudo -n env" in (checkout.tools / "sudo.log").read_text(encoding="utf-8")


def test_old_package_lists_are_renewed_before_giving_up(checkout: Checkout) -> None:
    checkout.fake("id", "echo 0")
    checkout.fake(
        "apt-get",
        f'[[ "$*" != *update* ]] || touch "{checkout.tools}/updated"\n'
        f'[[ -e "{checkout.tools}/updated" ]] || {{ echo "E: 404 Not Found"; exit 100; }}',
    )
    ended = checkout.bash("find_way_to_root gcc; claim_venv; install_debian_packages gcc")
    assert ended.returncode == 0, ended.stderr


@pytest.mark.parametrize(
    ("apt_says", "exit_code", "reason", "remedy"),
    [
        (
            "Err:1 http://mirror trixie InRelease\n  Temporary failure resolving 'mirror'",
            NETWORK,
            "Debian's mirror is not reachable, and these packages are missing: gcc",
            "connect the machine to the network",
        ),
        (
            "E: dpkg was interrupted, you must manually run 'dpkg --configure -a'",
            UNAVAILABLE,
            "apt is busy or was interrupted",
            "dpkg --configure -a",
        ),
        (
            "E: Could not get lock /var/lib/dpkg/lock-frontend. It is held by process 1",
            UNAVAILABLE,
            "apt is busy",
            "let the other installation end",
        ),
        (
            "E: Unable to locate package gcc",
            UNAVAILABLE,
            "package lists do not hold all of these: gcc",
            "/etc/apt names a mirror of Debian 12",
        ),
        (
            "E: You don't have enough free space in /var/cache/apt/archives/.",
            DISK,
            "the disk is full",
            "free some space",
        ),
        ("E: something new", UNAVAILABLE, "apt-get could not install: gcc", "by hand as root"),
    ],
)
def test_what_apt_says_is_told_in_short_with_a_remedy(
    checkout: Checkout, apt_says: str, exit_code: int, reason: str, remedy: str
) -> None:
    checkout.fake("id", "echo 0")
    checkout.fake("apt-get", f'echo "{apt_says}"; exit 100')
    ended = checkout.bash("find_way_to_root gcc; claim_venv; install_debian_packages gcc")
    assert ended.returncode == exit_code
    assert reason in ended.stderr
    assert remedy in ended.stderr
    assert apt_says.splitlines()[-1].strip() in ended.stderr
    assert f"log: {checkout.state}/log" in ended.stderr


def test_a_package_that_is_only_welcome_stops_nothing(checkout: Checkout) -> None:
    checkout.fake("id", "echo 0")
    checkout.fake("apt-get", 'echo "E: Unable to locate package $*"; exit 100')
    ended = checkout.bash("claim_venv; welcome no-such-tool no-such-tool")
    assert ended.returncode == 0
    assert "no-such-tool cannot be installed; going on without" in ended.stderr


def test_a_full_disk_is_seen_before_anything_is_written(checkout: Checkout) -> None:
    checkout.fake("df", "printf 'Avail\\n   12\\n'")
    refused(checkout, DISK, "has 12 MB free, set-up needs", "free some space", "OYEZ_VENV=")


def test_a_place_that_cannot_be_written_is_named(checkout: Checkout, tmp_path: Path) -> None:
    obstacle = tmp_path / "a file"
    obstacle.touch()
    refused(
        checkout,
        PERMISSION,
        f"{obstacle} cannot be written by",
        "name another folder: OYEZ_VENV=",
        OYEZ_VENV=str(obstacle / "venv"),
    )


def test_an_environment_that_others_made_is_left_alone(checkout: Checkout) -> None:
    (checkout.root / ".venv").mkdir()
    (checkout.root / ".venv" / "pyvenv.cfg").write_text("home = /usr/bin\n", encoding="utf-8")
    refused(checkout, PERMISSION, "was not made by this command", "move it away")


def test_a_user_without_any_home_hears_that_home_is_missing(checkout: Checkout) -> None:
    checkout.fake("getent", "exit 2")
    del checkout.env["HOME"]
    refused(checkout, UNAVAILABLE, "HOME is not set", "set HOME to a folder")
