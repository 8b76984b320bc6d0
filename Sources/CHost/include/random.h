#ifndef HOLDFAST_RANDOM_H
#define HOLDFAST_RANDOM_H

// getrandom(2), which the module of the C library leaves out.
#include <sys/random.h>

#endif
