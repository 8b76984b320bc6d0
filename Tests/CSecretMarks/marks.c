#include "marks.h"

#include <stdint.h>

#if __has_include(<valgrind/memcheck.h>)
#include <valgrind/memcheck.h>

bool marks_are_checked(void) { return RUNNING_ON_VALGRIND != 0; }
void marks_set(const void *bytes, size_t count) { (void)VALGRIND_MAKE_MEM_UNDEFINED(bytes, count); }
void marks_clear(const void *bytes, size_t count) { (void)VALGRIND_MAKE_MEM_DEFINED(bytes, count); }

// valgrind calls this in place of `holdfast_reveal` of the program. Nothing in the program refers to it, so the linker is told to keep it.
__attribute__((used, retain)) uint8_t I_WRAP_SONAME_FNNAME_ZU(NONE, holdfast_reveal)(uint8_t value);
uint8_t I_WRAP_SONAME_FNNAME_ZU(NONE, holdfast_reveal)(uint8_t value) {
  OrigFn function;
  uint8_t result;
  VALGRIND_GET_ORIG_FN(function);
  CALL_FN_W_W(result, function, value);
  marks_clear(&result, sizeof result);
  return result;
}
#else
bool marks_are_checked(void) { return false; }
void marks_set(const void *bytes, size_t count) { (void)bytes, (void)count; }
void marks_clear(const void *bytes, size_t count) { (void)bytes, (void)count; }
#endif
