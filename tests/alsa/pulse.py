"""A private PulseAudio: a speaker that makes no sound, and a microphone that hears it.

Real pacing and real mixing, through alsa-lib's own ``pulse`` plugins, as one realistic whole. It
needs neither D-Bus nor a session, and runs as root or as anybody.
"""

from __future__ import annotations

import ctypes.util
import os
import shutil
import signal
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import TracebackType
    from typing import Self

_CONFIGURATION = """\
</usr/share/alsa/alsa.conf>
pcm.!hw {{
  @args [ CARD DEV SUBDEV ]
  @args.CARD {{ type string default "0" }}
  @args.DEV {{ type integer default 0 }}
  @args.SUBDEV {{ type integer default -1 }}
  type pulse
  server "{server}"
}}
pcm.!plughw {{
  @args [ CARD DEV SUBDEV ]
  @args.CARD {{ type string default "0" }}
  @args.DEV {{ type integer default 0 }}
  @args.SUBDEV {{ type integer default -1 }}
  type plug
  slave.pcm {{ type pulse server "{server}" }}
}}
pcm.!default {{ type pulse server "{server}" }}
ctl.!hw {{
  @args [ CARD ]
  @args.CARD {{ type string default "0" }}
  type pulse
  server "{server}"
}}
ctl.!default {{ type pulse server "{server}" }}
"""


def missing_server() -> str:
    """Why there can be no PulseAudio on this machine; empty when there can."""
    if shutil.which("pulseaudio") is None:
        return "pulseaudio is not installed (apt install pulseaudio)"
    asound = ctypes.util.find_library("asound")
    folders = [*Path("/usr/lib").glob("*/alsa-lib"), Path("/usr/lib/alsa-lib")]
    plugins = [folder / "libasound_module_pcm_pulse.so" for folder in folders]
    if asound is None or not any(plugin.exists() for plugin in plugins):
        return "ALSA's pulse plugins are not installed (apt install libasound2-plugins)"
    return ""


class Pulse:
    """A server in a folder of its own; ``environment`` leads ALSA and PulseAudio's tools to it."""

    def __init__(self, folder: Path, *, rate: int = 48000, channels: int = 2) -> None:
        self.folder = folder
        self.rate = rate
        self.channels = channels
        self.socket = folder / "native"
        self.configuration = folder / "asound.conf"
        server = f"unix:{self.socket}"
        self.environment = {
            "ALSA_CONFIG_PATH": str(self.configuration),
            "PULSE_SERVER": server,
            "PULSE_RUNTIME_PATH": str(folder / "run"),
            "PULSE_STATE_PATH": str(folder / "state"),
            "PULSE_COOKIE": str(folder / "cookie"),
        }
        self._server = server
        folder.mkdir(exist_ok=True)

    def __enter__(self) -> Self:
        (self.folder / "run").mkdir(mode=0o700)
        (self.folder / "state").mkdir()
        self.configuration.write_text(_CONFIGURATION.format(server=self._server))
        environment = {**os.environ, **self.environment, "HOME": str(self.folder)}
        # A session's bus must not hear of this server, nor may it start another.
        for name in ("DBUS_SESSION_BUS_ADDRESS", "DISPLAY", "XDG_RUNTIME_DIR"):
            environment.pop(name, None)
        # In the background: the command returns when the server answers.
        subprocess.run(
            [
                "pulseaudio",
                "-n",
                "--daemonize=yes",
                "--fail=yes",
                "--use-pid-file=yes",
                "--exit-idle-time=-1",
                "--disable-shm=yes",
                "--realtime=no",
                "--high-priority=no",
                f"--log-target=file:{self.folder}/log",
                "-L",
                f"module-null-sink sink_name=speaker rate={self.rate} channels={self.channels}",
                # A null sink that nobody listens to renders two seconds at a time, and the first
                # period would come that late. A listener who wants little latency stays with it;
                # only the very first period after the start takes those two seconds.
                "-L",
                "module-null-sink sink_name=void",
                "-L",
                "module-loopback source=speaker.monitor sink=void latency_msec=10",
                "-L",
                f"module-native-protocol-unix auth-anonymous=1 socket={self.socket}",
            ],
            check=True,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
        )
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.kill()

    def kill(self) -> None:
        """Ends the server at once, as a crash would; harmless when it is gone."""
        pid_file = self.folder / "run" / "pid"
        try:
            os.kill(int(pid_file.read_text()), signal.SIGKILL)
        except (FileNotFoundError, ProcessLookupError):
            return
        pid_file.unlink()
