// A token in COSE. Source: docs/protocol.md; RFC 9052, RFC 9053.

#include <string.h>

#include "../CBearSSL/include/CBearSSL.h"
#include "../CBearSSL/secrets.h"
#include "device.h"

enum { ENCRYPT = 96, SIGN1 = 18, MAC0 = 17, AES_256_GCM = 3, ECDH_HKDF_256 = -25, ES256 = -7, HMAC_256 = 5 };
enum { LONGEST_TOKEN = 3072, TAG_SIZE = 16 };

typedef struct {
  const uint8_t *iv, *key_id;
  Bytes ciphertext, recipient;
  uint8_t point[65];
} Envelope;

static Reader reader_of(Bytes bytes) { return (Reader){bytes, false}; }

// {1: 3}
static bool is_content_header(Bytes header) {
  static const uint8_t expected[] = {0xa1, 0x01, 0x03};
  return are_same(header, (Bytes){expected, sizeof expected});
}

// {1: -25, 4: kid}
static const uint8_t *read_recipient(Reader *outer, Bytes header) {
  Reader reader = reader_of(header);
  LabelOrder order = {0};
  expect(&reader, read_map(&reader) == 2);
  expect_label(&reader, &order, 1);
  expect(&reader, read_integer(&reader) == ECDH_HKDF_256);
  expect_label(&reader, &order, 4);
  const uint8_t *key_id = read_fixed(&reader, 8);
  expect(outer, is_finished(&reader));
  return key_id;
}

// {-1: {1: 2, -1: 1, -2: x, -3: y}}
static void read_point(Reader *reader, uint8_t *point) {
  LabelOrder order = {0}, key_order = {0};
  expect(reader, read_map(reader) == 1);
  expect_label(reader, &order, -1);
  expect(reader, read_map(reader) == 4);
  expect_label(reader, &key_order, 1);
  expect(reader, read_integer(reader) == 2);
  expect_label(reader, &key_order, -1);
  expect(reader, read_integer(reader) == 1);
  point[0] = 4;
  expect_label(reader, &key_order, -2);
  memcpy(point + 1, read_fixed(reader, 32), 32);
  expect_label(reader, &key_order, -3);
  memcpy(point + 33, read_fixed(reader, 32), 32);
}

static bool take_apart(Bytes token, Envelope *envelope) {
  Reader reader = reader_of(token);
  LabelOrder order = {0};
  expect(&reader, read_tag(&reader) == ENCRYPT);
  expect(&reader, read_array(&reader) == 4);
  expect(&reader, is_content_header(read_bytes(&reader)));
  expect(&reader, read_map(&reader) == 1);
  expect_label(&reader, &order, 5);
  envelope->iv = read_fixed(&reader, 12);
  envelope->ciphertext = read_bytes(&reader);
  expect(&reader, envelope->ciphertext.count >= TAG_SIZE);
  expect(&reader, read_array(&reader) == 1);
  expect(&reader, read_array(&reader) == 3);
  envelope->recipient = read_bytes(&reader);
  envelope->key_id = read_recipient(&reader, envelope->recipient);
  read_point(&reader, envelope->point);
  expect(&reader, read_bytes(&reader).count == 0);
  return is_finished(&reader);
}

// Source: RFC 9053 §5.2.
static void derive_content_key(const uint8_t *shared, Bytes recipient, uint8_t *key) {
  WRITER(context, 64);
  write_array(&context, 4);
  write_unsigned(&context, AES_256_GCM);
  for (int party = 0; party < 2; party++) {
    write_array(&context, 3);
    for (int part = 0; part < 3; part++) write_null(&context);
  }
  write_array(&context, 2);
  write_unsigned(&context, 256);
  write_bytes(&context, recipient.start, recipient.count);
  holdfast_hkdf(shared, 32, NULL, 0, context.bytes, context.count, key, 32);
}

static bool decrypt(const Device *device, const Envelope *envelope, uint8_t *plaintext) {
  static const uint8_t authenticated[] = {0x83, 0x67, 'E', 'n', 'c', 'r', 'y', 'p', 't', 0x43, 0xa1, 0x01, 0x03, 0x40};
  uint8_t shared[32], key[32];
  size_t count = envelope->ciphertext.count - TAG_SIZE;
  uint64_t before = ticks();
  bool is_open = holdfast_p256_agree(device->scalar, envelope->point, shared);
  curve_ticks += ticks() - before;
  if (is_open) {
    derive_content_key(shared, envelope->recipient, key);
    memcpy(plaintext, envelope->ciphertext.start, count);
    is_open = holdfast_gcm_open(
        key, envelope->iv, authenticated, sizeof authenticated, plaintext, count, envelope->ciphertext.start + count);
  }
  wipe(shared, sizeof shared);
  wipe(key, sizeof key);
  return is_open;
}

static bool is_signed(Bytes key, Bytes head, Bytes payload, const uint8_t *signature) {
  br_sha256_context hash;
  uint8_t digest[32];
  br_sha256_init(&hash);
  br_sha256_update(&hash, head.start, head.count);
  br_sha256_update(&hash, payload.start, payload.count);
  br_sha256_out(&hash, digest);
  uint64_t before = ticks();
  bool is_right = holdfast_p256_verify(key.start, digest, signature);
  curve_ticks += ticks() - before;
  return is_right;
}

static bool is_authenticated(Bytes key, Bytes head, Bytes payload, const uint8_t *tag) {
  br_hmac_key_context keyed;
  br_hmac_context mac;
  uint8_t expected[32];
  br_hmac_key_init(&keyed, &br_sha256_vtable, key.start, key.count);
  br_hmac_init(&mac, &keyed, 0);
  br_hmac_update(&mac, head.start, head.count);
  br_hmac_update(&mac, payload.start, payload.count);
  br_hmac_out(&mac, expected);
  bool is_right = are_equal(expected, tag, 32);
  wipe(&keyed, sizeof keyed);
  wipe(&mac, sizeof mac);
  return is_right;
}

