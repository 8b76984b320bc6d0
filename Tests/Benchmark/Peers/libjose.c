// A token in JOSE, decrypted and verified by libjose.
//
// usage: libjose jose FOLDER

#include <jansson.h>
#include <jose/jose.h>

#include "worker.h"

static json_t *device, *issuer;
static char *token, *integrity;

static json_t *split(char *text, const char *const *names, size_t count) {
  json_t *object = json_object();
  for (size_t index = 0; index < count; index++) {
    size_t length = strcspn(text, ".");
    json_object_set_new(object, names[index], json_stringn(text, length));
    text += length + 1;
  }
  return object;
}

static int open_token(void) {
  static const char *const outer[] = {"protected", "encrypted_key", "iv", "ciphertext", "tag"};
  static const char *const inner[] = {"protected", "payload", "signature"};
  size_t count = 0;
  json_auto_t *jwe = split(token, outer, 5);
  char *text = jose_jwe_dec(NULL, jwe, NULL, device, &count);
  if (!text) return 0;
  text = realloc(text, count + 1);
  text[count] = 0;
  json_auto_t *jws = split(text, inner, 3);
  json_auto_t *payload = jose_b64_dec_load(json_object_get(jws, "payload"));
  int result = jose_jws_ver(NULL, jws, NULL, issuer, false) &&
               !strcmp(json_string_value(json_object_get(payload, "imh")), integrity);
  free(text);
  return result;
}

int main(int count, char **arguments) {
  if (count != 3) stop("usage: libjose jose FOLDER");
  size_t length;
  char path[4096];
  token = (char *)contents(arguments[2], "token.jose", &length);
  token[length] = 0;
  integrity = (char *)contents(arguments[2], "integrity", &length);
  integrity[length] = 0;
  snprintf(path, sizeof path, "%s/device.jwk", arguments[2]);
  device = json_load_file(path, 0, NULL);
  snprintf(path, sizeof path, "%s/issuer.jwk", arguments[2]);
  issuer = json_load_file(path, 0, NULL);
  serve(open_token);
  return 0;
}
