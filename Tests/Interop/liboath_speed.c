// Codes per second of processor time of liboath: HOTP by HMAC-SHA-1 with six digits, each compared with RFC 4226's.
//
// usage: liboath_speed SECONDS

#include <liboath/oath.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static const char key[] = "12345678901234567890";
static const char *const expected[10] = {"755224", "287082", "359152", "969429", "338314",
                                         "254676", "287922", "162583", "399871", "520489"};

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return time.tv_sec + time.tv_nsec / 1e9;
}

int main(int count, char **arguments) {
  if (count != 2 || oath_init() != OATH_OK) return 64;
  double seconds = atof(arguments[1]), start = now(), elapsed;
  uint64_t codes = 0, wrong = 0;
  do {
    for (int turn = 0; turn < 100; turn++) {
      for (uint64_t counter = 0; counter < 10; counter++) {
        char code[7];
        int result = oath_hotp_generate(key, sizeof key - 1, counter, 6, false, OATH_HOTP_DYNAMIC_TRUNCATION, code);
        if (result != OATH_OK || memcmp(code, expected[counter], 7) != 0) wrong++;
      }
    }
    codes += 1000;
    elapsed = now() - start;
  } while (elapsed < seconds);
  if (wrong != 0) return 2;
  printf("%.0f\n", codes / elapsed);
  return 0;
}
