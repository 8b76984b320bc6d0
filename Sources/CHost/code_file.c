#define _GNU_SOURCE
#include "code_file.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <time.h>
#include <unistd.h>

// The C library's header has only the POSIX names. Source: Linux, include/linux/statfs.h.
enum { flags_are_valid = 0x20, ignores_set_user_id = 0x2 };

int holdfast_describe_code_file(int descriptor, struct holdfast_code_file *file) {
  struct statx status;
  unsigned wanted = STATX_BASIC_STATS | STATX_MNT_ID;
  if (statx(descriptor, "", AT_EMPTY_PATH, wanted, &status) != 0) return -1;
  *file = (struct holdfast_code_file){
      .device_major = status.stx_dev_major,
      .device_minor = status.stx_dev_minor,
      .inode = status.stx_ino,
      .size = status.stx_size,
      .change_seconds = status.stx_ctime.tv_sec,
      .change_nanoseconds = status.stx_ctime.tv_nsec,
      .mode = status.stx_mode,
      .owner = status.stx_uid,
      .mount = (status.stx_mask & wanted) == wanted ? status.stx_mnt_id : 0,
      .may_have_verity = !(status.stx_attributes_mask & STATX_ATTR_VERITY & ~status.stx_attributes),
  };
  return 0;
}

int holdfast_describe_mount(int descriptor, struct holdfast_mount *mount) {
  struct statfs system;
  if (fstatfs(descriptor, &system) != 0) return -1;
  if (!(system.f_flags & flags_are_valid)) {
    errno = ENODATA;
    return -1;
  }
  *mount = (struct holdfast_mount){
      .file_system = (uint32_t)system.f_type,
      .has_nosuid = (system.f_flags & ignores_set_user_id) != 0,
  };
  return 0;
}

int holdfast_write_back(int descriptor) {
  return sync_file_range(
      descriptor, 0, 0, SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE | SYNC_FILE_RANGE_WAIT_AFTER);
}

int holdfast_can_write(const char *path) {
  if (faccessat(AT_FDCWD, path, W_OK, AT_EACCESS) == 0) return 1;
  return errno == EACCES || errno == EROFS ? 0 : 1;
}

int64_t holdfast_file_time(void) {
  struct timespec now;
  return clock_gettime(CLOCK_REALTIME_COARSE, &now) == 0 ? now.tv_sec : 0;
}
