// The field of P-256: integers below p = 2^256 - 2^224 + 2^192 + 2^96 - 1, of eight 32-bit words, the lowest first. Products
// are Montgomery's: an element x is kept as x·2^256 mod p. Every function takes the same time for all operands, returns a
// result below p, and allows its result to be an operand.

#include <stdint.h>

typedef struct {
  uint32_t words[8];
} Element;

/// 1 as an element; p as it is; and 2^512 mod p as it is: the product of an integer and `field_conversion` is the integer's
/// element.
extern const Element field_one, field_prime, field_conversion;

void field_add(Element *sum, const Element *left, const Element *right);
void field_subtract(Element *difference, const Element *left, const Element *right);
void field_multiply(Element *product, const Element *left, const Element *right);
void field_halve(Element *half, const Element *element);

/// All bits set if the element is 0, otherwise 0.
uint32_t field_is_zero(const Element *element);

/// Reads an integer of 32 bytes, the highest first, as it is. Returns all bits set if it is below p, otherwise 0; then the
/// integer is not to be used.
uint32_t field_read(Element *integer, const uint8_t *bytes);

/// Writes an integer as 32 bytes, the highest first.
void field_write(uint8_t *bytes, const Element *integer);
