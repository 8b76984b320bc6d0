#define _GNU_SOURCE
#include "procfs.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

static int open_proc(const char *path, int flags) {
  int folder = open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (folder < 0) return -1;
  struct open_how how = {.flags = (uint64_t)(flags | O_CLOEXEC), .resolve = RESOLVE_NO_XDEV};
  int file = (int)syscall(SYS_openat2, folder, path, &how, sizeof how);
  int error = errno;
  close(folder);
  errno = error;
  return file;
}

int holdfast_open_proc(const char *path) { return open_proc(path, O_RDONLY); }

int holdfast_open_proc_link(const char *path) { return open_proc(path, O_PATH | O_NOFOLLOW); }
