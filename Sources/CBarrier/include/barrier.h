#ifndef HOLDFAST_BARRIER_H
#define HOLDFAST_BARRIER_H

#include <stddef.h>
#include <stdint.h>

/// Overwrites `count` bytes with zeros; the compiler cannot remove the call.
void holdfast_wipe(void *_Nonnull bytes, size_t count);

/// Returns `value`; the compiler cannot assume anything about it.
static inline uint8_t holdfast_opaque(uint8_t value) {
  __asm__ __volatile__("" : "+r"(value));
  return value;
}

#endif
