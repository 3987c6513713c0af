"""Models for the tests of engines; and hypothesis is in no hurry."""

from __future__ import annotations

from hypothesis import settings

from speech.model_files import model_path

__all__ = ["model_path"]

# A busy machine must not fail a test.
settings.register_profile("unhurried", deadline=None)
settings.load_profile("unhurried")
