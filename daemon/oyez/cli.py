"""The commands: parse, call, print, exit code. Nothing is decided here.

Data goes to stdout, talk to stderr. What is heavy is imported by the command that needs it.
"""

from __future__ import annotations

import argparse
import contextlib
import errno
import io
import json
import logging
import math
import os
import signal
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

from oyez import __version__
from oyez.errors import ConfigError, OutputError, OyezError, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from oyez.config import Loaded
    from oyez.models.store import ModelState, ModelStore

EXIT_CODES = """\
exit codes:
    0  done                            69  a model, device or library is missing
    1  something unexpected            74  a file cannot be written, a download failed
    2  the command line makes no sense 78  the configuration is wrong
   65  a file cannot be used          130  stopped by Ctrl-C  (`oyez run`: 0)
   66  a file is not there            143  stopped by SIGTERM (`oyez run`: 0)
"""

NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)
"""How writing fails for want of room. Whoever opens a file names it; stdout has no name."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit code."""
    _see_to_the_streams()
    options = _parser().parse_args(arguments)
    logging.basicConfig(
        level=logging.DEBUG if options.verbose else logging.INFO,
        format="%(asctime)s %(levelname)-7s %(message)s",
        datefmt="%H:%M:%S",
        stream=sys.stderr,
    )
    # Without it SIGTERM would end us at once, and leave half-written files behind.
    before = signal.signal(signal.SIGTERM, _terminate)
    try:
        code: int = options.command(options)
        sys.stdout.flush()
    except OyezError as error:
        _print_error(error)
        code = error.exit_code
    except KeyboardInterrupt:
        code = 130
    except BrokenPipeError:
        _give_up_stdout()
        code = 1
    except OSError as error:
        if error.errno not in NO_ROOM:
            raise
        _give_up_stdout()
        full = OutputError(f"standard output cannot be written: {error.strerror}")
        _print_error(full)
        code = full.exit_code
    finally:
        signal.signal(signal.SIGTERM, before)
    if any(thread.name.startswith("oyez-") for thread in threading.enumerate()):
        # A model is still at work on a thread that was left behind: leaving the interpreter in
        # the ordinary way would take it away under the native code's feet.
        logging.shutdown()
        os._exit(code)
    return code


def _see_to_the_streams() -> None:
    """Make the standard streams usable, whatever we were started with."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:  # closed: the next file that is opened would get its number
            nowhere = Path(os.devnull).open(mode, encoding="utf-8")  # noqa: SIM115 - for all our life
            setattr(sys, name, nowhere)
    for stream in (sys.stdin, sys.stdout):
        if isinstance(stream, io.TextIOWrapper):
            # A letter that has no place in the encoding must not end the command.
            stream.reconfigure(errors="replace")


def _terminate(number: int, _frame: object) -> None:
    sys.exit(128 + number)


def _give_up_stdout() -> None:
    """What is still buffered must not fail once more at the end."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _print_error(error: OyezError) -> None:
    # A configuration's mistakes begin with file and line, as editors know them.
    what = error.message if isinstance(error, ConfigError) else f"oyez: {error.message}"
    print(what, file=sys.stderr)
    if error.remedy:
        print(f"      {error.remedy}", file=sys.stderr)


# -- commands ---------------------------------------------------------------------------------


def _run(options: argparse.Namespace) -> int:
    from oyez.app import App, RunOptions
    from oyez.ops.console import Console, reaches_journal

    settings = _load(options).settings
    private = reaches_journal(sys.stdout.fileno())
    console = Console(
        as_json=options.json, with_text=settings.journal.log_transcripts or not private
    )
    run_options = RunOptions(
        recording=options.input,
        answer_wav=options.output,
        once=options.once,
        paced=not options.unpaced,
    )
    app = App(settings, run_options, console)
    app.run()
    # All is told and closed: one more Ctrl-C must not hit us while models are freed.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    return 0


def _check(options: argparse.Namespace) -> int:
    loaded = _load(options)
    changed = sum(origin != "default" for origin in loaded.origins.values())
    print(f"{loaded.path or 'the defaults'}: right, {changed} of {len(loaded.origins)} values set")
    return 0


def _config_show(options: argparse.Namespace) -> int:
    from oyez.config_texts import show

    print(show(_load(options), options.json), end="")
    return 0


def _config_schema(_options: argparse.Namespace) -> int:
    from oyez.config_texts import schema_text

    print(schema_text(), end="")
    return 0


def _models_list(options: argparse.Namespace) -> int:
    _print_models(_store(options).list(), as_json=options.json)
    return 0


def _models_fetch(options: argparse.Namespace) -> int:
    from oyez.models.progress import progress_on

    loaded = _load(options)
    names = list(options.names)
    if options.needed:
        settings = loaded.settings
        names += [settings.transcription.model, settings.voice.model]
    if not names:
        raise UsageError("no model is named", remedy="name some, or give --needed")
    store = _store(options, loaded)
    for name in names:
        path = store.fetch(name, offline=options.offline, progress=progress_on(sys.stderr))
        if not options.needed:
            print(path)
    return 0


