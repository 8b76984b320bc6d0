/* The curve's file is compiled for size, except for the code in which a first token spends its time: sums and products of the
   field, whose loops are peeled. This header is included before that file. */
#include <stdint.h>

#define FIELD static __attribute__((optimize("O1", "peel-loops"))) void
FIELD add_f256(uint32_t *d, const uint32_t *a, const uint32_t *b);
FIELD sub_f256(uint32_t *d, const uint32_t *a, const uint32_t *b);
FIELD mul_f256(uint32_t *d, const uint32_t *a, const uint32_t *b);
FIELD square_f256(uint32_t *d, const uint32_t *a);
