// A library with 64 KiB of code, of which growth.py makes many.

__asm__(".text\n.skip 65536, 0x90\n");

int library(void) { return 1; }
