#include "barrier.h"

void holdfast_wipe(void *bytes, size_t count) {
  __builtin_memset(bytes, 0, count);
  __asm__ __volatile__("" : : "r"(bytes) : "memory");
}

uint8_t holdfast_opaque(uint8_t value) {
  __asm__ __volatile__("" : "+r"(value));
  return value;
}
