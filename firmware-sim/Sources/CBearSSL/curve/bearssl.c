// P-256 with 32-bit multiplications, which all take the same time on a Cortex-M4.

#include "CBearSSL.h"
#include "secrets.h"

static const br_ec_impl *const curve = &br_ec_p256_m31;

// Whether 0 < scalar < order, by a subtraction over all bytes.
static uint32_t is_in_range(const uint8_t *scalar) {
  size_t count;
  const uint8_t *order = curve->order(BR_EC_secp256r1, &count);
  uint32_t borrow = 0, any_bit = 0;
  for (size_t index = 32; index-- > 0;) {
    borrow = (scalar[index] - order[index] - borrow) >> 31;
    any_bit |= scalar[index];
  }
  uint32_t is_zero = (any_bit - 1) >> 31;
  return borrow & ~is_zero;
}

uint32_t holdfast_p256_public_point(const uint8_t *scalar, uint8_t *point) {
  if (!is_in_range(scalar)) return 0;
  curve->mulgen(point, scalar, 32, BR_EC_secp256r1);
  return 1;
}

uint32_t holdfast_p256_agree(const uint8_t *scalar, const uint8_t *peer, uint8_t *shared) {
  uint8_t point[65];
  memcpy(point, peer, sizeof point);
  if (!is_in_range(scalar)) return 0;
  // This checks whether the point is on the curve. If it is not, the product is not used.
  uint32_t is_valid = curve->mul(point, sizeof point, scalar, 32, BR_EC_secp256r1);
  if (is_valid) memcpy(shared, point + 1, 32);
  wipe(point, sizeof point);
  return is_valid;
}

uint32_t holdfast_p256_verify(const uint8_t *key, const uint8_t *digest, const uint8_t *signature) {
  br_ec_public_key public_key = {.curve = BR_EC_secp256r1, .q = (unsigned char *)key, .qlen = 65};
  return br_ecdsa_i31_vrfy_raw(curve, digest, 32, &public_key, signature, 64);
}
