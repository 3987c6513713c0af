"""What an owner looks at: receipts and the console."""
