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

/// Returns `value`, on which the program may depend from here on, because it is public: whether two secrets are equal, for example.
///
/// On Linux it is a call, by which `Tests/ConstantTime` tells this from a branch on a secret.
#ifdef __linux__
uint8_t holdfast_reveal(uint8_t value);
#else
static inline uint8_t holdfast_reveal(uint8_t value) { return holdfast_opaque(value); }
#endif

#endif
