// Formulas in Jacobian coordinates for a curve y² = x³ - 3x + b. Source: https://hyperelliptic.org/EFD, "shortw/jacobian-3".

#include "point.h"

#include <string.h>

#include "inner.h"

enum { TABLE_COUNT = 8 };  // P, 3P, … 15P

static const Element curve_b = {
    {0x29C4BDDF, 0xD89CDF62, 0x78843090, 0xACF005CD, 0xF7212ED6, 0xE5A220AB, 0x04874834, 0xDC30061D}};

/// Odd multiples of the generator, G, 3G, … 15G, with z = 1.
static const struct {
  Element x, y;
} generator_table[TABLE_COUNT] = {
    {{{0x18A9143C, 0x79E730D4, 0x5FEDB601, 0x75BA95FC, 0x77622510, 0x79FB732B, 0xA53755C6, 0x18905F76}},
     {{0xCE95560A, 0xDDF25357, 0xBA19E45C, 0x8B4AB8E4, 0xDD21F325, 0xD2E88688, 0x25885D85, 0x8571FF18}}},
    {{{0x4EEBC127, 0xFFAC3F90, 0x087D81FB, 0xB027F84A, 0x87CBBC98, 0x66AD77DD, 0xB6FF747E, 0x26936A3F}},
     {{0xC983A7EB, 0xB04C5C1F, 0x0861FE1A, 0x583E47AD, 0x1A2EE98E, 0x78820831, 0xE587CC07, 0xD5F06A29}}},
    {{{0xC45C61F5, 0xBE1B8AAE, 0x94B9537D, 0x90EC649A, 0xD076C20C, 0x941CB5AA, 0x890523C8, 0xC9079605}},
     {{0xE7BA4F10, 0xEB309B4A, 0xE5EB882B, 0x73C568EF, 0x7E7A1F68, 0x3540A987, 0x2DD1E916, 0x73A076BB}}},
    {{{0xA0173B4F, 0x0746354E, 0xD23C00F7, 0x2BD20213, 0x0C23BB08, 0xF43EAAB5, 0xC3123E03, 0x13BA5119}},
     {{0x3F5B9D4D, 0x2847D030, 0x5DA67BDD, 0x6742F2F2, 0x77C94195, 0xEF933BDC, 0x6E240867, 0xEAEDD915}}},
    {{{0x264E20E8, 0x75C96E8F, 0x59A7A841, 0xABE6BFED, 0x44C8EB00, 0x2CC09C04, 0xF0C4E16B, 0xE05B3080}},
     {{0xA45F3314, 0x1EB7777A, 0xCE5D45E3, 0x56AF7BED, 0x88B12F1A, 0x2B6E019A, 0xFD835F9B, 0x086659CD}}},
    {{{0x6245E404, 0xEA7D260A, 0x6E7FDFE0, 0x9DE40795, 0x8DAC1AB5, 0x1FF3A415, 0x649C9073, 0x3E7090F1}},
     {{0x2B944E88, 0x1A768561, 0xE57F61C8, 0x250F939E, 0x1EAD643D, 0x0C0DAA89, 0xE125B88E, 0x68930023}}},
    {{{0x4B2ED709, 0xCCC42563, 0x856FD30D, 0x0E356769, 0x559E9811, 0xBCBCD43F, 0x5395B759, 0x738477AC}},
     {{0xC00EE17F, 0x35752B90, 0x742ED2E3, 0x68748390, 0xBD1F5BC1, 0x7CD06422, 0xC9E7B797, 0xFBC08769}}},
    {{{0xBC60055B, 0x72BCD8B7, 0x56E27E4B, 0x03CC23EE, 0xE4819370, 0xEE337424, 0x0AD3DA09, 0xE2AA0E43}},
     {{0x6383C45D, 0x40B8524F, 0x42A41B25, 0xD7663554, 0x778A4797, 0x64EFA6DE, 0x7079ADF4, 0x2042170A}}},
};

uint32_t point_read(Point *point, const uint8_t *bytes) {
  Element left, right;
  uint32_t is_valid = field_read(&point->x, bytes + 1) & field_read(&point->y, bytes + 33);
  field_multiply(&point->x, &point->x, &field_conversion);
  field_multiply(&point->y, &point->y, &field_conversion);
  point->z = field_one;
  // x³ - 3x + b = x(x² - 3) + b
  field_multiply(&right, &point->x, &point->x);
  for (int count = 0; count < 3; count++) field_subtract(&right, &right, &field_one);
  field_multiply(&right, &right, &point->x);
  field_add(&right, &right, &curve_b);
  field_multiply(&left, &point->y, &point->y);
  field_subtract(&left, &left, &right);
  return is_valid & field_is_zero(&left) & (bytes[0] == 4);
}

