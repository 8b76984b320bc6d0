#define _GNU_SOURCE
#include "power_cut.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static _Thread_local struct {
  power_cut_before before;
  power_cut_after after;
  void *context;
} watcher;

void power_cut_watch(power_cut_before before, power_cut_after after, void *context) {
  watcher.context = context;
  watcher.after = after;
  watcher.before = before;
}

void power_cut_stop(void) { watcher.before = NULL; }

static int begin(struct power_cut_event *event) {
  power_cut_before before = watcher.before;
  watcher.before = NULL;
  int failure = before(watcher.context, event);
  watcher.before = before;
  errno = failure;
  return failure;
}

static void end(const struct power_cut_event *event) {
  int number = errno;
  power_cut_before before = watcher.before;
  watcher.before = NULL;
  watcher.after(watcher.context, event);
  watcher.before = before;
  errno = number;
}

static uint64_t inode_of(int directory, const char *path, int flags) {
  struct stat status;
  return fstatat(directory, path, &status, flags) == 0 ? status.st_ino : 0;
}

/// The inode of the folder that a path leads to, and the last part of the path.
static uint64_t folder_of(int directory, const char *path, const char **name) {
  const char *slash = strrchr(path, '/');
  *name = slash ? slash + 1 : path;
  if (!slash) return inode_of(directory, ".", 0);
  char folder[PATH_MAX];
  size_t length = slash == path ? 1 : (size_t)(slash - path);
  if (length >= sizeof folder) return 0;
  memcpy(folder, path, length);
  folder[length] = 0;
  return inode_of(directory, folder, 0);
}

// Contents

static ssize_t watched_write(int file, const void *bytes, size_t byte_count, int64_t offset, int is_positioned) {
  struct power_cut_event event = {.operation = POWER_CUT_WRITE, .file = inode_of(file, "", AT_EMPTY_PATH)};
  event.offset = is_positioned ? offset : lseek(file, 0, SEEK_CUR);
  event.bytes = bytes;
  event.byte_count = byte_count;
  if (begin(&event)) return -1;
  ssize_t written = is_positioned ? syscall(SYS_pwrite64, file, bytes, event.byte_count, offset)
                                  : syscall(SYS_write, file, bytes, event.byte_count);
  if (written >= 0) {
    event.byte_count = (size_t)written;
    end(&event);
  }
  return written;
}

ssize_t write(int file, const void *bytes, size_t byte_count) {
  if (watcher.before) return watched_write(file, bytes, byte_count, 0, 0);
  return syscall(SYS_write, file, bytes, byte_count);
}

ssize_t pwrite64(int file, const void *bytes, size_t byte_count, off64_t offset) {
  if (watcher.before) return watched_write(file, bytes, byte_count, offset, 1);
  return syscall(SYS_pwrite64, file, bytes, byte_count, offset);
}

ssize_t pwrite(int file, const void *bytes, size_t byte_count, off_t offset) {
  return pwrite64(file, bytes, byte_count, offset);
}

int ftruncate64(int file, off64_t length) {
  if (!watcher.before) return (int)syscall(SYS_ftruncate, file, length);
  struct power_cut_event event = {
      .operation = POWER_CUT_TRUNCATE, .file = inode_of(file, "", AT_EMPTY_PATH), .offset = length};
  if (begin(&event)) return -1;
  int result = (int)syscall(SYS_ftruncate, file, length);
  if (result == 0) end(&event);
  return result;
}

int ftruncate(int file, off_t length) { return ftruncate64(file, length); }

static int synchronize(int file, long number) {
  if (!watcher.before) return (int)syscall(number, file);
  struct power_cut_event event = {.operation = POWER_CUT_SYNCHRONIZE, .file = inode_of(file, "", AT_EMPTY_PATH)};
  if (begin(&event)) return -1;
  int result = (int)syscall(number, file);
  if (result == 0) end(&event);
  return result;
}

int fsync(int file) { return synchronize(file, SYS_fsync); }

int fdatasync(int file) { return synchronize(file, SYS_fdatasync); }

// Names

static int open_at(int directory, const char *path, int flags, mode_t mode) {
  if (!watcher.before || !(flags & O_CREAT) || inode_of(directory, path, AT_SYMLINK_NOFOLLOW))
    return (int)syscall(SYS_openat, directory, path, flags, mode);
  struct power_cut_event event = {.operation = POWER_CUT_CREATE};
  event.directory = folder_of(directory, path, &event.name);
  if (begin(&event)) return -1;
  int file = (int)syscall(SYS_openat, directory, path, flags, mode);
  if (file >= 0) {
    event.file = inode_of(file, "", AT_EMPTY_PATH);
    end(&event);
  }
  return file;
}

