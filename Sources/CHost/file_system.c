#include "file_system.h"

#include <sys/statfs.h>

uint64_t holdfast_file_system_type(int descriptor) {
  struct statfs status;
  return fstatfs(descriptor, &status) == 0 ? (uint32_t)status.f_type : 0;
}
