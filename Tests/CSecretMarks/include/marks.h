#ifndef HOLDFAST_SECRET_MARKS_H
#define HOLDFAST_SECRET_MARKS_H

#include <stdbool.h>
#include <stddef.h>

// Bytes that are marked as secret are undefined for valgrind's memcheck, which then reports each branch and each address that
// depends on them, wherever they are copied and whatever is computed from them. What `holdfast_reveal` returns is defined.
//
// Source: Adam Langley, "ctgrind" (2010); valgrind's manual, "Memcheck: Client Requests" and "Function wrapping".

/// Whether memcheck runs this program. Otherwise, no mark has an effect.
bool marks_are_checked(void);
/// Marks bytes as secret.
void marks_set(const void *bytes, size_t count);
/// Makes bytes public.
void marks_clear(const void *bytes, size_t count);

#endif
