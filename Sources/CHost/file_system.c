#define _GNU_SOURCE
#include "file_system.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/statfs.h>

uint64_t holdfast_file_system_type(int descriptor) {
  struct statfs status;
  return fstatfs(descriptor, &status) == 0 ? (uint32_t)status.f_type : 0;
}

int holdfast_exchange_names(int directory, const char *one, const char *other) {
  return renameat2(directory, one, directory, other, RENAME_EXCHANGE);
}
