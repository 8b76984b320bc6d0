// This file is compiled like BearSSL, not like the rest.

#include "../CBearSSL/include/CBearSSL.h"
#include "include/CBoardTest.h"

const uint32_t *board_test_layouts(void) {
  static const uint32_t sizes[] = {
      sizeof(br_hash_compat_context), sizeof(br_hmac_context), sizeof(br_aesctr_drbg_context), sizeof(br_ec_public_key),
      sizeof(br_ec_impl),
  };
  return sizes;
}
