#ifndef HOLDFAST_LOADER_H
#define HOLDFAST_LOADER_H

#include <stddef.h>
#include <stdint.h>

/// An address range, `end` not included.
struct holdfast_range {
  uint64_t start;
  uint64_t end;
};

/// Writes the executable segments of every object that the dynamic loader knows of, the program's first, rounded out to
/// pages, over at most `capacity` ranges; returns how many there are.
size_t holdfast_executable_ranges(struct holdfast_range *_Nullable ranges, size_t capacity);

#endif
