// P-256 with the arithmetic of `field.c` and `point.c`. Quotients are BearSSL's.

#include "CBearSSL.h"
#include "inner.h"
#include "point.h"
#include "secrets.h"

/// A modulus, a prime of 256 bits, and a divisor's inverse, ready for Montgomery's product.
typedef struct {
  uint32_t modulus[10], negative_inverse, inverse[10];
} Divisor;

/// Inverts `divisor`, which is neither 0 nor above the modulus, 32 bytes each. The time does not depend on it.
static void prepare(Divisor *divisor, const uint8_t *bytes, const uint8_t *modulus) {
  uint32_t number[10], room[30];
  br_i31_decode(divisor->modulus, modulus, 32);
  divisor->negative_inverse = br_i31_ninv31(divisor->modulus[1]);
  br_i31_decode(number, bytes, 32);
  number[0] = divisor->modulus[0];
  br_i31_from_monty(number, divisor->modulus, divisor->negative_inverse);
  br_i31_zero(divisor->inverse, divisor->modulus[0]);
  divisor->inverse[1] = 1;
  br_i31_moddiv(divisor->inverse, number, divisor->modulus, divisor->negative_inverse, room);
}

/// Divides a number of 32 bytes, below twice the modulus. The time does not depend on it.
static void divide(uint8_t *quotient, const uint8_t *dividend, const Divisor *divisor) {
  uint32_t number[10], result[10];
  br_i31_decode(number, dividend, 32);
  number[0] = divisor->modulus[0];
  br_i31_sub(number, divisor->modulus, br_i31_sub(number, divisor->modulus, 0) ^ 1);
  br_i31_montymul(result, number, divisor->inverse, divisor->modulus, divisor->negative_inverse);
  br_i31_encode(quotient, 32, result);
}

/// Writes coordinate/power, where `power` is z² for x and z³ for y.
static void write_quotient(uint8_t *bytes, const Element *coordinate, const Element *power) {
  uint8_t prime[32], number[32];
  Divisor divisor;
  field_write(prime, &field_prime);
  field_write(number, power);
  prepare(&divisor, number, prime);
  field_write(number, coordinate);
  divide(bytes, number, &divisor);
}

uint32_t holdfast_p256_public_point(const uint8_t *scalar, uint8_t *point) {
  Point generator, product;
  Element power;
  if (!scalar_is_valid(scalar) || !point_read(&generator, br_secp256r1.generator)) return 0;
  point_multiply(&product, &generator, scalar);
  point[0] = 4;
  field_multiply(&power, &product.z, &product.z);
  write_quotient(point + 1, &product.x, &power);
  field_multiply(&power, &power, &product.z);
  write_quotient(point + 33, &product.y, &power);
  return 1;
}

uint32_t holdfast_p256_agree(const uint8_t *scalar, const uint8_t *peer, uint8_t *shared) {
  Point point, product;
  Element power;
  if (!scalar_is_valid(scalar) || !point_read(&point, peer)) return 0;
  point_multiply(&product, &point, scalar);
  field_multiply(&power, &product.z, &product.z);
  write_quotient(shared, &product.x, &power);
  wipe(&product, sizeof product);
  return 1;
}

/// Whether the point's x coordinate is `candidate`, an integer of 32 bytes.
static uint32_t has_coordinate(const Point *point, const uint8_t *candidate) {
  Element x, power;
  if (!field_read(&x, candidate)) return 0;
  field_multiply(&x, &x, &field_conversion);
  field_multiply(&power, &point->z, &point->z);
  field_multiply(&x, &x, &power);
  field_subtract(&x, &x, &point->x);
  return 1 & field_is_zero(&x);
}

// Source: FIPS 186-5 §6.4.2.
uint32_t holdfast_p256_verify(const uint8_t *key, const uint8_t *digest, const uint8_t *signature) {
  const uint8_t *r = signature, *s = signature + 32, *order = br_secp256r1.order;
  uint8_t scalar[32], generator_scalar[32];
  Divisor divisor;
  Point point, sum;
  if (!scalar_is_valid(r) || !scalar_is_valid(s) || !point_read(&point, key)) return 0;
  prepare(&divisor, s, order);
  divide(generator_scalar, digest, &divisor);
  divide(scalar, r, &divisor);
  point_combine(&sum, &point, scalar, generator_scalar);
  if (field_is_zero(&sum.z)) return 0;
  if (has_coordinate(&sum, r)) return 1;
  // The coordinate may be r plus the order, if that is below p.
  uint32_t carry = 0;
  for (int index = 31; index >= 0; index--) {
    carry += (uint32_t)r[index] + order[index];
    scalar[index] = (uint8_t)carry;
    carry >>= 8;
  }
  return carry == 0 && has_coordinate(&sum, scalar);
}
