// Compares Holdfast's P-256 with BearSSL's and OpenSSL's: first edges, then as many random cases as asked for.
//
//     compare CASES SEED
//
// Of a hundred random cases, 88 are about the field (sums, differences, products, squares, halves, also in place), ten about key
// agreement, one about a public point, and one about a signature. A difference ends the program with exit status 1.

#include <inttypes.h>
#include <openssl/bn.h>
#include <openssl/ec.h>
#include <openssl/ecdsa.h>
#include <openssl/obj_mac.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "CBearSSL.h"
#include "field.h"

void bearssl_field(
    const uint8_t *left, const uint8_t *right, uint8_t *sum, uint8_t *difference, uint8_t *product, uint8_t *square);
uint32_t bearssl_public_point(const uint8_t *scalar, uint8_t *point);
uint32_t bearssl_agree(const uint8_t *scalar, const uint8_t *peer, uint8_t *shared);
uint32_t bearssl_verify(const uint8_t *key, const uint8_t *digest, const uint8_t *signature);

static EC_GROUP *group;
static BN_CTX *context;
static BIGNUM *prime;
static const BIGNUM *order;
static uint64_t state, case_count, accepted_count;

static void check(int is_right, const char *what, const uint8_t *left, const uint8_t *right) {
  if (is_right) return;
  fprintf(stderr, "%s differs, case %" PRIu64 "\n", what, case_count);
  for (int row = 0; row < 2; row++) {
    for (int index = 0; index < 32; index++) fprintf(stderr, "%02x", (row == 0 ? left : right)[index]);
    fprintf(stderr, "\n");
  }
  exit(1);
}

static void require(int is_success) {
  if (!is_success) {
    fprintf(stderr, "libcrypto failed\n");
    exit(2);
  }
}

// Numbers that favour carries and edges. Source of the generator: Steele, Lea, Flood, "Fast splittable pseudorandom number
// generators" (SplitMix64).

static uint64_t draw(void) {
  uint64_t value = (state += 0x9E3779B97F4A7C15);
  value = (value ^ value >> 30) * 0xBF58476D1CE4E5B9;
  value = (value ^ value >> 27) * 0x94D049BB133111EB;
  return value ^ value >> 31;
}

static void draw_bytes(uint8_t *bytes) {
  for (int index = 0; index < 32; index++) bytes[index] = (uint8_t)draw();
}

static void write_number(uint8_t *bytes, const BIGNUM *number) { require(BN_bn2binpad(number, bytes, 32) == 32); }

/// A number below `modulus`: any, or one with runs of equal bits, or of words at the edge of a carry, or one close to an end.
static void draw_number(uint8_t *bytes, const BIGNUM *modulus) {
  static const uint32_t words[] = {0, 1, 2, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFE, 0xFFFFFFFF};
  draw_bytes(bytes);
  switch (draw() % 8) {
    case 0:
      for (int bit = 0, value = 0; bit < 256; bit++) {
        if (draw() % 16 == 0) value ^= 1;
        bytes[bit / 8] = (uint8_t)(bytes[bit / 8] << 1 | value);
      }
      break;
    case 1:
      for (int word = 0; word < 8; word++) {
        uint32_t value = words[draw() % 7];
        for (int index = 0; index < 4; index++) bytes[4 * word + index] = (uint8_t)(value >> 8 * index);
      }
      break;
    case 2: memset(bytes, 0, 30); break;
    case 3: memset(bytes, 0xFF, 30); break;
  }
  BIGNUM *number = BN_bin2bn(bytes, 32, NULL);
  require(number && BN_nnmod(number, number, modulus, context));
  write_number(bytes, number);
  BN_free(number);
}

// The field

static void to_bytes(uint8_t *bytes, const Element *element) { field_write(bytes, element); }

