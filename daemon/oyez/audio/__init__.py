"""Sound devices and files behind one pair of Protocols, and pure sample arithmetic."""
