/* A stand-in of openat2(2) for valgrind, whose Debian version does not know the call. It is preloaded, and replaces syscall(3):
 * openat opens the path, and a file of another file system than the folder's is refused, as RESOLVE_NO_XDEV wants. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdarg.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static long open_within(int folder, const char *path, const struct open_how *how) {
  struct stat above, found;
  int file = openat(folder, path, (int)how->flags, (mode_t)how->mode);
  if (file < 0 || (how->resolve & RESOLVE_NO_XDEV) == 0) return file;
  if (fstat(folder, &above) == 0 && fstat(file, &found) == 0 && above.st_dev == found.st_dev) return file;
  close(file);
  errno = EXDEV;
  return -1;
}

long syscall(long number, ...) {
  long words[6];
  long (*next)(long, ...);
  va_list list;
  va_start(list, number);
  for (int i = 0; i < 6; i++) words[i] = va_arg(list, long);
  va_end(list);
  if (number == SYS_openat2) return open_within((int)words[0], (const char *)words[1], (const struct open_how *)words[2]);
  *(void **)&next = dlsym(RTLD_NEXT, "syscall");
  return next(number, words[0], words[1], words[2], words[3], words[4], words[5]);
}
