// BearSSL's P-256 under other names, with sums and products of its field, which it keeps to itself.

#define holdfast_p256_public_point bearssl_public_point
#define holdfast_p256_agree bearssl_agree
#define holdfast_p256_verify bearssl_verify
#include "../../../firmware-sim/Sources/CBearSSL/curve/bearssl.c"
#include "ec/ec_p256_m31.c"

static void read_field(uint32_t *words, const uint8_t *bytes) { words[8] = be8_to_le30(words, bytes, 32); }

static void write_field(uint8_t *bytes, uint32_t *words) {
  reduce_final_f256(words);
  le30_to_be8(bytes, 32, words);
}

void bearssl_field(
    const uint8_t *left, const uint8_t *right, uint8_t *sum, uint8_t *difference, uint8_t *product, uint8_t *square) {
  uint32_t a[9], b[9], result[9];
  read_field(a, left);
  read_field(b, right);
  add_f256(result, a, b);
  write_field(sum, result);
  sub_f256(result, a, b);
  write_field(difference, result);
  mul_f256(result, a, b);
  write_field(product, result);
  square_f256(result, a);
  write_field(square, result);
}