/// Doubles a point, at infinity too. All coordinates are those of the usual formulas with z halved: x/4, y/8.
static void point_double(Point *point) {
  Element slope, square, product;
  // slope = 3(x - z²)(x + z²)/2
  field_multiply(&square, &point->z, &point->z);
  field_add(&product, &point->x, &square);
  field_subtract(&square, &point->x, &square);
  field_multiply(&slope, &product, &square);
  field_halve(&product, &slope);
  field_add(&slope, &slope, &product);
  field_multiply(&point->z, &point->y, &point->z);
  // x' = slope² - 2xy², y' = slope(xy² - x') - y⁴
  field_multiply(&square, &point->y, &point->y);
  field_multiply(&product, &point->x, &square);
  field_multiply(&point->x, &slope, &slope);
  field_subtract(&point->x, &point->x, &product);
  field_subtract(&point->x, &point->x, &product);
  field_subtract(&product, &product, &point->x);
  field_multiply(&point->y, &slope, &product);
  field_multiply(&square, &square, &square);
  field_subtract(&point->y, &point->y, &square);
}

/// Adds the point (x/z², y/z³), or (x, y) without a `z`, where neither point is at infinity. If both are the same point, or one
/// is the other's negative, the sum has z = 0, and x = 0 if they are the same.
static void add(Point *sum, const Element *x, const Element *y, const Element *z) {
  Element height, slope, square;
  if (z) {
    field_multiply(&square, z, z);
    field_multiply(&sum->x, &sum->x, &square);
    field_multiply(&square, &square, z);
    field_multiply(&sum->y, &sum->y, &square);
  }
  field_multiply(&square, &sum->z, &sum->z);
  field_multiply(&height, x, &square);
  field_multiply(&square, &square, &sum->z);
  field_multiply(&slope, y, &square);
  field_subtract(&height, &height, &sum->x);
  field_subtract(&slope, &slope, &sum->y);
  if (z) field_multiply(&sum->z, &sum->z, z);
  field_multiply(&sum->z, &sum->z, &height);
  // x' = slope² - height³ - 2x·height², y' = slope(x·height² - x') - y·height³
  field_multiply(&square, &height, &height);
  field_multiply(&height, &height, &square);
  field_multiply(&square, &square, &sum->x);
  field_multiply(&sum->x, &slope, &slope);
  field_subtract(&sum->x, &sum->x, &height);
  field_subtract(&sum->x, &sum->x, &square);
  field_subtract(&sum->x, &sum->x, &square);
  field_subtract(&square, &square, &sum->x);
  field_multiply(&square, &square, &slope);
  field_multiply(&height, &height, &sum->y);
  field_subtract(&sum->y, &square, &height);
}

static void make_table(Point *table, const Point *point) {
  Point twice = *point;
  point_double(&twice);
  table[0] = *point;
  for (int index = 1; index < TABLE_COUNT; index++) {
    table[index] = table[index - 1];
    add(&table[index], &twice.x, &twice.y, &twice.z);
  }
}

/// Eight bits of the scalar from a bit on, 0 to 256, counted from the lowest.
static uint32_t bits(const uint8_t *scalar, int position) {
  int byte = 31 - position / 8;
  uint32_t low = byte >= 0 ? scalar[byte] : 0, high = byte >= 1 ? scalar[byte - 1] : 0;
  return (high << 8 | low) >> position % 8;
}

/// Writes the order less `scalar`. Returns whether it is a valid scalar.
static uint32_t negate(uint8_t *negative, const uint8_t *scalar) {
  uint32_t borrow = 0, any_bit = 0, any_difference = 0;
  for (int index = 31; index >= 0; index--) {
    uint32_t difference = br_secp256r1.order[index] - scalar[index] - borrow;
    borrow = difference >> 31;
    negative[index] = (uint8_t)difference;
    any_bit |= scalar[index];
    any_difference |= negative[index];
  }
  uint32_t is_zero = (any_bit - 1) >> 31, is_order = (any_difference - 1) >> 31;
  return 1 & ~(borrow | is_zero | is_order);
}

uint32_t scalar_is_valid(const uint8_t *scalar) {
  uint8_t negative[32];
  return negate(negative, scalar);
}

/// All bits set in a mask that the compiler cannot tell from any word, if `bit` is 1; otherwise 0.
static uint32_t mask(uint32_t bit) {
  __asm__ volatile("" : "+r"(bit));
  return -bit;
}

