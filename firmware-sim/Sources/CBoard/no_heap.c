// Code that nothing runs may still name the heap. These lie in a section that the link refuses to keep.

#include <stddef.h>

#define NO_HEAP __attribute__((section(".no_heap"), noreturn))

NO_HEAP void *malloc(size_t count) { __builtin_trap(); }
NO_HEAP void free(void *start) { __builtin_trap(); }
NO_HEAP int posix_memalign(void **start, size_t alignment, size_t count) { __builtin_trap(); }