// {1: -7 / 5, 4: kid, 16: "holdfast-mt"}
static const uint8_t *read_issuer(Reader *outer, Bytes header, bool is_mac) {
  static const uint8_t type[] = "holdfast-mt";
  Reader reader = reader_of(header);
  LabelOrder order = {0};
  expect(&reader, read_map(&reader) == 3);
  expect_label(&reader, &order, 1);
  expect(&reader, read_integer(&reader) == (is_mac ? HMAC_256 : ES256));
  expect_label(&reader, &order, 4);
  const uint8_t *key_id = read_fixed(&reader, 8);
  expect_label(&reader, &order, 16);
  expect(&reader, are_same(read_text(&reader, 64), (Bytes){type, sizeof type - 1}));
  expect(outer, is_finished(&reader));
  return key_id;
}

static void copy_text(Reader *reader, size_t most, uint8_t *count, uint8_t *bytes) {
  Bytes text = read_text(reader, most);
  if (reader->has_failed) return;
  *count = (uint8_t)text.count;
  memcpy(bytes, text.start, text.count);
}

static void read_commands(Reader *reader, Token *token) {
  uint64_t count = read_array(reader);
  expect(reader, count <= 16);
  token->has_commands = true;
  for (; count > 0 && !reader->has_failed; count--) {
    Command *command = &token->commands[token->command_count++];
    copy_text(reader, 32, &command->count, command->bytes);
  }
}

static void read_claim(Reader *reader, int64_t label, const Device *device, Token *token) {
  switch (label) {
    case 1: read_text(reader, 64); break;
    case 2: copy_text(reader, 64, &token->subject_count, token->subject); break;
    case 3: expect(reader, are_same(read_text(reader, 22), (Bytes){device->audience, 22})); break;
    case 4: token->expires = read_unsigned(reader); break;
    case 6: token->issued_at = read_unsigned(reader); break;
    case 7: memcpy(token->token_id, read_fixed(reader, 16), 16); break;
    case -75001: memcpy(token->integrity, read_fixed(reader, 32), 32); break;
    case -75002: memcpy(token->device, read_fixed(reader, 32), 32); break;
    case -75003: memcpy(token->proof_key, read_fixed(reader, 16), 16); break;
    case -75004: token->generation = read_unsigned(reader); break;
    case -75005:
      read_unsigned(reader);
      token->is_counted = true;
      break;
    case -75006: read_commands(reader, token); break;
    case -75007:
      expect(reader, read_array(reader) == 3);
      for (int index = 0; index < 3; index++) token->version[index] = read_unsigned(reader);
      break;
    case -75008: read_text(reader, 32); break;
    default: expect(reader, false);
  }
}

static bool read_claims(Bytes payload, const Device *device, Token *token) {
  static const int64_t required[] = {1, 2, 3, 4, 6, 7, -75001, -75002, -75003, -75004};
  Reader reader = reader_of(payload);
  LabelOrder order = {0};
  size_t found = 0;
  for (uint64_t count = read_map(&reader); count > 0 && !reader.has_failed; count--) {
    int64_t label = read_label(&reader, &order);
    // In the order in which they stand there.
    if (found < sizeof required / sizeof required[0] && label == required[found]) found += 1;
    read_claim(&reader, label, device, token);
  }
  return is_finished(&reader) && found == sizeof required / sizeof required[0] && token->issued_at < token->expires;
}

static bool verify(const Device *device, Bytes plaintext, Token *token) {
  static const uint8_t contexts[2][10] = {"Signature1", "MAC0"};
  Reader reader = reader_of(plaintext);
  uint64_t tag = read_tag(&reader);
  bool is_mac = tag == MAC0;
  expect(&reader, is_mac || tag == SIGN1);
  expect(&reader, read_array(&reader) == 4);
  Bytes header = read_bytes(&reader);
  expect(&reader, read_map(&reader) == 0);
  Bytes payload = read_bytes(&reader);
  const uint8_t *seal = read_fixed(&reader, is_mac ? 32 : 64);
  const uint8_t *key_id = read_issuer(&reader, header, is_mac);
  if (!is_finished(&reader)) return false;
  Bytes key = find_issuer(device, key_id);
  if (key.count != (is_mac ? 32 : 65) || (is_mac && !device->accepts_mac)) return false;
  // What is signed or authenticated begins so. Source: RFC 9052 §4.4 and §6.3.
  WRITER(head, 64);
  write_array(&head, 4);
  write_text(&head, (Bytes){contexts[is_mac], is_mac ? 4 : 10});
  write_bytes(&head, header.start, header.count);
  write_bytes(&head, NULL, 0);
  write_bytes_head(&head, payload.count);
  if (head.has_failed) return false;
  Bytes written = {head.bytes, head.count};
  if (!(is_mac ? is_authenticated : is_signed)(key, written, payload, seal)) return false;
  memcpy(token->issuer, key_id, 8);
  return read_claims(payload, device, token);
}

bool open_token(const Device *device, Bytes token, Token *opened) {
  static uint8_t plaintext[LONGEST_TOKEN];
  Envelope envelope;
  memset(opened, 0, sizeof *opened);
  if (token.count > LONGEST_TOKEN || !take_apart(token, &envelope)) return false;
  if (memcmp(envelope.key_id, device->key_id, 8) != 0) return false;
  size_t count = envelope.ciphertext.count - TAG_SIZE;
  bool is_right = decrypt(device, &envelope, plaintext) && verify(device, (Bytes){plaintext, count}, opened);
  wipe(plaintext, count);
  return is_right;
}
