#include "undumpable.h"

#include <stdatomic.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "procfs.h"

static atomic_int was_asked;

int holdfast_make_undumpable(void) {
  int result = prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
  if (result == 0) atomic_store(&was_asked, 1);
  return result;
}

int holdfast_is_still_dumpable(void) {
  if (!atomic_load(&was_asked)) return 0;
  if (prctl(PR_GET_DUMPABLE, 0, 0, 0, 0) != 0) return 1;
  if (geteuid() == 0) return 0;
  int file = holdfast_open_proc("self/status");
  if (file < 0) return 0;
  struct stat status;
  int is_own = fstat(file, &status) == 0 && status.st_uid == geteuid();
  close(file);
  return is_own;
}
