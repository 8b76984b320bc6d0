#ifndef HOLDFAST_PROCESSORS_H
#define HOLDFAST_PROCESSORS_H

/// The number of processors that may run the calling thread, at least 1. Source: sched_getaffinity(2).
int holdfast_processor_count(void);

#endif
