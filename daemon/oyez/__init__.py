"""Oyez: a voice daemon for small Linux boards.

Sound goes in, text is found, an answer is spoken, and nothing leaves the board.
This package imports nothing heavy: the engines load where they are used.
"""

__version__ = "0.1.0"
