"""The settings: what the YAML file may say, what it means, and what holds when it says nothing.

The frozen types here are the only home of defaults; the annotation of each field is the only
home of what is allowed and of what it is about. From them come the loader's checks, the JSON
Schema, ``oyez config show``, ``config/oyez.yaml`` and the table in ``docs/configuration.md``.
The settings hold what the file says (``auto`` stays ``"auto"``).

Runs on the main thread, once at the start; the settings are frozen, so any thread may read them.
"""
# No "from __future__ import annotations" here: the annotations are read at run time.

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Final, Literal, get_args

from oyez import places
from oyez.config_kinds import (
    Choice,
    FilePath,
    Flag,
    Number,
    Reading,
    Template,
    Text,
    Whole,
    WordOr,
)
from oyez.config_sections import Items, OneKey, Section
from oyez.errors import ConfigError, NotFoundError
from oyez.yaml_reader import (
    MAX_BYTES,
    TOO_LARGE,
    Mark,
    Problem,
    Tree,
    place,
    printable,
    read,
)

Backend = Literal["auto", "alsa", "portaudio", "simulated"]
Format = Literal["auto", "S16_LE", "S24_LE", "S24_3LE", "S32_LE", "FLOAT_LE"]
Echo = Literal["gate", "external"]
VadEngine = Literal["webrtc"]
TranscriptionEngine = Literal["whisper.cpp"]
VoiceEngine = Literal["piper"]

DEFAULT: Final = "default"
"""The origin of a value that the file does not set."""

_MULTILINGUAL_MODEL = "base-q5_1"
_ENGLISH_ONLY = re.compile(r"\.en(?=$|[-.])")

