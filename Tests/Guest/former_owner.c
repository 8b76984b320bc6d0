// A former owner of a file, who writes to it for ever through a shared mapping from before.
//
// usage: former_owner FILE MAPPED
//
// Maps the last page of FILE, writes to it, and makes the file MAPPED as a sign of that. From then on, the last byte changes fifty times
// a second. The page stays dirty, so that the file's times change no more until the kernel writes it back.

#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { INTERVAL_MICROSECONDS = 20000 };

static int failed(const char *what) {
  perror(what);
  return 1;
}

int main(int count, char **arguments) {
  if (count != 3) return fputs("usage: former_owner FILE MAPPED\n", stderr), 2;
  int file = open(arguments[1], O_RDWR);
  struct stat status;
  if (file < 0 || fstat(file, &status) != 0) return failed(arguments[1]);
  off_t last = status.st_size - 1, page = last / getpagesize() * getpagesize();
  volatile unsigned char *bytes = mmap(NULL, (size_t)(last - page) + 1, PROT_READ | PROT_WRITE, MAP_SHARED, file, page);
  if (bytes == MAP_FAILED || close(file) != 0) return failed("mmap");
  bytes[last - page] += 1;
  if (creat(arguments[2], 0644) < 0) return failed(arguments[2]);
  for (;;) {
    usleep(INTERVAL_MICROSECONDS);
    bytes[last - page] += 1;
  }
}
