#include "CMutant.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int mutant_active = -1;
unsigned char mutant_reached[MUTANT_LIMIT];

static pid_t started;

// Appends the numbers that were reached to the file HOLDFAST_MUTANT_LOG. Forked children do not write.
static void write_log(void) {
  const char *path = getenv("HOLDFAST_MUTANT_LOG");
  if (!path || getpid() != started) return;
  FILE *file = fopen(path, "a");
  if (!file) return;
  for (int number = 0; number < MUTANT_LIMIT; number++)
    if (mutant_reached[number]) fprintf(file, "%d\n", number);
  fclose(file);
}

__attribute__((constructor)) static void start(void) {
  const char *chosen = getenv("HOLDFAST_MUTANT");
  if (chosen) mutant_active = atoi(chosen);
  started = getpid();
  atexit(write_log);
}
