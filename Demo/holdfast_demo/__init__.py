"""The demonstration of Holdfast: one script of situations, for the device on Linux and for the firmware on a board."""
