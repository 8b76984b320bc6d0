#ifndef HOLDFAST_FILE_SYSTEM_H
#define HOLDFAST_FILE_SYSTEM_H

#include <stdint.h>

/// The magic number of the file system that `descriptor` is on; 0 with `errno` where the kernel does not say.
///
/// Source: fstatfs(2).
uint64_t holdfast_file_system_type(int descriptor);

// Lets two entries of a folder exchange their names, in one step; -1 and errno, ENOENT where one of them is not there. Glibc's
// own function is hidden from Swift.
int holdfast_exchange_names(int directory, const char *one, const char *other);

#endif
