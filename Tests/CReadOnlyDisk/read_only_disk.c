#define _GNU_SOURCE
#include "read_only_disk.h"

#include <errno.h>
#include <sched.h>
#include <stddef.h>
#include <sys/mount.h>

static const char *const options = "size=32m,mode=0700";

int read_only_disk_mount(const char *folder) {
  if (unshare(CLONE_NEWNS)) return errno;
  // Otherwise the mount would appear in the view of every process.
  if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL)) return errno;
  return mount("holdfast", folder, "tmpfs", 0, options) ? errno : 0;
}

int read_only_disk_set(const char *folder, int is_read_only) {
  return mount("holdfast", folder, "tmpfs", MS_REMOUNT | (is_read_only ? MS_RDONLY : 0), options) ? errno : 0;
}
