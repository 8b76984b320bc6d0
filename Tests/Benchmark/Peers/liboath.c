// One-time passwords by liboath.
//
// usage: liboath (hotp | totp) FOLDER

#include <liboath/oath.h>

#include "worker.h"

static const char key[] = "12345678901234567890";

static int hotp(void) {
  char code[7];
  return oath_hotp_generate(key, 20, 0, 6, 0, OATH_HOTP_DYNAMIC_TRUNCATION, code) == OATH_OK && !memcmp(code, "755224", 7);
}

static int totp(void) {
  char code[9];
  return oath_totp_generate(key, 20, 59, 30, 0, 8, code) == OATH_OK && !memcmp(code, "94287082", 9);
}

int main(int count, char **arguments) {
  if (count != 3 || oath_init() != OATH_OK) stop("usage: liboath WORK FOLDER");
  serve(!strcmp(arguments[1], "hotp") ? hotp : totp);
  return 0;
}
