"""The threads between the audio thread and main: one owner for each model and decision.

Each takes messages from its own mailbox, works, and posts to the next; none waits for another
but the voice, for room in the playback ring. What a worker raises ends it and is told to main.
"""
