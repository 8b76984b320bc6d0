#ifndef HOLDFAST_OPENSSL_SHIM_H
#define HOLDFAST_OPENSSL_SHIM_H

// The low-level SHA-256 calls are deprecated, but three times as fast as their replacements.
#define OPENSSL_SUPPRESS_DEPRECATED

#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/ec.h>
#include <openssl/ecdsa.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/kdf.h>
#include <openssl/param_build.h>
#include <openssl/rsa.h>
#include <openssl/sha.h>
#include <openssl/x509.h>
#include <openssl/x509_vfy.h>

#include "certificate_chain.h"

/// `EVP_PKEY_KEYPAIR`, a macro that Swift does not import.
static const int holdfast_key_pair = EVP_PKEY_KEYPAIR;

#endif
