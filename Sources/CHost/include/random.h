#ifndef HOLDFAST_RANDOM_H
#define HOLDFAST_RANDOM_H

// getrandom(2), which the C library's module does not export.
#include <sys/random.h>

#endif
