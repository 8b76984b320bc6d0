// Copying and clearing word by word. The C library works byte by byte, which took a third of the time of an HMAC.

#include <stddef.h>
#include <stdint.h>

/// A word at any address; the processor supports unaligned access.
typedef struct __attribute__((packed)) {
  uint32_t value;
} Word;

__attribute__((no_builtin("memcpy"))) void *memcpy(
    void *restrict destination, const void *restrict source, size_t count) {
  uint8_t *to = destination;
  const uint8_t *from = source;
  for (; count > 0 && (uintptr_t)to % 4 != 0; count--) *to++ = *from++;
  for (; count >= 16; count -= 16, to += 16, from += 16) {
    uint32_t *words = (uint32_t *)to;
    const Word *read = (const Word *)from;
    words[0] = read[0].value, words[1] = read[1].value, words[2] = read[2].value, words[3] = read[3].value;
  }
  for (; count >= 4; count -= 4, to += 4, from += 4) *(uint32_t *)to = ((const Word *)from)->value;
  for (; count > 0; count--) *to++ = *from++;
  return destination;
}

void *memmove(void *destination, const void *source, size_t count) {
  if ((uintptr_t)destination - (uintptr_t)source >= count) return memcpy(destination, source, count);
  for (size_t left = count; left > 0; left--) ((uint8_t *)destination)[left - 1] = ((const uint8_t *)source)[left - 1];
  return destination;
}

__attribute__((no_builtin("memset"))) void *memset(void *start, int value, size_t count) {
  uint8_t *to = start;
  for (; count > 0 && (uintptr_t)to % 4 != 0; count--) *to++ = (uint8_t)value;
  uint32_t word = 0x01010101u * (uint8_t)value;
  for (; count >= 16; count -= 16, to += 16) {
    uint32_t *words = (uint32_t *)to;
    words[0] = word, words[1] = word, words[2] = word, words[3] = word;
  }
  for (; count >= 4; count -= 4, to += 4) *(uint32_t *)to = word;
  for (; count > 0; count--) *to++ = (uint8_t)value;
  return start;
}

// The names that compilers use. Source: Run-time ABI for the Arm Architecture §5.3.5.
#define COPY __attribute__((alias("memcpy")))
COPY void __aeabi_memcpy(void *restrict destination, const void *restrict source, size_t count);
COPY void __aeabi_memcpy4(void *restrict destination, const void *restrict source, size_t count);
COPY void __aeabi_memcpy8(void *restrict destination, const void *restrict source, size_t count);
#define MOVE __attribute__((alias("memmove")))
MOVE void __aeabi_memmove(void *destination, const void *source, size_t count);
MOVE void __aeabi_memmove4(void *destination, const void *source, size_t count);
MOVE void __aeabi_memmove8(void *destination, const void *source, size_t count);