/// Twice the operation: with a separate result, and over one of its operands.
static void compute(void (*operation)(Element *, const Element *, const Element *), const Element *left, const Element *right,
                    uint8_t *result) {
  Element separate, over_left = *left, over_right = *right;
  uint8_t other[32];
  operation(&separate, left, right);
  operation(&over_left, &over_left, right);
  operation(&over_right, left, &over_right);
  to_bytes(result, &separate);
  to_bytes(other, &over_left);
  check(memcmp(result, other, 32) == 0, "a result over its left operand", result, other);
  to_bytes(other, &over_right);
  check(memcmp(result, other, 32) == 0, "a result over its right operand", result, other);
}

static void compare_number(const uint8_t *ours, const BIGNUM *number, const char *what) {
  uint8_t theirs[32];
  write_number(theirs, number);
  check(memcmp(ours, theirs, 32) == 0, what, ours, theirs);
}

static void compare_field(const uint8_t *left, const uint8_t *right) {
  Element a, b, product, square, half;
  uint8_t sum[32], difference[32], ours[32], theirs[4][32];
  BIGNUM *x = BN_bin2bn(left, 32, NULL), *y = BN_bin2bn(right, 32, NULL), *result = BN_new();
  require(x && y && result);
  check(field_read(&a, left) && field_read(&b, right), "reading", left, right);
  bearssl_field(left, right, theirs[0], theirs[1], theirs[2], theirs[3]);

  compute(field_add, &a, &b, sum);
  require(BN_mod_add(result, x, y, prime, context));
  compare_number(sum, result, "OpenSSL's sum");
  check(memcmp(sum, theirs[0], 32) == 0, "BearSSL's sum", sum, theirs[0]);

  compute(field_subtract, &a, &b, difference);
  require(BN_mod_sub(result, x, y, prime, context));
  compare_number(difference, result, "OpenSSL's difference");
  check(memcmp(difference, theirs[1], 32) == 0, "BearSSL's difference", difference, theirs[1]);

  // The product by 2^512/2^256 undoes the division by 2^256.
  field_multiply(&product, &a, &b);
  compute(field_multiply, &product, &field_conversion, ours);
  require(BN_mod_mul(result, x, y, prime, context));
  compare_number(ours, result, "OpenSSL's product");
  check(memcmp(ours, theirs[2], 32) == 0, "BearSSL's product", ours, theirs[2]);
  square = a;
  field_multiply(&square, &square, &square);
  field_multiply(&square, &square, &field_conversion);
  to_bytes(ours, &square);
  check(memcmp(ours, theirs[3], 32) == 0, "BearSSL's square", ours, theirs[3]);

  half = a;
  field_halve(&half, &half);
  to_bytes(ours, &half);
  if (BN_is_odd(x)) require(BN_add(x, x, prime));
  require(BN_rshift1(x, x));
  compare_number(ours, x, "OpenSSL's half");
  field_subtract(&half, &a, &b);
  check((field_is_zero(&half) != 0) == (memcmp(left, right, 32) == 0), "what is zero", left, right);
  BN_free(x), BN_free(y), BN_free(result);
}

// Points

static void encode(uint8_t *bytes, const EC_POINT *point) {
  require(EC_POINT_point2oct(group, point, POINT_CONVERSION_UNCOMPRESSED, bytes, 65, context) == 65);
}

static void compare_agreement(const uint8_t *scalar, const EC_POINT *peer) {
  uint8_t point[65], ours[32], theirs[32], openssl[65];
  EC_POINT *product = EC_POINT_new(group);
  BIGNUM *factor = BN_bin2bn(scalar, 32, NULL);
  require(product && factor && EC_POINT_mul(group, product, NULL, peer, factor, context));
  encode(point, peer);
  encode(openssl, product);
  check(holdfast_p256_agree(scalar, point, ours) == 1, "an agreement", scalar, point + 1);
  check(bearssl_agree(scalar, point, theirs) == 1, "BearSSL's agreement", scalar, point + 1);
  check(memcmp(ours, theirs, 32) == 0, "BearSSL's secret", scalar, point + 1);
  check(memcmp(ours, openssl + 1, 32) == 0, "OpenSSL's secret", scalar, point + 1);
  BN_free(factor);
  EC_POINT_free(product);
}

