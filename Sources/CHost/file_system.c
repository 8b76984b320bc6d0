#define _GNU_SOURCE
#include "file_system.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/statfs.h>
#include <sys/xattr.h>

uint64_t holdfast_file_system_type(int descriptor) {
  struct statfs status;
  return fstatfs(descriptor, &status) == 0 ? (uint32_t)status.f_type : 0;
}

int holdfast_exchange_names(int directory, const char *one, const char *other) {
  return renameat2(directory, one, directory, other, RENAME_EXCHANGE);
}

int holdfast_has_file_capabilities(int descriptor) {
  if (fgetxattr(descriptor, "security.capability", NULL, 0) >= 0) return 1;
  return errno == ENODATA || errno == EOPNOTSUPP ? 0 : -1;
}

int holdfast_leave_out_of_backups(int descriptor) {
  int attributes = 0;
  if (ioctl(descriptor, FS_IOC_GETFLAGS, &attributes) != 0) return -1;
  attributes |= FS_NODUMP_FL;
  return ioctl(descriptor, FS_IOC_SETFLAGS, &attributes);
}