#define OPEN(directory)                                          \
  mode_t mode = 0;                                               \
  if (flags & (O_CREAT | __O_TMPFILE)) {                         \
    va_list arguments;                                           \
    va_start(arguments, flags);                                  \
    mode = va_arg(arguments, mode_t);                            \
    va_end(arguments);                                           \
  }                                                              \
  return open_at(directory, path, flags, mode)

int open(const char *path, int flags, ...) { OPEN(AT_FDCWD); }

int open64(const char *path, int flags, ...) { OPEN(AT_FDCWD); }

int openat(int directory, const char *path, int flags, ...) { OPEN(directory); }

int openat64(int directory, const char *path, int flags, ...) { OPEN(directory); }

int mkdirat(int directory, const char *path, mode_t mode) {
  if (!watcher.before) return (int)syscall(SYS_mkdirat, directory, path, mode);
  struct power_cut_event event = {.operation = POWER_CUT_MAKE_DIRECTORY};
  event.directory = folder_of(directory, path, &event.name);
  if (begin(&event)) return -1;
  int result = (int)syscall(SYS_mkdirat, directory, path, mode);
  if (result == 0) {
    event.file = inode_of(directory, path, AT_SYMLINK_NOFOLLOW);
    end(&event);
  }
  return result;
}

int mkdir(const char *path, mode_t mode) { return mkdirat(AT_FDCWD, path, mode); }

int unlinkat(int directory, const char *path, int flags) {
  if (!watcher.before) return (int)syscall(SYS_unlinkat, directory, path, flags);
  struct power_cut_event event = {
      .operation = POWER_CUT_UNLINK, .file = inode_of(directory, path, AT_SYMLINK_NOFOLLOW)};
  event.directory = folder_of(directory, path, &event.name);
  if (begin(&event)) return -1;
  int result = (int)syscall(SYS_unlinkat, directory, path, flags);
  if (result == 0) end(&event);
  return result;
}

int unlink(const char *path) { return unlinkat(AT_FDCWD, path, 0); }

int rmdir(const char *path) { return unlinkat(AT_FDCWD, path, AT_REMOVEDIR); }

int linkat(int directory, const char *path, int new_directory, const char *new_path, int flags) {
  if (!watcher.before) return (int)syscall(SYS_linkat, directory, path, new_directory, new_path, flags);
  struct power_cut_event event = {.operation = POWER_CUT_LINK, .file = inode_of(directory, path, AT_SYMLINK_NOFOLLOW)};
  event.directory = folder_of(directory, path, &event.name);
  event.new_directory = folder_of(new_directory, new_path, &event.new_name);
  if (begin(&event)) return -1;
  int result = (int)syscall(SYS_linkat, directory, path, new_directory, new_path, flags);
  if (result == 0) end(&event);
  return result;
}

int link(const char *path, const char *new_path) { return linkat(AT_FDCWD, path, AT_FDCWD, new_path, 0); }

int renameat2(int directory, const char *path, int new_directory, const char *new_path, unsigned flags) {
  if (!watcher.before) return (int)syscall(SYS_renameat2, directory, path, new_directory, new_path, flags);
  struct power_cut_event event = {
      .operation = flags & RENAME_EXCHANGE ? POWER_CUT_EXCHANGE : POWER_CUT_RENAME,
      .file = inode_of(directory, path, AT_SYMLINK_NOFOLLOW),
      .new_file = inode_of(new_directory, new_path, AT_SYMLINK_NOFOLLOW)};
  event.directory = folder_of(directory, path, &event.name);
  event.new_directory = folder_of(new_directory, new_path, &event.new_name);
  if (begin(&event)) return -1;
  int result = (int)syscall(SYS_renameat2, directory, path, new_directory, new_path, flags);
  if (result == 0) end(&event);
  return result;
}

int renameat(int directory, const char *path, int new_directory, const char *new_path) {
  return renameat2(directory, path, new_directory, new_path, 0);
}

int rename(const char *path, const char *new_path) { return renameat2(AT_FDCWD, path, AT_FDCWD, new_path, 0); }
