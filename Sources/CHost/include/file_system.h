#ifndef HOLDFAST_FILE_SYSTEM_H
#define HOLDFAST_FILE_SYSTEM_H

#include <stdint.h>

/// Returns the magic number of the file system of `descriptor`; 0 with `errno` if the kernel does not tell.
///
/// Source: fstatfs(2).
uint64_t holdfast_file_system_type(int descriptor);

/// Exchanges the names of two entries of a folder in one step. Returns 0, or -1 with `errno`: `ENOENT` if one of them does not
/// exist. Glibc's own function is not visible to Swift.
int holdfast_exchange_names(int directory, const char *one, const char *other);

/// Returns whether an open file has capabilities for its program: 1 if it has, 0 if not or if the file system has none, and -1 with
/// `errno` if the kernel does not tell.
///
/// Source: capabilities(7), getxattr(2).
int holdfast_has_file_capabilities(int descriptor);

/// Asks backup tools to leave an open file or folder out. Returns 0, or -1 with `errno`: `ENOTTY` or `EOPNOTSUPP` if the file system
/// has no such attribute.
///
/// Source: FS_NODUMP_FL in ioctl_iflags(2).
int holdfast_leave_out_of_backups(int descriptor);

#endif
