"""What the audio thread may run, and the contract that it keeps.

Everything in this package does bounded, constant work per period. It never logs, opens files,
takes a lock that a worker holds, waits on a queue, calls user code, loops over samples in Python,
or lets an exception pass silently: the thread tells main through its mailbox, which neither locks
nor blocks. It allocates a bounded few arrays per period. It counts; others tell.

The thread waits in its ports alone: in the capture port's ``read`` for the card, for the clock, or
(unpaced, at a desk) for its consumers. The desk's ports do more: PortAudio's ``write`` waits for
room, for a second at most, and the WAV in the speaker's place is written to the disk.

A test reads the imports of these modules and allows only a short list.
"""