def _models_verify(options: argparse.Namespace) -> int:
    from oyez.models.store import State

    states = _store(options).verify(options.names)
    _print_models(states, as_json=options.json)
    return 0 if all(state.state is State.PRESENT for state in states) else 69


def _models_path(options: argparse.Namespace) -> int:
    print(_store(options).ready(options.name))
    return 0


def _transcribe(options: argparse.Namespace) -> int:
    from oyez import offline
    from oyez.app import inference_threads
    from oyez.models.catalogue import Kind
    from oyez.speech import engines

    loaded = _load(options)
    settings = loaded.settings
    model = _store(options, loaded).ready(settings.transcription.model, Kind.WHISPER)
    engine = engines.make_transcriber(settings.transcription, model, inference_threads(settings))
    code = 0
    for number, path in enumerate(options.files, start=1):
        try:
            with _progress(f"{number}/{len(options.files)} {path}"):
                reading = offline.transcribe(Path(path), engine, engines.make_vad(settings.vad))
        except OyezError as error:
            _print_error(error)
            code = code or error.exit_code
            continue
        if options.json:
            fields = {"file": path, "text": reading.text, "probability": reading.probability}
            print(json.dumps(fields, ensure_ascii=False), flush=True)
        else:
            print(reading.text, flush=True)
    return code


@contextlib.contextmanager
def _progress(text: str) -> Iterator[None]:
    """Show on a terminal what is being worked on; nothing of it stays."""
    if not sys.stderr.isatty():
        yield
        return
    print(f"\r\033[K{text}", end="", file=sys.stderr, flush=True)
    try:
        yield
    finally:
        print("\r\033[K", end="", file=sys.stderr, flush=True)


def _say(options: argparse.Namespace) -> int:
    from oyez import offline
    from oyez.app import inference_threads
    from oyez.audio.portaudio import PortAudioPlayback
    from oyez.models.catalogue import Kind
    from oyez.speech import engines

    loaded = _load(options)
    settings = loaded.settings
    text = sys.stdin.read() if options.text == "-" else options.text
    model = _store(options, loaded).ready(settings.voice.model, Kind.PIPER)
    engine = engines.make_synthesizer(settings.voice, model, inference_threads(settings))
    if options.output is not None:
        spoken = offline.say_to_file(text, engine, options.output)
    else:
        playback = PortAudioPlayback(settings.audio.playback.device, 20)
        try:
            spoken = offline.say_aloud(text, engine, playback)
        finally:
            playback.close()
    if not spoken:
        print("oyez: there is nothing in the text that can be spoken", file=sys.stderr)
    return 0 if spoken else 65


def _devices(options: argparse.Namespace) -> int:
    from oyez import places
    from oyez.tools import devices

    seen = devices.survey(places.proc_asound())
    offered = devices.sound_server() if not seen else ()
    if options.json:
        for entry in devices.fields(seen, offered):
            print(json.dumps(entry, ensure_ascii=False))
    else:
        print("\n".join(devices.lines(seen, offered)))
    return 0


def _meter(options: argparse.Namespace) -> int:
    from oyez.tools import meter

    meter.run(_load(options).settings, options.seconds, as_json=options.json, out=sys.stdout)
    return 0


def _calibrate(options: argparse.Namespace) -> int:
    from oyez.tools import calibrate

    if options.config is None and options.write is not None and options.write.exists():
        options.config = options.write
    settings = _load(options).settings
    calibrate.run(settings, options.write, as_json=options.json, out=sys.stdout)
    return 0


def _version(options: argparse.Namespace) -> int:
    print(json.dumps({"version": __version__}) if options.json else f"oyez {__version__}")
    return 0


# -- what the commands share ------------------------------------------------------------------


def _load(options: argparse.Namespace) -> Loaded:
    from oyez.config import load

    return load(options.config)


def _store(options: argparse.Namespace, loaded: Loaded | None = None) -> ModelStore:
    from oyez.models.catalogue import Catalogue
    from oyez.models.store import ModelStore

    folder = (loaded or _load(options)).settings.models.folder_path
    return ModelStore(folder, Catalogue.load())


def _print_models(states: Sequence[ModelState], *, as_json: bool) -> None:
    if as_json:
        for state in states:
            print(json.dumps(_model_fields(state), ensure_ascii=False))
        return
    width = max((len(state.name) for state in states), default=0)
    for state in states:
        found = state.state.value + (f": {state.why}" if state.why and not _gone(state) else "")
        size_mb = state.size_bytes / 1e6
        languages = " ".join(state.languages)
        print(f"{state.name:<{width}}  {size_mb:5.0f} MB  {languages:<12}  {found}")


