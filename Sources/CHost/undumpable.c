#include "undumpable.h"

#include <sys/prctl.h>

int holdfast_make_undumpable(void) { return prctl(PR_SET_DUMPABLE, 0, 0, 0, 0); }