static void compare_public_point(const uint8_t *scalar) {
  uint8_t ours[65], theirs[65], openssl[65];
  EC_POINT *product = EC_POINT_new(group);
  BIGNUM *factor = BN_bin2bn(scalar, 32, NULL);
  require(product && factor && EC_POINT_mul(group, product, factor, NULL, NULL, context));
  encode(openssl, product);
  check(holdfast_p256_public_point(scalar, ours) == 1, "a public point", scalar, scalar);
  check(bearssl_public_point(scalar, theirs) == 1, "BearSSL's point", scalar, scalar);
  check(memcmp(ours, theirs, 65) == 0, "BearSSL's point", scalar, scalar);
  check(memcmp(ours, openssl, 65) == 0, "OpenSSL's point", scalar, scalar);
  BN_free(factor);
  EC_POINT_free(product);
}

static void compare_verdicts(const uint8_t *key, const uint8_t *digest, const uint8_t *signature) {
  EC_KEY *public_key = EC_KEY_new();
  EC_POINT *point = EC_POINT_new(group);
  uint32_t openssl = 0;
  require(public_key && point && EC_KEY_set_group(public_key, group));
  if (key[0] == 4 && EC_POINT_oct2point(group, point, key, 65, context) == 1) {
    ECDSA_SIG *numbers = ECDSA_SIG_new();
    require(EC_KEY_set_public_key(public_key, point) && numbers);
    require(ECDSA_SIG_set0(numbers, BN_bin2bn(signature, 32, NULL), BN_bin2bn(signature + 32, 32, NULL)));
    openssl = ECDSA_do_verify(digest, 32, numbers, public_key) == 1;
    ECDSA_SIG_free(numbers);
  }
  uint32_t ours = holdfast_p256_verify(key, digest, signature);
  check(ours == openssl, "OpenSSL's verdict", signature, signature + 32);
  // BearSSL refuses every signature over a digest of 0, which nobody can find a message for.
  static const uint8_t zero[32];
  if (memcmp(digest, zero, 32) != 0) {
    check(ours == bearssl_verify(key, digest, signature), "BearSSL's verdict", signature, signature + 32);
  }
  accepted_count += ours;
  EC_POINT_free(point);
  EC_KEY_free(public_key);
}

/// A signature that is right because R = first · G + second · key is what a verifier computes: r = R.x, s = r/second,
/// digest = first · s. Then the verdicts over it, and over it with a bit changed.
static void compare_signature(const uint8_t *first, const uint8_t *second, const EC_POINT *key) {
  EC_POINT *sum = EC_POINT_new(group);
  BIGNUM *a = BN_bin2bn(first, 32, NULL), *b = BN_bin2bn(second, 32, NULL), *r = BN_new(), *s = BN_new();
  uint8_t bytes[65 + 32 + 64], *digest = bytes + 65, *signature = bytes + 97;
  require(sum && a && b && r && s && EC_POINT_mul(group, sum, a, key, b, context));
  encode(bytes, key);
  memset(digest, 0, 96);
  if (!EC_POINT_is_at_infinity(group, sum) && !BN_is_zero(b)) {
    require(EC_POINT_get_affine_coordinates(group, sum, r, NULL, context) && BN_nnmod(r, r, order, context));
    require(BN_mod_inverse(s, b, order, context) && BN_mod_mul(s, s, r, order, context));
    require(BN_mod_mul(a, a, s, order, context));
    write_number(digest, a);
    write_number(signature, r);
    write_number(signature + 32, s);
    uint64_t before = accepted_count;
    compare_verdicts(bytes, digest, signature);
    check(accepted_count == before + 1, "a right signature", signature, signature + 32);
  } else {
    // The sum is at infinity: no r is right.
    draw_number(signature, order);
    write_number(signature + 32, BN_value_one());
    write_number(digest, a);
    compare_verdicts(bytes, digest, signature);
  }
  uint64_t bit = draw() % (8 * sizeof bytes);
  bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
  compare_verdicts(bytes, digest, signature);
  EC_POINT_free(sum);
  BN_free(a), BN_free(b), BN_free(r), BN_free(s);
}

