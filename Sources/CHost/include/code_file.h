#ifndef HOLDFAST_CODE_FILE_H
#define HOLDFAST_CODE_FILE_H

#include <stdint.h>

/// The kernel's answers about an open file from which code is mapped.
struct holdfast_code_file {
  uint32_t device_major, device_minor;
  uint64_t inode;
  uint64_t size;
  int64_t change_seconds;
  uint32_t change_nanoseconds;
  uint32_t mode;
  uint32_t owner;
  /// The id of the mount; 0 if the kernel does not tell it (before Linux 5.8), or if one of the other values is made up.
  uint64_t mount;
  /// Whether the file may have fs-verity: 0 if its file system says that it has not, 1 otherwise.
  int may_have_verity;
};

/// Describes an open file. Returns 0, or -1 with `errno`.
///
/// Source: statx(2).
int holdfast_describe_code_file(int descriptor, struct holdfast_code_file *_Nonnull file);

/// The kernel's answers about the mount of an open file.
struct holdfast_mount {
  uint64_t file_system;
  /// Whether the mount ignores set-user-ID bits: 1 or 0.
  int has_nosuid;
};

/// Describes the mount of an open file. Returns 0, or -1 with `errno`: `ENODATA` if the kernel does not tell the flags.
///
/// Source: fstatfs(2).
int holdfast_describe_mount(int descriptor, struct holdfast_mount *_Nonnull mount);

/// Writes the file's changed pages to the disk, and waits. Afterwards the kernel notices the next write through any shared mapping,
/// and updates the file's change time. Returns 0, or -1 with `errno`.
///
/// Source: sync_file_range(2).
int holdfast_write_back(int descriptor);

/// Whether the effective user can write to a path: 0 if the kernel refuses that with `EACCES` or `EROFS`, 1 otherwise.
///
/// Source: faccessat(2), `AT_EACCESS`.
int holdfast_can_write(const char *_Nonnull path);

/// The time that the kernel gives to changed files now, in seconds. Source: clock_gettime(2), `CLOCK_REALTIME_COARSE`.
int64_t holdfast_file_time(void);

#endif
