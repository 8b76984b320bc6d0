#ifndef HOLDFAST_BARRIER_H
#define HOLDFAST_BARRIER_H

#include <stddef.h>
#include <stdint.h>

/// Overwrites `count` bytes with zeros; the compiler may not leave it out.
void holdfast_wipe(void *_Nonnull bytes, size_t count);

/// Returns `value`; the compiler may not assume what it is.
static inline uint8_t holdfast_opaque(uint8_t value) {
  __asm__ __volatile__("" : "+r"(value));
  return value;
}

#endif