// Edges

enum { MOST_EDGES = 512 };
static uint8_t edges[MOST_EDGES][32];
static int edge_count;

static void add_edge(const BIGNUM *number, long offset, const BIGNUM *modulus) {
  BIGNUM *value = BN_dup(number);
  require(value && (offset < 0 ? BN_sub_word(value, (BN_ULONG)-offset) : BN_add_word(value, (BN_ULONG)offset)));
  if (!BN_is_negative(value) && BN_cmp(value, modulus) < 0) {
    require(edge_count < MOST_EDGES);
    write_number(edges[edge_count++], value);
  }
  BN_free(value);
}

/// Numbers about 0, about the modulus, about each power of 2^32, and p's and the order's own words.
static void make_edges(const BIGNUM *modulus, long reach) {
  BIGNUM *number = BN_new();
  require(number != NULL);
  edge_count = 0;
  for (long offset = 0; offset <= reach; offset++) add_edge(number, offset, modulus);
  for (long offset = 1; offset <= reach; offset++) add_edge(modulus, -offset, modulus);
  for (int bit = 32; bit < 256; bit += 32) {
    require(BN_set_word(number, 1) && BN_lshift(number, number, bit));
    for (long offset = -2; offset <= 2; offset++) add_edge(number, offset, modulus);
    require(BN_sub(number, modulus, number));
    for (long offset = -2; offset <= 2; offset++) add_edge(number, offset, modulus);
  }
  for (const char *const *pattern = (const char *const[]){
           "7FFFFFFF7FFFFFFF7FFFFFFF7FFFFFFF7FFFFFFF7FFFFFFF7FFFFFFF7FFFFFFF",
           "8000000080000000800000008000000080000000800000008000000080000000",
           "00000000FFFFFFFF00000000FFFFFFFF00000000FFFFFFFF00000000FFFFFFFF",
           "FFFFFFFF00000000FFFFFFFF00000000FFFFFFFF00000000FFFFFFFE00000000",
           "FFFFFFFEFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFF",
           "FFFFFFFEFFFFFFFEFFFFFFFEFFFFFFFEFFFFFFFEFFFFFFFEFFFFFFFEFFFFFFFE", NULL};
       *pattern; pattern++) {
    require(BN_hex2bn(&number, *pattern));
    add_edge(number, 0, modulus);
  }
  BN_free(number);
}

static void refuse(const uint8_t *scalar, const uint8_t *peer, const char *what) {
  uint8_t shared[32] = {0}, untouched[32] = {0};
  check(holdfast_p256_agree(scalar, peer, shared) == 0, what, scalar, peer + 1);
  check(memcmp(shared, untouched, 32) == 0, "the secret of a refused agreement", scalar, peer + 1);
  check(bearssl_agree(scalar, peer, shared) == 0, what, scalar, peer + 1);
}

