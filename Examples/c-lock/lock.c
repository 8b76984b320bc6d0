/* A lock: the verifier of Holdfast with a machine of its own. usage: lock FOLDER ENDPOINT... */
#include <holdfast.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <pthread.h>

struct bolt {
  const char *path;
};

/* Moves the bolt: here a file with one word. A product drives a motor, and waits until a sensor confirms it. */
static int move(const struct bolt *bolt, const char *position) {
  FILE *file = fopen(bolt->path, "w");
  if (file == NULL) return -1;
  int failed = fprintf(file, "%s\n", position) < 0;
  return fclose(file) != 0 || failed ? -1 : 0;
}

static int answer(const char *text, uint8_t *result, size_t *length) {
  *length = strlen(text);
  memcpy(result, text, *length);
  return 0;
}

static int perform(void *context, const hf_command_t *command, uint8_t *result, size_t *length) {
  const struct bolt *bolt = context;
  const char *position = strcmp(command->name, "unlock") == 0 ? "unlocked" : "locked";
  if (move(bolt, position) != 0) return -1;
  printf("%s, as %s demands\n", position, command->subject[0] ? command->subject : "an app");
  fflush(stdout);
  return answer(position, result, length);
}

/* Waits for SIGTERM or Ctrl-C on a thread, since hf_device_stop must not be called by a signal handler. */
static void *wait_for_end(void *device) {
  sigset_t ends;
  int number;
  sigemptyset(&ends);
  sigaddset(&ends, SIGTERM);
  sigaddset(&ends, SIGINT);
  sigwait(&ends, &number);
  hf_device_stop(device);
  return NULL;
}

int main(int count, char **words) {
  static const char *const commands[] = {"lock", "unlock"};
  struct bolt bolt = {"bolt"};
  const hf_actuator_t machine = {perform, &bolt, commands, 2};
  hf_device_t *device;
  pthread_t waiter;
  sigset_t ends;
  int result;

  if (count < 3) return 64;
  sigemptyset(&ends);
  sigaddset(&ends, SIGTERM);
  sigaddset(&ends, SIGINT);
  pthread_sigmask(SIG_BLOCK, &ends, NULL);
  signal(SIGPIPE, SIG_IGN);

  result = hf_device_open(words[1], &machine, &device);
  if (result == 0) {
    if (pthread_create(&waiter, NULL, wait_for_end, device) != 0) return 70;
    result = hf_device_serve(device, (const char *const *)&words[2], (size_t)(count - 2));
    pthread_kill(waiter, SIGTERM);
    pthread_join(waiter, NULL);
    hf_device_close(device);
  }
  if (result != 0) fprintf(stderr, "lock: %s\n", hf_text(result));
  return result == 0 ? 0 : 70;
}
