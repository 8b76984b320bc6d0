#ifndef HOLDFAST_LOADER_H
#define HOLDFAST_LOADER_H

#include <stddef.h>
#include <stdint.h>

/// An address range, which excludes `end`.
struct holdfast_range {
  uint64_t start;
  uint64_t end;
};

/// Writes the executable segments of every object that the dynamic loader lists, the program's first, rounded out to pages, to
/// at most `capacity` ranges. Returns the number of segments.
size_t holdfast_executable_ranges(struct holdfast_range *_Nullable ranges, size_t capacity);

#endif