static void compare_edges(void) {
  uint8_t scalar[32], bytes[65], changed[65];
  make_edges(prime, 8);
  for (int left = 0; left < edge_count; left++) {
    for (int right = 0; right < edge_count; right++) compare_field(edges[left], edges[right]), case_count++;
  }

  // Each scalar about an edge, with G, -G, 2G, and a point without a pattern; all sums that meet the same point or its negative.
  make_edges(order, 40);
  EC_POINT *points[4];
  static const int factors[] = {1, -1, 2, 12345};
  for (int index = 0; index < 4; index++) {
    BIGNUM *factor = BN_new();
    points[index] = EC_POINT_new(group);
    require(points[index] && factor && BN_set_word(factor, (BN_ULONG)abs(factors[index])));
    BN_set_negative(factor, factors[index] < 0);
    require(EC_POINT_mul(group, points[index], factor, NULL, NULL, context));
    BN_free(factor);
  }
  for (int index = 1; index < edge_count; index++) {
    compare_public_point(edges[index]), case_count++;
    for (int point = 0; point < 4; point++) compare_agreement(edges[index], points[point]), case_count++;
  }
  for (int first = 0; first < edge_count; first += first < 40 ? 1 : 7) {
    for (int second = 1; second < edge_count; second += second < 40 ? 1 : 7) {
      compare_signature(edges[first], edges[second], points[(first + second) % 4]), case_count++;
    }
  }

  // What is refused: scalars outside the range, and points that are none.
  encode(bytes, points[3]);
  for (long offset = -1; offset <= 2; offset++) {
    BIGNUM *number = offset < 0 ? BN_new() : BN_dup(order);
    require(number && (offset < 0 || BN_add_word(number, (BN_ULONG)offset)));
    write_number(scalar, number);
    refuse(scalar, bytes, "a scalar out of range");
    BN_free(number), case_count++;
  }
  memset(scalar, 0xFF, 32);
  refuse(scalar, bytes, "the highest scalar");
  draw_number(scalar, order);
  for (int bit = 0; bit < 8 * 65; bit++, case_count++) {
    memcpy(changed, bytes, 65);
    changed[bit / 8] ^= (uint8_t)(1 << bit % 8);
    refuse(scalar, changed, "a changed point");
  }
  for (int coordinate = 0; coordinate < 2; coordinate++, case_count++) {
    memcpy(changed, bytes, 65);
    memset(changed + 1 + 32 * coordinate, 0xFF, 32);
    refuse(scalar, changed, "a coordinate that is not below p");
  }
  memset(changed, 0, 65);
  refuse(scalar, changed, "infinity");
  changed[0] = 4;
  refuse(scalar, changed, "zeros");
  for (int index = 0; index < 4; index++) EC_POINT_free(points[index]);
}

int main(int count, char **arguments) {
  if (count != 3) {
    fprintf(stderr, "usage: compare CASES SEED\n");
    return 64;
  }
  uint64_t cases = strtoull(arguments[1], NULL, 10);
  state = strtoull(arguments[2], NULL, 10);
  group = EC_GROUP_new_by_curve_name(NID_X9_62_prime256v1);
  context = BN_CTX_new();
  prime = BN_new();
  require(group && context && prime && EC_GROUP_get_curve(group, prime, NULL, NULL, context));
  order = EC_GROUP_get0_order(group);

  compare_edges();
  printf("%" PRIu64 " cases at edges, %" PRIu64 " signatures accepted\n", case_count, accepted_count);
  case_count = accepted_count = 0;

  EC_POINT *point = EC_POINT_new(group), *step = EC_POINT_new(group);
  uint8_t left[32], right[32];
  BIGNUM *factor = BN_new();
  draw_bytes(left);
  require(point && step && factor && BN_bin2bn(left, 32, factor));
  require(EC_POINT_mul(group, point, factor, NULL, NULL, context) && EC_POINT_copy(step, point));
  require(EC_POINT_dbl(group, step, step, context));
  for (; case_count < cases; case_count++) {
    uint64_t kind = case_count % 100;
    draw_number(left, kind < 88 ? prime : order);
    draw_number(right, kind < 88 ? prime : order);
    if (kind < 88) {
      compare_field(left, right);
      continue;
    }
    // Zero is an edge.
    left[31] |= 1;
    right[31] |= 1;
    require(EC_POINT_add(group, point, point, step, context));
    if (kind < 98) compare_agreement(left, point);
    if (kind == 98) compare_public_point(left);
    if (kind == 99) compare_signature(left, right, point);
  }
  printf("%" PRIu64 " random cases from seed %s, %" PRIu64 " signatures accepted\n", case_count, arguments[2], accepted_count);
  BN_free(factor);
  EC_POINT_free(point), EC_POINT_free(step);
  BN_free(prime), BN_CTX_free(context), EC_GROUP_free(group);
  return 0;
}
