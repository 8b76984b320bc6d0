// Deterministic CBOR, as docs/protocol.md has it. Source: RFC 8949 §4.2.1.

#ifndef HOLDFAST_CBOR_H
#define HOLDFAST_CBOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct {
  const uint8_t *start;
  size_t count;
} Bytes;

/// What is left to read. Once something was not as it has to be, nothing is left, and all that is read is 0 or empty.
typedef struct {
  Bytes rest;
  bool has_failed;
} Reader;

/// The label of a map's last pair; each comes after the one before in the order of their bytes.
typedef struct {
  int64_t previous;
  bool has_previous;
} LabelOrder;

uint64_t read_unsigned(Reader *reader);
int64_t read_integer(Reader *reader);
Bytes read_bytes(Reader *reader);
/// At most `most` bytes of UTF-8.
Bytes read_text(Reader *reader, size_t most);
/// A byte string of exactly `count` bytes.
const uint8_t *read_fixed(Reader *reader, size_t count);
uint64_t read_array(Reader *reader);
uint64_t read_map(Reader *reader);
uint64_t read_tag(Reader *reader);
bool read_null(Reader *reader);
int64_t read_label(Reader *reader, LabelOrder *order);
/// Reads over one item.
void read_over(Reader *reader);
/// Fails unless `is_right`.
void expect(Reader *reader, bool is_right);
void expect_label(Reader *reader, LabelOrder *order, int64_t label);
/// Whether all was as it has to be, and nothing is left.
bool is_finished(const Reader *reader);

bool are_same(Bytes left, Bytes right);

typedef struct {
  uint8_t *bytes;
  size_t capacity, count;
  bool has_failed;
} Writer;

void write_raw(Writer *writer, const void *bytes, size_t count);
void write_unsigned(Writer *writer, uint64_t value);
void write_bytes(Writer *writer, const void *bytes, size_t count);
/// The head of a byte string that follows.
void write_bytes_head(Writer *writer, size_t count);
void write_text(Writer *writer, Bytes text);
void write_array(Writer *writer, uint64_t count);
void write_map(Writer *writer, uint64_t count);
void write_null(Writer *writer);

/// `WRITER(name, n)`: one that writes into `n` bytes on the stack.
#define WRITER(name, byte_count) \
  uint8_t name##_bytes[byte_count]; \
  Writer name = {name##_bytes, byte_count, 0, false}

#endif
