#ifndef HOLDFAST_CCURL_SHIM_H
#define HOLDFAST_CCURL_SHIM_H

#define CURL_DISABLE_TYPECHECK
#include <curl/curl.h>
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
