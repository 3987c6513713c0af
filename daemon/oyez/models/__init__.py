"""Models: which ones are known, where they come from, and that they are what they say.

``catalogue`` says what exists; ``store`` fetches, verifies and hands out paths; ``hub`` and
``packages`` are the two kinds of source; ``ct2``, ``ggml`` and ``quantize`` rewrite weights.
"""
