"""Turn taking: what is answered to what was heard, and the receipt of each turn."""