# The languages of Whisper's multilingual models. Cantonese (yue) came with large-v3; in the
# smaller models its number stands for the order to translate.
_CODES: Final = (
    "en zh de es ru ko fr ja pt tr pl ca nl ar sv it id hi fi vi he uk el ms cs ro da hu ta no th "
    "ur hr bg lt la mi ml cy sk te fa lv bn sr az sl kn et mk br eu is hy ne mn bs kk sq sw gl mr "
    "pa si km sn yo so af oc ka be tg sd gu am yi lo uz fo ht ps tk nn mt sa lb my bo tl mg as tt "
    "haw ln ha ba jw su"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class CaptureSettings:
    """The microphone."""

    device: Annotated[
        str,
        WordOr(Text("the name of a sound device or a part of it")),
        "The device to listen to: a stable name of ALSA's, such as hw:CARD=Device,DEV=0, or a "
        "part of a card's name. auto takes a USB card before one that is built in.",
    ] = "auto"
    rate_hz: Annotated[
        int | Literal["auto"],
        WordOr(Whole(8_000, 192_000)),
        "The sampling rate to ask the card for; auto prefers 48 kHz.",
    ] = "auto"
    channels: Annotated[
        int | Literal["auto"],
        WordOr(Whole(1, 32)),
        "How many channels to ask the card for; auto prefers two.",
    ] = "auto"
    format: Annotated[
        Format,
        Choice(get_args(Format)),
        "The sample format to ask the card for; auto prefers 16 bits.",
    ] = "auto"
    period_ms: Annotated[
        int,
        Whole(5, 60),
        "How much sound is moved at a time; the card may grant another length.",
    ] = 20
    periods: Annotated[
        int,
        Whole(2, 32),
        "How many periods the card may hold: more survive a longer hold-up, at no cost of time.",
    ] = 8
    gain_db: Annotated[
        float | Literal["auto", "leave"],
        WordOr(Number(-30, 60), words=("auto", "leave")),
        "The microphone's amplification, in the card as far as that goes. auto brings speech near "
        "-22 dBFS and backs off when it clips; leave changes nothing.",
    ] = "auto"


@dataclass(frozen=True, slots=True, kw_only=True)
class PlaybackSettings:
    """The speaker."""

    device: Annotated[
        str,
        WordOr(Text("the name of a sound device or a part of it")),
        "The device to speak through: a stable name of ALSA's, such as hw:CARD=Device,DEV=0, or a "
        "part of a card's name. auto takes a USB card before one that is built in.",
    ] = "auto"
    rate_hz: Annotated[
        int | Literal["auto"],
        WordOr(Whole(8_000, 192_000)),
        "The sampling rate to ask the card for; auto prefers 48 kHz.",
    ] = "auto"
    channels: Annotated[
        int | Literal["auto"],
        WordOr(Whole(1, 32)),
        "How many channels to ask the card for; auto prefers two.",
    ] = "auto"
    format: Annotated[
        Format,
        Choice(get_args(Format)),
        "The sample format to ask the card for; auto prefers 16 bits.",
    ] = "auto"
    period_ms: Annotated[
        int,
        Whole(5, 60),
        "How much sound is moved at a time; the card may grant another length.",
    ] = 20
    periods: Annotated[
        int,
        Whole(2, 32),
        "How many periods the card may hold: each is one more period from the voice to the ear.",
    ] = 4
    volume_db: Annotated[
        float | Literal["leave"],
        WordOr(Number(-60, 12), words=("leave",)),
        "The speaker's volume in the card; leave changes nothing.",
    ] = "leave"


@dataclass(frozen=True, slots=True, kw_only=True)
class AudioSettings:
    """Where sound comes from and goes to."""

    backend: Annotated[
        Backend,
        Choice(get_args(Backend)),
        "The way to the sound devices. auto takes alsa where there is a card, portaudio where only "
        "a sound server offers a microphone, and at a desk without either the simulated room.",
    ] = "auto"
    capture: CaptureSettings = field(default_factory=CaptureSettings)
    playback: PlaybackSettings = field(default_factory=PlaybackSettings)
    echo: Annotated[
        Echo,
        Choice(get_args(Echo)),
        "How Oyez is kept from hearing itself. gate: the microphone is ignored while the device "
        "speaks. external: the sound card or something else cancels the echo.",
    ] = "gate"


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulationSettings:
    """The simulated room, which stands in for a microphone and a speaker."""

    questions: Annotated[
        tuple[str, ...],
        Items(Text(), least=1),
        "What is asked in the room, one question after the other, by a voice made beforehand.",
    ] = (
        "What time does the museum open?",
        "Could you turn on the kitchen light?",
        "How far is it to the next village?",
    )
    snr_db: Annotated[
        float, Number(0, 60), "How far the question's level is above that of the room's noise."
    ] = 20.0
    reverb_ms: Annotated[
        int, Whole(0, 2000), "The room's reverberation: the time in which it fades by 60 dB (RT60)."
    ] = 300
    seed: Annotated[
        int, Whole(0, 2**32 - 1), "The same seed makes the same noise and the same echoes."
    ] = 1
    answer_wav: Annotated[
        Path,
        FilePath(),
        "The file that the answer is written to; a relative path begins at the working directory.",
    ] = Path("oyez-answer.wav")


@dataclass(frozen=True, slots=True, kw_only=True)
class VadSettings:
    """Voice activity detection: which stretches of the sound are speech."""

    engine: Annotated[VadEngine, Choice(get_args(VadEngine)), "The detector."] = "webrtc"
    aggressiveness: Annotated[
        int,
        Whole(0, 3),
        "0 takes nearly everything for speech; 3 takes the least, and may miss soft speech.",
    ] = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class EndpointingSettings:
    """Where an utterance begins and where it ends."""

    pre_roll_ms: Annotated[
        int, Whole(0, 2000), "Sound kept from before the first speech, so that no word is cut off."
    ] = 400
    hangover_ms: Annotated[
        int,
        Whole(200, 3000),
        "The silence that ends an utterance: less answers sooner, more waits for slow speakers.",
    ] = 500
    min_speech_ms: Annotated[
        int,
        Whole(20, 2000),
        "With less speech than this it is no utterance but a click or a cough.",
    ] = 120
    max_utterance_s: Annotated[
        float,
        Number(2, 25),
        "An utterance that is longer than this is cut; what follows goes on in the next one.",
    ] = 20.0


@dataclass(frozen=True, slots=True, kw_only=True)
class TranscriptionSettings:
    """Text from speech."""

    engine: Annotated[
        TranscriptionEngine, Choice(get_args(TranscriptionEngine)), "The recognizer."
    ] = "whisper.cpp"
    model: Annotated[
        str,
        Text("the name of a model, see oyez models list"),
        "The recognizer's model. Those with .en in their names know English alone.",
    ] = "tiny.en-q5_1"
    language: Annotated[
        str,
        Choice(
            ("auto", *_CODES.split()), words="auto, or one of Whisper's codes, such as en, de or fr"
        ),
        "The language that is spoken; auto finds it out. All but en need a multilingual model.",
    ] = "en"
    threads: Annotated[
        int | Literal["auto"],
        WordOr(Whole(1, 64)),
        "The processor threads of the recognizer; auto leaves one core to the rest.",
    ] = "auto"


@dataclass(frozen=True, slots=True, kw_only=True)
class VoiceSettings:
    """Speech from text."""

    engine: Annotated[VoiceEngine, Choice(get_args(VoiceEngine)), "The synthesizer."] = "piper"
    model: Annotated[
        str, Text("the name of a voice, see oyez models list"), "The voice that speaks."
    ] = "en_US-joe-medium"
    volume_db: Annotated[
        float, Number(-40, 12), "How much louder (or, below 0, softer) than the voice itself."
    ] = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class EchoAnswer:
    """An answer that repeats what was heard; ``echo`` is a template with the field ``text``."""

    echo: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelsSettings:
    """Where the models are kept."""

    folder: Annotated[
        Path | Literal["auto"],
        WordOr(FilePath()),
        "The folder of the models. auto is $OYEZ_MODELS_DIR if set, else the service's state "
        "folder, else ~/.local/share/oyez/models.",
    ] = "auto"

    @property
    def folder_path(self) -> Path:
        """The folder itself, with ``auto`` looked up."""
        return self.folder if isinstance(self.folder, Path) else places.models_folder()


@dataclass(frozen=True, slots=True, kw_only=True)
class JournalSettings:
    """What the journal may know."""

    log_transcripts: Annotated[
        bool, Flag(), "Whether what people said and what was answered stands in the journal."
    ] = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The configuration of Oyez."""

    audio: AudioSettings = field(default_factory=AudioSettings)
    simulation: SimulationSettings = field(default_factory=SimulationSettings)
    vad: VadSettings = field(default_factory=VadSettings)
    endpointing: EndpointingSettings = field(default_factory=EndpointingSettings)
    transcription: TranscriptionSettings = field(default_factory=TranscriptionSettings)
    voice: VoiceSettings = field(default_factory=VoiceSettings)
    answer: Annotated[
        tuple[EchoAnswer, ...],
        Items(OneKey("echo", Template(fields=("text",)), EchoAnswer), most=1),
        "What is said in return. echo repeats what was heard, in the place of {text}. An empty "
        "list, [], means: do not answer.",
    ] = (EchoAnswer(echo="You said: {text}"),)
    models: ModelsSettings = field(default_factory=ModelsSettings)
    journal: JournalSettings = field(default_factory=JournalSettings)


ROOT: Final = Section(Settings)


@dataclass(frozen=True, slots=True, kw_only=True)
class Loaded:
    """Settings, and where each of them comes from."""

    settings: Settings
    path: Path | None
    """The file, or None if there is none: every value is then the default."""
    origins: Mapping[str, str]
    """For each dotted key ``default`` or ``file:line``."""


def load(path: Path | None) -> Loaded:
    """The settings of a file; without a path, of ``/etc/oyez/oyez.yaml`` if it is there.

    Raises:
        NotFoundError: the file is not there, is no file, or may not be read.
        ConfigError: with every mistake in the file, a line for each.
    """
    if path is None:
        if not _exists(places.SYSTEM_CONFIG):
            return parse("", "")
        path = places.SYSTEM_CONFIG
    name = str(path)
    loaded = parse(_decoded(_bytes(path), name), name)
    return replace(loaded, path=path)


def parse(text: str, name: str) -> Loaded:
    """The settings of a text; ``name`` stands for the file in messages and origins.

    Raises:
        ConfigError: with every mistake in the text, a line for each.
    """
    name = printable(name)
    known = {dotted: key for dotted, key, _ in ROOT.walk(Settings())}
    tree, problems = read(text)
    reading = Reading(known=tuple(known), problems=problems)
    settings: Settings = ROOT.read(tree or Tree(Mark(1, 1), {}), "", reading)
    problems.extend(_contradictions(settings, reading))
    if problems:
        in_order = sorted(problems, key=lambda problem: problem.mark)
        raise ConfigError([problem.line(name) for problem in in_order])
    origins = {
        dotted: f"{name}:{entry.mark.line}" if (entry := reading.entries.get(dotted)) else DEFAULT
        for dotted, key in known.items()
        if not isinstance(key.kind, Section)
    }
    return Loaded(settings=settings, path=None, origins=origins)


def _contradictions(settings: Settings, reading: Reading) -> Iterator[Problem]:
    """What is allowed by itself but makes no sense together, told at the first key's place."""
    for keys, text in (_language_of_model(settings), _room_for_speech(settings)):
        here = next((key for key in keys if key in reading.entries), None)
        if text and here and not reading.refused.intersection(keys):
            yield Problem(reading.entries[here].value.mark, here, text)


def _language_of_model(settings: Settings) -> tuple[tuple[str, ...], str]:
    keys = ("transcription.language", "transcription.model")
    language, model = settings.transcription.language, settings.transcription.model
    if language == "en" or not _ENGLISH_ONLY.search(model):
        return keys, ""
    return keys, (
        f"{language} needs a multilingual model, but {printable(model)} knows English alone, "
        f"set transcription.model to {_MULTILINGUAL_MODEL}"
    )


def _room_for_speech(settings: Settings) -> tuple[tuple[str, ...], str]:
    names = ("max_utterance_s", "hangover_ms", "min_speech_ms", "pre_roll_ms")
    keys = tuple(f"endpointing.{name}" for name in names)
    ends = settings.endpointing
    least_ms = ends.pre_roll_ms + ends.min_speech_ms + ends.hangover_ms
    if least_ms <= ends.max_utterance_s * 1000:
        return keys, ""
    return keys, (
        f"{ends.max_utterance_s:g} s is less than pre_roll_ms, min_speech_ms and hangover_ms "
        f"together ({least_ms} ms), so no utterance could end in silence"
    )


def _exists(path: Path) -> bool:
    """Whether there is anything of that name; True when that cannot be known."""
    try:
        path.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:
        return True
    return True


def _bytes(path: Path) -> bytes:
    """The file's first ``MAX_BYTES`` and one more, if it has so many."""
    shown = printable(str(path))
    try:
        if path.is_dir():
            raise NotFoundError(f"{shown} is a folder", remedy="name the file in it")
        if path.exists() and not path.is_file():
            # A pipe would be waited for without end, and a device may never end.
            raise NotFoundError(f"{shown} is not a regular file", remedy="name a YAML file")
        with path.open("rb") as file:
            return file.read(MAX_BYTES + 1)
    except FileNotFoundError as error:
        raise NotFoundError(
            f"there is no file {shown}",
            remedy="name a YAML file, or give none: the defaults serve",
        ) from error
    except OSError as error:
        raise NotFoundError(
            f"{shown} cannot be read: {error.strerror}", remedy="see to its owner and mode"
        ) from error


def _decoded(octets: bytes, name: str) -> str:
    if len(octets) > MAX_BYTES:
        raise ConfigError([Problem(Mark(1, 1), "", TOO_LARGE).line(printable(name))])
    try:
        return octets.decode()
    except UnicodeDecodeError as error:
        before = octets[: error.start].decode()
        text = f"the byte 0x{octets[error.start]:02x} is not UTF-8, save the file as UTF-8"
        problem = Problem(place(before, len(before)), "", text)
        raise ConfigError([problem.line(printable(name))]) from error
