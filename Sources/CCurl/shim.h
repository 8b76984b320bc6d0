#ifndef HOLDFAST_CCURL_SHIM_H
#define HOLDFAST_CCURL_SHIM_H

#define CURL_DISABLE_TYPECHECK
#include <curl/curl.h>
#include <openssl/evp.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <string.h>

// Swift does not call variadic functions, so each type of a parameter has a function here.

static inline CURLcode holdfast_curl_set_number(CURL *handle, CURLoption option, long value) {
  return curl_easy_setopt(handle, option, value);
}

/// libcurl copies the text.
static inline CURLcode holdfast_curl_set_text(CURL *handle, CURLoption option, const char *text) {
  return curl_easy_setopt(handle, option, text);
}

static inline CURLcode holdfast_curl_set_headers(CURL *handle, struct curl_slist *headers) {
  return curl_easy_setopt(handle, CURLOPT_HTTPHEADER, headers);
}

/// libcurl copies the bytes.
static inline CURLcode holdfast_curl_set_body(CURL *handle, const void *bytes, long byte_count) {
  CURLcode code = curl_easy_setopt(handle, CURLOPT_POSTFIELDSIZE, byte_count);
  return code != CURLE_OK ? code : curl_easy_setopt(handle, CURLOPT_COPYPOSTFIELDS, (const char *)bytes);
}

/// The bytes of an answer, as far as they fit.
struct holdfast_curl_answer {
  unsigned char *bytes;
  size_t count;
  size_t capacity;
};

static inline size_t holdfast_curl_collect(char *data, size_t size, size_t count, void *context) {
  struct holdfast_curl_answer *answer = context;
  size_t byte_count = size * count;
  // Anything but the whole count ends the transfer with CURLE_WRITE_ERROR.
  if (byte_count > answer->capacity - answer->count) return 0;
  memcpy(answer->bytes + answer->count, data, byte_count);
  answer->count += byte_count;
  return byte_count;
}

static inline CURLcode holdfast_curl_set_answer(CURL *handle, struct holdfast_curl_answer *answer) {
  CURLcode code = curl_easy_setopt(handle, CURLOPT_WRITEFUNCTION, holdfast_curl_collect);
  return code != CURLE_OK ? code : curl_easy_setopt(handle, CURLOPT_WRITEDATA, answer);
}

/// The conditions that a connection by TLS must meet in addition to libcurl's own checks.
struct holdfast_curl_trust {
  /// SHA-256 digests of public keys, 32 bytes each, one of which must be in the chain of certificates; none if there is no pin.
  const unsigned char *pins;
  size_t pin_count;
  /// A file with authorities that count in addition to those of the system; NULL for none.
  const char *more_authorities;
  /// Whether a chain was right, but without a pinned key.
  int has_wrong_pin;
  /// Whether the file could not be used.
  int has_bad_authorities;
};

/// Whether a certificate of the chain that was verified, up to the trusted one, has a pinned key.
static inline int holdfast_curl_has_pinned_key(X509_STORE_CTX *store, const struct holdfast_curl_trust *trust) {
  STACK_OF(X509) *chain = X509_STORE_CTX_get0_chain(store);
  for (int index = 0; index < sk_X509_num(chain); index++) {
    unsigned char *key = NULL;
    unsigned char digest[32];
    int byte_count = i2d_X509_PUBKEY(X509_get_X509_PUBKEY(sk_X509_value(chain, index)), &key);
    int is_hashed = byte_count > 0 && EVP_Digest(key, (size_t)byte_count, digest, NULL, EVP_sha256(), NULL) == 1;
    OPENSSL_free(key);
    if (!is_hashed) return 0;
    for (size_t pin = 0; pin < trust->pin_count; pin++) {
      if (memcmp(digest, trust->pins + 32 * pin, 32) == 0) return 1;
    }
  }
  return 0;
}

static inline int holdfast_curl_verify(X509_STORE_CTX *store, void *context) {
  struct holdfast_curl_trust *trust = context;
  if (X509_verify_cert(store) <= 0) return 0;
  if (trust->pin_count == 0 || holdfast_curl_has_pinned_key(store, trust)) return 1;
  trust->has_wrong_pin = 1;
  X509_STORE_CTX_set_error(store, X509_V_ERR_APPLICATION_VERIFICATION);
  return 0;
}

/// libcurl calls this before each handshake, with the SSL_CTX that it has set up.
static inline CURLcode holdfast_curl_prepare(CURL *handle, void *tls, void *context) {
  (void)handle;
  struct holdfast_curl_trust *trust = context;
  if (trust->more_authorities && SSL_CTX_load_verify_file(tls, trust->more_authorities) != 1) {
    trust->has_bad_authorities = 1;
    return CURLE_SSL_CACERT_BADFILE;
  }
  SSL_CTX_set_cert_verify_callback(tls, holdfast_curl_verify, trust);
  return CURLE_OK;
}

/// The trust must last as long as the transfer. A TLS session is never resumed, because its chain would not be checked again.
static inline CURLcode holdfast_curl_set_trust(CURL *handle, struct holdfast_curl_trust *trust) {
  CURLcode code = curl_easy_setopt(handle, CURLOPT_SSL_CTX_FUNCTION, holdfast_curl_prepare);
  if (code == CURLE_OK) code = curl_easy_setopt(handle, CURLOPT_SSL_CTX_DATA, trust);
  return code != CURLE_OK ? code : curl_easy_setopt(handle, CURLOPT_SSL_SESSIONID_CACHE, 0L);
}

static inline long holdfast_curl_number(CURL *handle, CURLINFO info) {
  long value = 0;
  return curl_easy_getinfo(handle, info, &value) == CURLE_OK ? value : 0;
}

/// The seconds of the header Retry-After, which may also be a date; 0 if there is none.
static inline curl_off_t holdfast_curl_retry_after(CURL *handle) {
  curl_off_t value = 0;
  return curl_easy_getinfo(handle, CURLINFO_RETRY_AFTER, &value) == CURLE_OK ? value : 0;
}

static inline const char *holdfast_curl_content_type(CURL *handle) {
  char *value = NULL;
  return curl_easy_getinfo(handle, CURLINFO_CONTENT_TYPE, &value) == CURLE_OK ? value : NULL;
}

#endif
