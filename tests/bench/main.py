"""``scripts/bench``: measure the product on recordings of people, with the truth known.

Results go to stdout as JSON (and to ``--out FILE``), talk to stderr; nothing is sent anywhere.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import corpus
from bench import audio, card, endpoints, loop, pipeline, report, start, timeline, wer
from oyez import config
from oyez.config_sections import plain
from oyez.errors import OyezError
from oyez.messages import RATE_HZ

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; gives the exit code: 0, or 1 where a measurement failed (2: bad usage)."""
    options = _parser().parse_args(arguments)
    command: Callable[[argparse.Namespace], dict[str, Any]] = options.command
    try:
        result = command(options)
    except (pipeline.PipelineError, corpus.NoRecordingsError, OyezError, ValueError) as error:
        _say(str(error))
        return 1
    text = json.dumps(result, indent=1, ensure_ascii=False)
    sys.stdout.write(text + "\n")
    if options.out and not options.out.is_dir():
        options.out.write_text(text + "\n", encoding="utf-8")
    return 0


def _timeline(options: argparse.Namespace) -> dict[str, Any]:
    made = _made(options)
    path = timeline.write(made, options.out)
    _say(f"{path} with its truth beside it: {_described(made)}")
    return made.truth()


def _loop(options: argparse.Namespace) -> dict[str, Any]:
    told = _told("loop", options)
    made = _made(options)
    _say(f"streaming {_described(made)} in real time")
    settings = config.load(options.config).settings
    return told | loop.measure(made, settings, config_path=options.config)


def _wer(options: argparse.Namespace) -> dict[str, Any]:
    told = _told("wer", options)
    clips = _clips(options)
    _say(f"{len(clips)} recordings, through the whole pipeline and at full context")
    return told | wer.measure(clips, config=options.config)


def _endpoints(options: argparse.Namespace) -> dict[str, Any]:
    told = _told("endpoints", options)
    clips = [*_clips(options), *(clip for clip in corpus.recordings("short") if clip.text)]
    cut = endpoints.configured(config.load(options.config).settings)
    return told | endpoints.measure(clips, cut)


def _start(options: argparse.Namespace) -> dict[str, Any]:
    told = _told("start", options)
    _say(f"starting {options.times} times")
    return told | start.measure(corpus.spoken()[0], times=options.times, config=options.config)


def _card(options: argparse.Namespace) -> dict[str, Any]:
    told = _told("card", options)
    return told | card.measure(threads=options.threads, say=_say)


def _audio(options: argparse.Namespace) -> dict[str, Any]:
    told = _told("audio", options)
    settings = config.load(options.config).settings
    periods_ms = options.periods_ms
    return told | audio.measure(settings, seconds=options.s, periods_ms=periods_ms, say=_say)


def _made(options: argparse.Namespace) -> timeline.Timeline:
    plan = timeline.Plan(
        snr_db=options.snr_db,
        reverb=options.reverb,
        noise=options.noise,
        pause_ms=tuple(options.pause_ms),
        seed=options.seed,
    )
    clips = _clips(options)
    if options.minutes is not None:
        clips = timeline.choose(clips, minutes=options.minutes, plan=plan)
    return timeline.build(clips, plan)


def _clips(options: argparse.Namespace) -> Sequence[corpus.Clip]:
    clips = corpus.spoken()
    if not options.clips:
        return clips
    named = {clip.name: clip for clip in clips}
    if unknown := [name for name in options.clips if name not in named]:
        raise ValueError(f"no spoken clips: {', '.join(unknown)}; there are {', '.join(named)}")
    return [named[name] for name in options.clips]


def _told(name: str, options: argparse.Namespace) -> dict[str, Any]:
    settings = plain(config.load(options.config).settings)
    return {"bench": name, **report.circumstances(), "settings": settings}


def _described(made: timeline.Timeline) -> str:
    minutes = len(made.samples) / RATE_HZ / 60
    plan = made.plan
    return (
        f"{len(made.utterances)} utterances in {minutes:.1f} min, {plan.snr_db:g} dB above "
        f"{plan.noise}, room {made.utterances[0].room}, seed {plan.seed}"
    )


def _say(text: str) -> None:
    sys.stderr.write(f"bench: {text}\n")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="scripts/bench", description=__doc__)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    def add(name: str, command: Callable[..., Any], about: str) -> argparse.ArgumentParser:
        added = commands.add_parser(name, help=about, description=about)
        added.set_defaults(command=command)
        return added

    making = add("timeline", _timeline, "write a timeline and its truth, for anybody's ears")
    looping = add("loop", _loop, "the wait for text and answer, in real time, beside a plain way")
    wording = add("wer", _wer, "the words lost by streaming")
    ending = add("endpoints", _endpoints, "begins and ends of speech, for many settings; no model")
    starting = add("start", _start, "the time from exec to ready, and the memory")
    carding = add("card", _card, "kinds of sound cards and their faults, on an emulated card")
    sounding = add("audio", _audio, "the audio thread's cost and lateness, on an emulated card")
    making.add_argument("--out", type=Path, required=True, metavar="DIR")
    for added in (looping, wording, ending, starting, carding, sounding):
        added.add_argument("--out", type=Path, metavar="FILE", help="write the result there too")
        added.add_argument("--config", type=Path, metavar="FILE", help="a configuration to measure")
    for added in (making, looping, wording, ending):
        added.add_argument("--clips", nargs="+", metavar="NAME", help="these, in this order")
    for added in (making, looping):
        _add_plan(added)
    starting.add_argument("--times", type=int, default=5)
    carding.add_argument("--threads", type=int, default=1, help="for an inference")
    sounding.add_argument("--s", type=float, default=60, help="seconds for each row")
    sounding.add_argument(
        "--periods-ms", type=int, nargs="+", default=audio.PERIODS_MS, metavar="MS"
    )
    return parser


def _add_plan(parser: argparse.ArgumentParser) -> None:
    plan = timeline.Plan()
    parser.add_argument("--minutes", type=float, help="draw clips for so long; else each once")
    parser.add_argument("--snr-db", type=float, default=plan.snr_db)
    parser.add_argument(
        "--reverb", default=plan.reverb, help="of a synthetic room, in ms; or a recorded response"
    )
    parser.add_argument("--noise", default=plan.noise, help="'room tone' or a recorded noise")
    parser.add_argument(
        "--pause-ms", type=float, nargs=2, default=plan.pause_ms, metavar=("LEAST", "MOST")
    )
    parser.add_argument("--seed", type=int, default=plan.seed)


if __name__ == "__main__":
    sys.exit(main())
