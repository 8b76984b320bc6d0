#include "CBearSSL.h"
#include "secrets.h"

uint32_t holdfast_key_unwrap(const uint8_t *wrapping_key, const uint8_t *wrapped, uint8_t *key) {
  static const uint8_t initial_value[8] = {0xA6, 0xA6, 0xA6, 0xA6, 0xA6, 0xA6, 0xA6, 0xA6};
  br_aes_ct_cbcdec_keys keys;
  uint8_t block[16];
  br_aes_ct_cbcdec_init(&keys, wrapping_key, 32);
  memcpy(block, wrapped, 8);
  memcpy(key, wrapped + 8, 32);
  for (int step = 24; step >= 1; step--) {
    uint8_t *part = key + 8 * ((step - 1) % 4);
    // CBC of one block with a zero IV is the block cipher itself.
    uint8_t before[16] = {0};
    block[7] ^= (uint8_t)step;
    memcpy(block + 8, part, 8);
    br_aes_ct_cbcdec_run(&keys, before, block, sizeof block);
    memcpy(part, block + 8, 8);
  }
  uint32_t is_genuine = are_equal(block, initial_value, sizeof initial_value);
  if (!is_genuine) wipe(key, 32);
  wipe(&keys, sizeof keys);
  wipe(block, sizeof block);
  return is_genuine;
}
