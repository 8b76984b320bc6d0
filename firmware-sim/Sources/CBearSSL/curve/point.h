// Points of P-256, and their products by scalars: integers of 32 bytes, the highest first.

#include "field.h"

/// The point (x/z², y/z³). At infinity, z is 0.
typedef struct {
  Element x, y, z;
} Point;

/// Reads an uncompressed point, 65 bytes. Returns 1 if it is on the curve; otherwise 0, and then the point is not to be used.
uint32_t point_read(Point *point, const uint8_t *bytes);

/// Returns 1 if `scalar` is neither 0 nor above the order less 1, otherwise 0. The time does not depend on it.
uint32_t scalar_is_valid(const uint8_t *scalar);

/// Computes `scalar` times `point`, for a valid scalar and a point that is not at infinity. The time, and the addresses
/// that are read and written, depend on neither.
void point_multiply(Point *product, const Point *point, const uint8_t *scalar);

/// Computes `scalar` times `point` and `generator_scalar` times the generator, and adds these. Each scalar is below the order
/// and may be 0. The time depends on everything: this is for signatures, which are public.
void point_combine(Point *sum, const Point *point, const uint8_t *scalar, const uint8_t *generator_scalar);
