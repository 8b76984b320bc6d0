// Operations of the curve's field, which CBearSSL keeps to itself.

#include "field.h"

#include "include/CBoardTest.h"

uint32_t board_test_field(const uint8_t *left, const uint8_t *rights, uint32_t count, uint8_t *results) {
  for (const uint8_t *right = rights; right < rights + 32 * count; right += 32, results += 128) {
    Element a, b, sum, difference, product, half;
    if (!field_read(&a, left) || !field_read(&b, right)) return 0;
    field_add(&sum, &a, &b);
    field_subtract(&difference, &a, &b);
    field_multiply(&product, &a, &b);
    field_halve(&half, &b);
    field_write(results, &sum);
    field_write(results + 32, &difference);
    field_write(results + 64, &product);
    field_write(results + 96, &half);
  }
  return 1;
}
