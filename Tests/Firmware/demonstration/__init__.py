"""What `make demo-firmware` shows: a lock on a microcontroller, its owner, its users, and everybody who attacks it."""
