// Copying and clearing several words at once. The C library works byte by byte, which took a third of the time of an HMAC.

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
  // Loads and stores of several words need aligned addresses.
  if ((uintptr_t)from % 4 == 0) {
    for (; count >= 16; count -= 16) {
      __asm__ __volatile__("ldmia %1!, {r3-r6}\n\tstmia %0!, {r3-r6}"
                           : "+r"(to), "+r"(from)
                           :
                           : "r3", "r4", "r5", "r6", "memory");
    }
  }
  for (; count >= 4; count -= 4, to += 4, from += 4) *(uint32_t *)to = ((const Word *)from)->value;
  for (; count > 0; count--) *to++ = *from++;
  return destination;
}

void *memmove(void *destination, const void *source, size_t count) {
  if ((uintptr_t)destination - (uintptr_t)source >= count) return memcpy(destination, source, count);
  // From the end, since the places overlap. A word is loaded before a part of it is overwritten.
  uint8_t *to = (uint8_t *)destination + count;
  const uint8_t *from = (const uint8_t *)source + count;
  for (; count >= 4; count -= 4) ((Word *)(to -= 4))->value = ((const Word *)(from -= 4))->value;
  while (count-- > 0) *--to = *--from;
  return destination;
}

__attribute__((no_builtin("memset"))) void *memset(void *start, int value, size_t count) {
  uint8_t *to = start;
  for (; count > 0 && (uintptr_t)to % 4 != 0; count--) *to++ = (uint8_t)value;
  uint32_t word = 0x01010101u * (uint8_t)value;
  register uint32_t first __asm__("r3") = word, second __asm__("r4") = word;
  register uint32_t third __asm__("r5") = word, fourth __asm__("r6") = word;
  for (; count >= 16; count -= 16) {
    __asm__ __volatile__("stmia %0!, {r3-r6}"
                         : "+r"(to), "+r"(first), "+r"(second), "+r"(third), "+r"(fourth)
                         :
                         : "memory");
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
