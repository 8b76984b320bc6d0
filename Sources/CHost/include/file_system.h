#ifndef HOLDFAST_FILE_SYSTEM_H
#define HOLDFAST_FILE_SYSTEM_H

#include <stdint.h>

/// The magic number of the file system that `descriptor` is on; 0 with `errno` where the kernel does not say.
///
/// Source: fstatfs(2).
uint64_t holdfast_file_system_type(int descriptor);

#endif
