// Code that never runs may still refer to the heap. These functions are in a section that must be empty, so a link that keeps one
// of them fails.

#include <stddef.h>

#define NO_HEAP __attribute__((section(".no_heap"), noreturn))

NO_HEAP void *malloc(size_t count) { __builtin_trap(); }
NO_HEAP void free(void *start) { __builtin_trap(); }
NO_HEAP int posix_memalign(void **start, size_t alignment, size_t count) { __builtin_trap(); }
