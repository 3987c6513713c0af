"""What the audio thread may run, and the contract that it keeps.

Everything in this package does bounded, constant work per period. It never logs, opens files,
takes a lock that a worker holds, waits on a queue, calls user code, loops over samples in Python,
or lets an exception pass silently: the thread stores it and tells main through its mailbox, which
neither locks nor blocks. It counts; others tell. The only place where the thread waits is its
capture port's ``read``: for the card, for the clock, or (unpaced, at a desk) for its consumers.

A test reads the imports of these modules and allows only a short list.
"""