/// Copies `count` words if the mask is set, and otherwise the words that are there.
static void copy_masked(void *destination, const void *source, uint32_t mask, int count) {
  uint32_t *to = destination;
  const uint32_t *from = source;
  for (int index = 0; index < count; index++) to[index] ^= (to[index] ^ from[index]) & mask;
}

/// Copies one point of a table, and reads all.
static void select_point(Point *point, const Point *table, uint32_t number) {
  uint32_t masks[TABLE_COUNT], *to = (uint32_t *)point;
  for (uint32_t index = 0; index < TABLE_COUNT; index++) masks[index] = mask(((index ^ number) - 1) >> 31);
  for (int word = 0; word < 24; word++) {
    uint32_t selected = 0;
    _Pragma("clang loop unroll(full)") for (int index = 0; index < TABLE_COUNT; index++) {
      selected |= ((const uint32_t *)&table[index])[word] & masks[index];
    }
    to[word] = selected;
  }
}

static void negate_masked(Element *y, uint32_t mask) {
  static const Element zero;
  Element negative;
  field_subtract(&negative, &zero, y);
  copy_masked(y, &negative, mask, 8);
}

// An odd scalar has 64 odd digits from -15 to 15 to the base 16, which are its bits: digit n is 2v - 15, where v are the four
// bits from 4n + 1 on, and the highest is the scalar's four highest bits with the lowest set. No digit is 0, so no point here
// is at infinity. Before digit n, the sum is a multiple of 16P. It can only be the digit's own multiple or the negative of it
// modulo the order, and that only before the last digit, for an even scalar from 2 to 30: then both points are the same.
void point_multiply(Point *product, const Point *point, const uint8_t *scalar) {
  Point table[TABLE_COUNT], term;
  uint8_t odd[32], negative[32];
  negate(negative, scalar);
  uint32_t is_even = mask(1 & ~scalar[31]);
  for (int index = 0; index < 32; index++) odd[index] = scalar[index] ^ ((scalar[index] ^ negative[index]) & (uint8_t)is_even);

  make_table(table, point);
  select_point(product, table, odd[0] >> 5);
  for (int position = 249; position > 0; position -= 4) {
    for (int count = 0; count < 4; count++) point_double(product);
    uint32_t digit = bits(odd, position) & 15, sign = mask(1 & ~(digit >> 3));
    select_point(&term, table, (digit ^ sign) & 7);
    negate_masked(&term.y, sign);
    add(product, &term.x, &term.y, &term.z);
  }
  uint32_t is_same = field_is_zero(&product->z);
  point_double(&term);
  copy_masked(product, &term, is_same, 24);
  negate_masked(&product->y, is_even);
}

/// A scalar as a sum of digits[n] · 2^n. Each digit is 0 or odd, from -15 to 15, and of five in a row, at most one is not 0.
static void recode(int8_t *digits, const uint8_t *scalar) {
  uint32_t carry = 0;
  memset(digits, 0, 257);
  for (int position = 0; position < 257;) {
    uint32_t window = bits(scalar, position) & 31;
    if ((window & 1) == carry) {
      position++;
      continue;
    }
    int digit = (int)(window + carry);
    carry = digit > 16;
    digits[position] = (int8_t)(carry ? digit - 32 : digit);
    position += 5;
  }
}

/// Adds a point or its negative, where any of the points may be the same, and the sum at infinity.
static void add_any(Point *sum, const Element *x, const Element *y, const Element *z, uint32_t is_negative) {
  Point term = {.x = *x, .y = *y, .z = z ? *z : field_one};
  negate_masked(&term.y, -is_negative);
  if (field_is_zero(&sum->z)) {
    *sum = term;
    return;
  }
  add(sum, &term.x, &term.y, z);
  if (field_is_zero(&sum->z) & field_is_zero(&sum->x)) {
    *sum = term;
    point_double(sum);
  }
}

void point_combine(Point *sum, const Point *point, const uint8_t *scalar, const uint8_t *generator_scalar) {
  Point table[TABLE_COUNT];
  int8_t digits[257], generator_digits[257];
  make_table(table, point);
  recode(digits, scalar);
  recode(generator_digits, generator_scalar);
  memset(sum, 0, sizeof *sum);
  for (int position = 256; position >= 0; position--) {
    int digit = digits[position], generator_digit = generator_digits[position];
    point_double(sum);
    if (digit) {
      const Point *term = &table[(digit < 0 ? -digit : digit) / 2];
      add_any(sum, &term->x, &term->y, &term->z, digit < 0);
    }
    if (generator_digit) {
      int index = (generator_digit < 0 ? -generator_digit : generator_digit) / 2;
      add_any(sum, &generator_table[index].x, &generator_table[index].y, NULL, generator_digit < 0);
    }
  }
}
