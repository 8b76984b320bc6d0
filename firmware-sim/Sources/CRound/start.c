// What the owner provisioned. Source: Sources/HoldfastFirmware/Provision.

#include <string.h>

#include "../CBearSSL/include/CBearSSL.h"
#include "device.h"

static void hash_of(Bytes bytes, uint8_t *digest) {
  br_sha256_context hash;
  br_sha256_init(&hash);
  br_sha256_update(&hash, bytes.start, bytes.count);
  br_sha256_out(&hash, digest);
}

static uint32_t word(const uint8_t *bytes) {
  return bytes[0] | (uint32_t)bytes[1] << 8 | (uint32_t)bytes[2] << 16 | (uint32_t)bytes[3] << 24;
}

// Source: RFC 4648 §5, without padding.
static void write_audience(const uint8_t *id, uint8_t *text) {
  static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
  for (int position = 0; position < 22; position++) {
    int bit = 6 * position;
    uint32_t pair = (uint32_t)id[bit / 8] << 8 | (bit / 8 < 15 ? id[bit / 8 + 1] : 0);
    text[position] = (uint8_t)digits[pair >> (10 - bit % 8) & 63];
  }
}

static void read_numbers(Reader *reader, uint64_t *numbers) {
  expect(reader, read_array(reader) == 3);
  for (int index = 0; index < 3; index++) numbers[index] = read_unsigned(reader);
}

static Limits read_limits(Reader *reader) {
  Limits limits = {0};
  expect(reader, read_array(reader) == 3);
  limits.generation = read_unsigned(reader);
  read_numbers(reader, limits.version);
  limits.has_age = !read_null(reader);
  if (limits.has_age) limits.age = read_unsigned(reader);
  return limits;
}

static void read_policy(Reader *reader, Device *device) {
  uint64_t code_limits[3];
  expect(reader, read_array(reader) == 6);
  read_unsigned(reader);  // tokens without a signature are refused here
  device->accepts_mac = read_unsigned(reader) == 1;
  device->issue_advance = read_unsigned(reader);
  device->limits = read_limits(reader);
  read_numbers(reader, code_limits);
  uint64_t count = read_array(reader);
  expect(reader, count <= 16);
  for (; count > 0 && !reader->has_failed; count--) {
    expect(reader, read_array(reader) == 4);
    Rule rule = {.name = read_text(reader, 32), .factors = read_unsigned(reader), .limits = read_limits(reader)};
    read_unsigned(reader);
    // Commands that need a user's code are not served.
    if (rule.factors <= (INTEGRITY | DEVICE)) device->rules[device->rule_count++] = rule;
  }
}

bool device_start(Device *device) {
  memset(device, 0, sizeof *device);
  const uint8_t *start = flash().start;
  uint32_t count = word(start + 8), end = 12 + (count + 3) / 4 * 4;
  uint8_t digest[32];
  if (word(start) != 0x77466648 || word(start + 4) != 1 || count > 4096) return false;
  hash_of((Bytes){start, end}, digest);
  if (memcmp(digest, start + end, 32) != 0) return false;
  Reader reader = {{start + 12, count}, false};
  expect(&reader, read_array(&reader) == 5);
  memcpy(device->id, read_fixed(&reader, 16), 16);
  memcpy(device->scalar, read_fixed(&reader, 32), 32);
  hash_of((Bytes){read_fixed(&reader, 65), 65}, digest);
  memcpy(device->key_id, digest, 8);
  device->issuers = reader.rest;
  read_over(&reader);
  device->issuers.count -= reader.rest.count;
  read_policy(&reader, device);
  write_audience(device->id, device->audience);
  return is_finished(&reader) && journal_open(&device->journal);
}

Bytes find_issuer(const Device *device, const uint8_t *key_id) {
  Reader reader = {device->issuers, false};
  for (uint64_t count = read_array(&reader); count > 0 && !reader.has_failed; count--) {
    expect(&reader, read_array(&reader) == 2);
    const uint8_t *known = read_fixed(&reader, 8);
    Bytes key = read_bytes(&reader);
    if (!reader.has_failed && memcmp(known, key_id, 8) == 0) return key;
  }
  return (Bytes){0};
}
