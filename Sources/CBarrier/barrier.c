#include "barrier.h"

void holdfast_wipe(void *bytes, size_t count) {
  uint8_t *cursor = bytes;
  for (size_t index = 0; index < count; index++) cursor[index] = 0;
  __asm__ __volatile__("" : : "r"(bytes) : "memory");
}

uint8_t holdfast_opaque(uint8_t value) {
  __asm__ __volatile__("" : "+r"(value));
  return value;
}
