#define _GNU_SOURCE
#include "processors.h"

#include <sched.h>
#include <unistd.h>

int holdfast_processor_count(void) {
  cpu_set_t set;
  // The set is too small for a kernel with more than 1024 processors.
  long count = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : sysconf(_SC_NPROCESSORS_ONLN);
  return count < 1 ? 1 : (int)count;
}
