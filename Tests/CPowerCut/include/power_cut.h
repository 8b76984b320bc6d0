#ifndef HOLDFAST_POWER_CUT_H
#define HOLDFAST_POWER_CUT_H

#include <stddef.h>
#include <stdint.h>

// Linked into a test, this replaces the C library's calls that change a disk: `write`, `pwrite`,
// `ftruncate`, `fsync`, `fdatasync`, `open` with O_CREAT, `rename`, `link`, `unlink`, `rmdir`, `mkdir`, and their variants.
// They do what the system's do. A thread that watches is told of each of its own, and may let it fail.

enum power_cut_operation {
  POWER_CUT_WRITE,
  POWER_CUT_TRUNCATE,
  POWER_CUT_SYNCHRONIZE,
  POWER_CUT_CREATE,
  POWER_CUT_MAKE_DIRECTORY,
  POWER_CUT_LINK,
  POWER_CUT_RENAME,
  /// Two names are exchanged: `new_file` has `new_name` before, and `name` afterwards.
  POWER_CUT_EXCHANGE,
  POWER_CUT_UNLINK,
};

struct power_cut_event {
  enum power_cut_operation operation;
  /// The inode of the file or folder; 0 before one is made.
  uint64_t file;
  /// The inode of the file or folder that has `new_name`, with `EXCHANGE`.
  uint64_t new_file;
  /// The inode of the folder that holds `name`, and with `LINK`, `RENAME` and `EXCHANGE` of the one that will hold `new_name`.
  uint64_t directory, new_directory;
  const char *name, *new_name;
  /// Where a write begins, or the length that a file is cut to.
  int64_t offset;
  const void *bytes;
  /// How much is to be written; a watcher may make it less.
  size_t byte_count;
};

/// Called before an operation: 0 lets it go on, an `errno` makes it fail with that.
typedef int (*power_cut_before)(void *context, struct power_cut_event *event);
/// Called after an operation that went well.
typedef void (*power_cut_after)(void *context, const struct power_cut_event *event);

/// From now on this thread is watched. What the callbacks do themselves is not.
void power_cut_watch(power_cut_before before, power_cut_after after, void *context);
/// This thread is watched no longer.
void power_cut_stop(void);

#endif
