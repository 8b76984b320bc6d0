// The half that all peers in C share: they read lines with a count, do their work that often, and answer each with a line of the
// nanoseconds and the nanoseconds of processor time that all took. A wrong result ends them with exit status 2.

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

// One repetition of the work, which returns whether its result is right.
typedef int Work(void);

static void stop(const char *reason) {
  printf("error %s\n", reason);
  exit(2);
}

static uint64_t nanoseconds(clockid_t clock) {
  struct timespec time;
  clock_gettime(clock, &time);
  return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

static void serve(Work *work) {
  char line[64];
  if (!work()) stop("a result is wrong");
  while (fgets(line, sizeof line, stdin)) {
    long count = atol(line), wrong = 0;
    uint64_t start = nanoseconds(CLOCK_MONOTONIC), used = nanoseconds(CLOCK_PROCESS_CPUTIME_ID);
    for (long number = 0; number < count; number++) wrong += !work();
    uint64_t whole = nanoseconds(CLOCK_MONOTONIC) - start, processor = nanoseconds(CLOCK_PROCESS_CPUTIME_ID) - used;
    printf("%llu %llu\n", (unsigned long long)whole, (unsigned long long)processor);
    fflush(stdout);
    if (wrong) stop("results are wrong");
  }
}

// The content of a file of `folder`; the caller keeps it.
static unsigned char *contents(const char *folder, const char *name, size_t *length) {
  char path[4096];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  FILE *file = fopen(path, "rb");
  if (!file) stop("a file of inputs cannot be read");
  unsigned char *bytes = malloc(1 << 16);
  *length = fread(bytes, 1, 1 << 16, file);
  fclose(file);
  return bytes;
}