def _gone(state: ModelState) -> bool:
    from oyez.models.store import State

    return state.state is State.MISSING


def _model_fields(state: ModelState) -> dict[str, Any]:
    return {
        "name": state.name,
        "kind": state.kind.value,
        "bytes": state.size_bytes,
        "licence": state.licence,
        "languages": list(state.languages),
        "description": state.description,
        "state": state.state.value,
        "verified": state.verified,
        "why": state.why,
    }


# -- the command line -------------------------------------------------------------------------


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="oyez",
        description="A voice daemon for small Linux boards: it hears, transcribes and answers.",
        epilog=EXIT_CODES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--verbose", action="store_true", help="tell more on stderr")
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    _add_run(commands)
    _add_configuration(commands)
    _add_models(commands)
    _add_offline(commands)
    _add_sound(commands)
    version = _command(commands, "version", _version, "print the version")
    _json(version)
    return parser


def _add_run(commands: Any) -> None:
    run = _command(commands, "run", _run, "the daemon: hear, transcribe, answer")
    _config(run)
    run.add_argument("--input", type=Path, metavar="FILE", help="a recording as the microphone")
    run.add_argument("--output", type=Path, metavar="FILE", help="the WAV for the answer")
    run.add_argument("--once", action="store_true", help="end after the first answer")
    run.add_argument(
        "--unpaced", action="store_true", help="as fast as the work allows, not in real time"
    )
    _json(run)


def _add_configuration(commands: Any) -> None:
    check = _command(commands, "check", _check, "check a configuration")
    check.add_argument(
        "config", type=Path, nargs="?", metavar="FILE", help="by default /etc/oyez/oyez.yaml"
    )
    config = _group(commands, "config", "show the configuration or its schema")
    show = _command(config, "show", _config_show, "the effective values and where they are set")
    _config(show)
    _json(show)
    _command(config, "schema", _config_schema, "the JSON Schema, for editors")


def _add_models(commands: Any) -> None:
    models = _group(commands, "models", "list, fetch and verify models")
    listing = _command(models, "list", _models_list, "the models there are, and which are here")
    _json(listing)
    fetch = _command(models, "fetch", _models_fetch, "fetch models")
    fetch.add_argument("names", nargs="*", metavar="NAME")
    fetch.add_argument("--needed", action="store_true", help="those that the configuration names")
    fetch.add_argument("--offline", action="store_true", help="use no network, only look")
    verify = _command(models, "verify", _models_verify, "compute the checksums of models")
    verify.add_argument("names", nargs="*", metavar="NAME", help="by default all that are here")
    _json(verify)
    path = _command(models, "path", _models_path, "the path of a model that is here")
    path.add_argument("name", metavar="NAME")
    for command in (listing, fetch, verify, path):
        _config(command)


def _add_offline(commands: Any) -> None:
    transcribe = _command(commands, "transcribe", _transcribe, "the words in recordings")
    transcribe.add_argument("files", nargs="+", metavar="FILE")
    _config(transcribe)
    _json(transcribe)
    say = _command(commands, "say", _say, "speak a text")
    say.add_argument("text", metavar="TEXT", help="the text, or - for standard input")
    say.add_argument(
        "-o", "--output", type=Path, metavar="FILE", help="into a WAV, not the speaker"
    )
    _config(say)


def _add_sound(commands: Any) -> None:
    devices = _command(commands, "devices", _devices, "the sound devices and what they can do")
    meter = _command(commands, "meter", _meter, "the microphone's levels, live")
    meter.add_argument("--seconds", type=_seconds, metavar="N", help="end after so long")
    _config(meter)
    calibrate = _command(commands, "calibrate", _calibrate, "find the right gain, in half a minute")
    calibrate.add_argument(
        "--write", type=Path, metavar="FILE", help="store what is found in this YAML file"
    )
    _config(calibrate)
    for command in (devices, meter, calibrate):
        _json(command)


def _seconds(text: str) -> float:
    with contextlib.suppress(ValueError):
        if 0 < float(text) < math.inf:
            return float(text)
    raise argparse.ArgumentTypeError(f"{text} is not a number of seconds above 0")


def _group(commands: Any, name: str, purpose: str) -> Any:
    parser = _described(commands, name, purpose)
    return parser.add_subparsers(metavar="COMMAND", required=True)


def _command(
    commands: Any, name: str, function: Callable[[argparse.Namespace], int], purpose: str
) -> argparse.ArgumentParser:
    parser = _described(commands, name, purpose)
    parser.set_defaults(command=function, config=None)
    return parser


def _described(commands: Any, name: str, purpose: str) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = commands.add_parser(
        name,
        help=purpose,
        description=purpose,
        epilog=EXIT_CODES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    return parser


def _config(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--config", type=Path, metavar="FILE", help="by default /etc/oyez/oyez.yaml if it is there"
    )


def _json(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="JSON, one object a line, on stdout")
