#include <string.h>

/// Overwrites `count` bytes with zeros; the compiler cannot remove the call.
static inline void wipe(void *bytes, size_t count) {
  memset(bytes, 0, count);
  __asm__ __volatile__("" : : "r"(bytes) : "memory");
}

/// Returns 1 if both contain the same bytes, otherwise 0. The time depends only on `count`.
static inline uint32_t are_equal(const uint8_t *left, const uint8_t *right, size_t count) {
  uint32_t difference = 0;
  for (size_t index = 0; index < count; index++) difference |= left[index] ^ right[index];
  __asm__ __volatile__("" : "+r"(difference));
  return (difference - 1) >> 31;
}
