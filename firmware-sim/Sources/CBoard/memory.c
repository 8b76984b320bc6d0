// The C library's memset goes byte by byte; Swift and BearSSL clear much.

#include <stddef.h>
#include <stdint.h>

__attribute__((no_builtin("memset"))) void *memset(void *start, int value, size_t count) {
  uint8_t *byte = start;
  for (; count > 0 && (uintptr_t)byte % 4 != 0; count--) *byte++ = (uint8_t)value;
  uint32_t filled = 0x01010101u * (uint8_t)value;
  uint32_t *word = (uint32_t *)byte;
  for (; count >= 16; count -= 16, word += 4) word[0] = filled, word[1] = filled, word[2] = filled, word[3] = filled;
  for (; count >= 4; count -= 4) *word++ = filled;
  for (byte = (uint8_t *)word; count > 0; count--) *byte++ = (uint8_t)value;
  return start;
}
