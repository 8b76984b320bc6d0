#include "cbor.h"

#include <string.h>

enum { UNSIGNED, NEGATIVE, BYTES, TEXT, ARRAY, MAP, TAG, SIMPLE };

void expect(Reader *reader, bool is_right) {
  if (!is_right) *reader = (Reader){.has_failed = true};
}

static const uint8_t *take(Reader *reader, uint64_t count) {
  expect(reader, count <= reader->rest.count);
  if (reader->has_failed) return NULL;
  const uint8_t *start = reader->rest.start;
  reader->rest.start += count;
  reader->rest.count -= (size_t)count;
  return start;
}

static uint64_t read_head(Reader *reader, uint8_t *major) {
  const uint8_t *initial = take(reader, 1);
  if (initial == NULL) return *major = 0;
  *major = *initial >> 5;
  uint8_t additional = *initial & 31;
  if (additional < 24) return additional;
  expect(reader, *major != SIMPLE && additional <= 27);
  size_t width = (size_t)1 << (additional & 3);
  const uint8_t *bytes = take(reader, width);
  if (bytes == NULL) return 0;
  uint64_t value = 0;
  for (size_t index = 0; index < width; index++) value = value << 8 | bytes[index];
  // In no more bytes than it needs, and at most 2^53 - 1.
  expect(reader, value >> 53 == 0 && (width == 1 ? value >= 24 : value >> 4 * width != 0));
  return reader->has_failed ? 0 : value;
}

static uint64_t read_argument(Reader *reader, uint8_t expected) {
  uint8_t major;
  uint64_t value = read_head(reader, &major);
  expect(reader, major == expected);
  return reader->has_failed ? 0 : value;
}

uint64_t read_unsigned(Reader *reader) { return read_argument(reader, UNSIGNED); }

int64_t read_integer(Reader *reader) {
  uint8_t major;
  int64_t value = (int64_t)read_head(reader, &major);
  expect(reader, major <= NEGATIVE);
  return reader->has_failed ? 0 : major == NEGATIVE ? -1 - value : value;
}

static Bytes read_string(Reader *reader, uint8_t major) {
  uint64_t count = read_argument(reader, major);
  const uint8_t *start = take(reader, count);
  return (Bytes){start, start == NULL ? 0 : (size_t)count};
}

Bytes read_bytes(Reader *reader) { return read_string(reader, BYTES); }

// The length of the sequence at the start of `text`; 0 where it is not well-formed. Source: RFC 3629 §4.
static size_t sequence_length(Bytes text) {
  uint8_t lead = text.start[0], least = 0x80, greatest = 0xbf;
  if (lead < 0x80) return 1;
  if (lead < 0xc2 || lead > 0xf4) return 0;
  size_t length = lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
  if (lead == 0xe0) least = 0xa0;
  if (lead == 0xed) greatest = 0x9f;
  if (lead == 0xf0) least = 0x90;
  if (lead == 0xf4) greatest = 0x8f;
  if (text.count < length || text.start[1] < least || text.start[1] > greatest) return 0;
  for (size_t index = 2; index < length; index++)
    if ((text.start[index] & 0xc0) != 0x80) return 0;
  return length;
}

Bytes read_text(Reader *reader, size_t most) {
  Bytes text = read_string(reader, TEXT), rest = text;
  expect(reader, text.count <= most);
  while (rest.count > 0 && !reader->has_failed) {
    size_t length = sequence_length(rest);
    expect(reader, length > 0);
    rest.start += length;
    rest.count -= length;
  }
  return text;
}

const uint8_t *read_fixed(Reader *reader, size_t count) {
  static const uint8_t zeros[65];
  Bytes bytes = read_bytes(reader);
  expect(reader, bytes.count == count);
  return reader->has_failed ? zeros : bytes.start;
}

uint64_t read_array(Reader *reader) { return read_argument(reader, ARRAY); }

uint64_t read_map(Reader *reader) { return read_argument(reader, MAP); }

uint64_t read_tag(Reader *reader) { return read_argument(reader, TAG); }

bool read_null(Reader *reader) {
  if (reader->rest.count == 0 || reader->rest.start[0] != 0xf6) return false;
  take(reader, 1);
  return true;
}

int64_t read_label(Reader *reader, LabelOrder *order) {
  int64_t label = read_integer(reader), previous = order->previous;
  if (order->has_previous)
    expect(reader, (previous < 0) == (label < 0) ? (label < 0 ? label < previous : label > previous) : label < 0);
  *order = (LabelOrder){label, true};
  return label;
}

void expect_label(Reader *reader, LabelOrder *order, int64_t label) { expect(reader, read_label(reader, order) == label); }

void read_over(Reader *reader) {
  for (uint64_t pending = 1; pending > 0 && !reader->has_failed; pending--) {
    uint8_t major;
    uint64_t value = read_head(reader, &major);
    if (major == BYTES || major == TEXT) take(reader, value);
    if (major == ARRAY) pending += value;
    expect(reader, major != MAP && major != TAG && (major != SIMPLE || value == 22));
  }
}

bool is_finished(const Reader *reader) { return !reader->has_failed && reader->rest.count == 0; }

bool are_same(Bytes left, Bytes right) {
  return left.count == right.count && memcmp(left.start, right.start, left.count) == 0;
}

void write_raw(Writer *writer, const void *bytes, size_t count) {
  if (writer->has_failed || count > writer->capacity - writer->count) {
    writer->has_failed = true;
    return;
  }
  memcpy(writer->bytes + writer->count, bytes, count);
  writer->count += count;
}

static void write_head(Writer *writer, uint8_t major, uint64_t value) {
  uint8_t head[9];
  size_t width = value < 24 ? 0 : value < 1u << 8 ? 1 : value < 1u << 16 ? 2 : value >> 32 == 0 ? 4 : 8;
  uint8_t additional = width == 0 ? (uint8_t)value : width == 1 ? 24 : width == 2 ? 25 : width == 4 ? 26 : 27;
  head[0] = (uint8_t)(major << 5 | additional);
  for (size_t index = width; index > 0; index--, value >>= 8) head[index] = (uint8_t)value;
  write_raw(writer, head, 1 + width);
}

void write_unsigned(Writer *writer, uint64_t value) { write_head(writer, UNSIGNED, value); }

void write_bytes_head(Writer *writer, size_t count) { write_head(writer, BYTES, count); }

void write_bytes(Writer *writer, const void *bytes, size_t count) {
  write_bytes_head(writer, count);
  write_raw(writer, bytes, count);
}

void write_text(Writer *writer, Bytes text) {
  write_head(writer, TEXT, text.count);
  write_raw(writer, text.start, text.count);
}

void write_array(Writer *writer, uint64_t count) { write_head(writer, ARRAY, count); }

void write_map(Writer *writer, uint64_t count) { write_head(writer, MAP, count); }

void write_null(Writer *writer) { write_raw(writer, "\xf6", 1); }
