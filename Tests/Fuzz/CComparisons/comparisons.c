#include "CComparisons.h"

#include <stdint.h>

// The linker has the program's own code call these in place of libFuzzer's (`--wrap`). It takes values that were compared for its
// changes of inputs, and needs them only of some inputs: being told of all took a fifth of the time of a small reader.

bool comparisons_are_told = true;

// In C, because this must not tell of its own comparisons.
#define TOLD_SOMETIMES(name, type)                                                \
  void __real___sanitizer_cov_trace_##name(type, type);                           \
  __attribute__((no_sanitize("coverage", "address"))) void                        \
      __wrap___sanitizer_cov_trace_##name(type one, type other) {                 \
    if (comparisons_are_told) __real___sanitizer_cov_trace_##name(one, other);    \
  }

TOLD_SOMETIMES(cmp1, uint8_t)
TOLD_SOMETIMES(cmp2, uint16_t)
TOLD_SOMETIMES(cmp4, uint32_t)
TOLD_SOMETIMES(cmp8, uint64_t)
TOLD_SOMETIMES(const_cmp1, uint8_t)
TOLD_SOMETIMES(const_cmp2, uint16_t)
TOLD_SOMETIMES(const_cmp4, uint32_t)
TOLD_SOMETIMES(const_cmp8, uint64_t)
