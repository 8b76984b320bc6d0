// The only arithmetic in Holdfast that comes from no library. It is written for clang and a Cortex-M4: loops over the eight
// words are unrolled, `accumulate` becomes one instruction, UMAAL, and sums with carries become chains of ADCS and SBCS.

#include "field.h"

#define UNROLLED _Pragma("clang loop unroll(full)") for
#define INLINE static inline __attribute__((always_inline))

/// Keeps the compiler from starting later steps early, for which there are too few registers, and from deriving what a mask can
/// be.
#define IN_ORDER(word) __asm__ volatile("" : "+r"(word) : : "memory")

#define PRIME {0xFFFFFFFF, 0xFFFFFFFF, 0xFFFFFFFF, 0, 0, 0, 1, 0xFFFFFFFF}
static const uint32_t prime[8] = PRIME;

const Element field_prime = {PRIME};
const Element field_one = {{1, 0, 0, 0xFFFFFFFF, 0xFFFFFFFF, 0xFFFFFFFF, 0xFFFFFFFE, 0}};
const Element field_conversion = {{3, 0, 0xFFFFFFFF, 0xFFFFFFFB, 0xFFFFFFFE, 0xFFFFFFFF, 0xFFFFFFFD, 4}};

/// Sets `word` and `carry` to the halves of left · right + word + carry, which 64 bits can hold.
INLINE void accumulate(uint32_t *word, uint32_t *carry, uint32_t left, uint32_t right) {
  uint64_t sum = (uint64_t)left * right + *word + *carry;
  *word = (uint32_t)sum;
  *carry = (uint32_t)(sum >> 32);
  __asm__ volatile("" : "+r"(*word), "+r"(*carry) : : "memory");
}

/// 0, which the compiler does not know to be 0. Otherwise it takes three instructions in place of SBCS.
INLINE uint32_t opaque_zero(void) {
  uint32_t zero = 0;
  __asm__("" : "+r"(zero));
  return zero;
}

/// Adds p if `mask` has all bits set, nothing if it is 0.
INLINE void add_prime(uint32_t *result, const uint32_t *words, uint32_t mask) {
  uint32_t carry = 0;
  UNROLLED (int index = 0; index < 8; index++) {
    result[index] = __builtin_addc(words[index], prime[index] & mask, carry, &carry);
  }
}

/// Subtracts p from `sum` + `carry` · 2^256, which is below 2p, unless the difference is negative.
INLINE void reduce_once(Element *result, uint32_t *sum, uint32_t carry) {
  uint32_t borrow = 0, zero = opaque_zero();
  UNROLLED (int index = 0; index < 8; index++) {
    sum[index] = __builtin_subc(sum[index], prime[index] == 0 ? zero : prime[index], borrow, &borrow);
  }
  uint32_t mask = __builtin_subc(carry, zero, borrow, &borrow);
  IN_ORDER(mask);
  add_prime(result->words, sum, mask);
}

void field_add(Element *sum, const Element *left, const Element *right) {
  uint32_t words[8], carry = 0;
  UNROLLED (int index = 0; index < 8; index++) {
    words[index] = __builtin_addc(left->words[index], right->words[index], carry, &carry);
  }
  IN_ORDER(carry);
  reduce_once(sum, words, carry);
}

void field_subtract(Element *difference, const Element *left, const Element *right) {
  uint32_t words[8], borrow = 0;
  UNROLLED (int index = 0; index < 8; index++) {
    words[index] = __builtin_subc(left->words[index], right->words[index], borrow, &borrow);
  }
  uint32_t mask = -borrow;
  IN_ORDER(mask);
  add_prime(difference->words, words, mask);
}

/// Adds to ten words the multiple of p that clears the lowest two, and shifts by these. The factor M is the lowest two words
/// themselves, because -1/p is 1 mod 2^64, and M · p = M · 2^96 + M(1 - 2^32 + 2^64) · 2^192 - M.
INLINE void reduce_two_words(uint32_t *sum, uint32_t *top) {
  uint32_t low = sum[0], high = sum[1], carry = 0;
  uint32_t first = __builtin_subc(high, low, 0, &carry);
  uint32_t second = __builtin_subc(low, high, carry, &carry);
  uint32_t third = __builtin_subc(high, opaque_zero(), carry, &carry);
  IN_ORDER(third);
  sum[0] = sum[2];
  sum[1] = __builtin_addc(sum[3], low, 0, &carry);
  sum[2] = __builtin_addc(sum[4], high, carry, &carry);
  sum[3] = __builtin_addc(sum[5], 0, carry, &carry);
  sum[4] = __builtin_addc(sum[6], low, carry, &carry);
  sum[5] = __builtin_addc(sum[7], first, carry, &carry);
  sum[6] = __builtin_addc(sum[8], second, carry, &carry);
  sum[7] = __builtin_addc(sum[9], third, carry, top);
  IN_ORDER(*top);
}

// Montgomery's product, of two words of `right` at a time. Between these, the sum, whose part from 2^256 on is `top`, is below
// 2p. Two more rows make it at most 2p + p(2^64 - 1), which is below 2^320, and the multiple of p leaves it below 2p again.
void field_multiply(Element *product, const Element *left, const Element *right) {
  uint32_t sum[10] = {0}, top = 0;
  UNROLLED (int row = 0; row < 8; row += 2) {
    uint32_t factor = right->words[row], over;
    sum[8] = 0;
    UNROLLED (int column = 0; column < 8; column++) accumulate(&sum[column], &sum[8], left->words[column], factor);
    sum[8] = __builtin_addc(sum[8], top, 0, &over);
    factor = right->words[row + 1];
    sum[9] = 0;
    UNROLLED (int column = 0; column < 8; column++) accumulate(&sum[column + 1], &sum[9], left->words[column], factor);
    sum[9] += over;
    reduce_two_words(sum, &top);
  }
  reduce_once(product, sum, top);
}

// t/2 is t shifted, or for an odd t, t + p.
void field_halve(Element *half, const Element *element) {
  uint32_t words[9], mask = -(element->words[0] & 1), carry = 0;
  IN_ORDER(mask);
  UNROLLED (int index = 0; index < 8; index++) {
    words[index] = __builtin_addc(element->words[index], prime[index] & mask, carry, &carry);
  }
  words[8] = carry;
  UNROLLED (int index = 0; index < 8; index++) half->words[index] = words[index] >> 1 | words[index + 1] << 31;
}

uint32_t field_is_zero(const Element *element) {
  uint32_t bits = 0;
  UNROLLED (int index = 0; index < 8; index++) bits |= element->words[index];
  bits = (bits | -bits) >> 31;
  IN_ORDER(bits);
  return bits - 1;
}

uint32_t field_read(Element *integer, const uint8_t *bytes) {
  uint32_t borrow = 0;
  for (int index = 0; index < 8; index++) {
    const uint8_t *word = bytes + 28 - 4 * index;
    integer->words[index] = (uint32_t)word[0] << 24 | (uint32_t)word[1] << 16 | (uint32_t)word[2] << 8 | word[3];
    (void)__builtin_subc(integer->words[index], prime[index], borrow, &borrow);
  }
  return -borrow;
}

void field_write(uint8_t *bytes, const Element *integer) {
  for (int index = 0; index < 32; index++) bytes[31 - index] = (uint8_t)(integer->words[index / 4] >> index % 4 * 8);
}
