// AES-256-GCM from BearSSL's CTR and GHASH. BearSSL's own GCM expands the key again for the hash key, for the mask of the tag
// and for a last piece, and each time encrypts a second block that is not used.

#include "CBearSSL.h"
#include "secrets.h"

typedef struct {
  br_aes_ct_ctr_keys keys;
  uint8_t hash_key[16];  // AES of zero
  uint8_t mask[16];      // AES of the first counter, over the tag
} Cipher;

static const uint8_t zero[12];

static void start(Cipher *cipher, const uint8_t *key, const uint8_t *nonce) {
  memset(cipher->hash_key, 0, sizeof cipher->hash_key);
  memset(cipher->mask, 0, sizeof cipher->mask);
  br_aes_ct_ctr_init(&cipher->keys, key, 32);
  // A session's nonce is zero, so one run computes both blocks at the cost of one.
  if (memcmp(nonce, zero, sizeof zero) == 0) {
    br_aes_ct_ctr_run(&cipher->keys, zero, 0, cipher->hash_key, 32);
  } else {
    br_aes_ct_ctr_run(&cipher->keys, zero, 0, cipher->hash_key, 16);
    br_aes_ct_ctr_run(&cipher->keys, nonce, 1, cipher->mask, 16);
  }
}

static void put_bit_count(uint8_t *end, size_t byte_count) {
  uint64_t bit_count = (uint64_t)byte_count << 3;
  for (int index = 1; index <= 8; index++, bit_count >>= 8) end[-index] = (uint8_t)bit_count;
}

static void authenticate(
    const Cipher *cipher, const uint8_t *data, size_t data_count, const uint8_t *message, size_t message_count,
    uint8_t *tag) {
  uint8_t counts[16];
  put_bit_count(counts + 8, data_count);
  put_bit_count(counts + 16, message_count);
  memset(tag, 0, 16);
  br_ghash_ctmul(tag, cipher->hash_key, data, data_count);
  br_ghash_ctmul(tag, cipher->hash_key, message, message_count);
  br_ghash_ctmul(tag, cipher->hash_key, counts, sizeof counts);
  for (int index = 0; index < 16; index++) tag[index] ^= cipher->mask[index];
}

void holdfast_gcm_seal(
    const uint8_t *key, const uint8_t *nonce, const uint8_t *data, size_t data_count, uint8_t *message,
    size_t message_count, uint8_t *tag) {
  Cipher cipher;
  start(&cipher, key, nonce);
  br_aes_ct_ctr_run(&cipher.keys, nonce, 2, message, message_count);
  authenticate(&cipher, data, data_count, message, message_count, tag);
  wipe(&cipher, sizeof cipher);
}

uint32_t holdfast_gcm_open(
    const uint8_t *key, const uint8_t *nonce, const uint8_t *data, size_t data_count, uint8_t *message,
    size_t message_count, const uint8_t *tag) {
  Cipher cipher;
  uint8_t computed[16];
  start(&cipher, key, nonce);
  authenticate(&cipher, data, data_count, message, message_count, computed);
  uint32_t is_genuine = are_equal(computed, tag, sizeof computed);
  if (is_genuine) br_aes_ct_ctr_run(&cipher.keys, nonce, 2, message, message_count);
  wipe(&cipher, sizeof cipher);
  wipe(computed, sizeof computed);
  return is_genuine;
}
