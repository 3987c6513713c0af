"""Finding, reading and making speech: engines behind Protocols, and pure decisions."""
