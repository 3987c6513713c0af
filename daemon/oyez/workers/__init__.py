"""The threads between the audio thread and main: one owner for each model and decision.

The listener follows the frame ring; the others take messages from mailboxes of their own, work,
and post to the next. The recognizer and the voice take turns at inference, and the voice waits for
room in the playback ring; nobody else waits for anybody. What a worker raises ends it and is told
to main.
"""
