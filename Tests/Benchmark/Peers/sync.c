// The disk: 4 KiB more of a file are made durable.
//
// usage: sync sync FOLDER

#include <fcntl.h>
#include <unistd.h>

#include "worker.h"

static int file;

static int synchronise(void) {
  static char page[4096];
  return write(file, page, sizeof page) == sizeof page && fdatasync(file) == 0;
}

int main(int count, char **arguments) {
  char path[4096];
  if (count != 3) stop("usage: sync sync FOLDER");
  snprintf(path, sizeof path, "%s/synchronised", arguments[2]);
  file = open(path, O_CREAT | O_WRONLY | O_TRUNC | O_CLOEXEC, 0600);
  if (file < 0) stop("the file cannot be created");
  serve(synchronise);
  return 0;
}
