/* A person's app for tests, whose authenticator keeps its state in a file of the app's own.
 *
 * usage: person STATE activate SOCKET | password | records | stamp
 *
 * activate reads the owner's code and the new PIN, a line each, from standard input, and carries the messages over a
 * SOCK_SEQPACKET socket itself; password reads the PIN. Each prints what it made, and how often it stored the state. The
 * exit status is 0, that of a denial, or 100 minus the error. */
#include <holdfast.h>

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static int store_count = 0;

static size_t read_file(const char *path, uint8_t *bytes, size_t size) {
  FILE *file = fopen(path, "rb");
  size_t count = 0;
  if (file != NULL) {
    count = fread(bytes, 1, size, file);
    fclose(file);
  }
  return count;
}

static int load(void *context, uint8_t *state, size_t *length) {
  *length = read_file(context, state, *length);
  return 0;
}

/* As short as a test may be: a product writes a new file, synchronises it and its folder, and renames it. */
static int replace(void *context, const uint8_t *old, size_t old_length, const uint8_t *state, size_t length) {
  static uint8_t now[HF_STATE_BYTES];
  FILE *file;
  int is_written;
  if (read_file(context, now, sizeof now) != old_length || (old_length > 0 && memcmp(now, old, old_length) != 0)) {
    return HF_ERROR_BUSY;
  };
  file = fopen(context, "wb");
  if (file == NULL) return HF_ERROR_PERMISSION;
  is_written = fwrite(state, 1, length, file) == length;
  store_count++;
  return fclose(file) == 0 && is_written ? 0 : HF_ERROR_FULL;
}

static int wait_for(int descriptor, short what, uint32_t milliseconds) {
  struct pollfd one = {0, 0, 0};
  one.fd = descriptor;
  one.events = what;
  return poll(&one, 1, milliseconds > 600000 ? 600000 : (int)milliseconds) == 1 ? 0 : HF_ERROR_TIMEOUT;
}

static int receive_message(void *context, uint8_t *message, size_t *length, uint32_t milliseconds) {
  ssize_t count = -1;
  if (wait_for(*(int *)context, POLLIN, milliseconds) != 0) return HF_ERROR_TIMEOUT;
  count = recv(*(int *)context, message, *length, 0);
  if (count <= 0) return HF_ERROR_CONNECTION;
  *length = (size_t)count;
  return 0;
}

static int send_message(void *context, const uint8_t *message, size_t length, uint32_t milliseconds) {
  if (wait_for(*(int *)context, POLLOUT, milliseconds) != 0) return HF_ERROR_TIMEOUT;
  return send(*(int *)context, message, length, MSG_NOSIGNAL) == (ssize_t)length ? 0 : HF_ERROR_CONNECTION;
}

static size_t line(char *text, size_t size) {
  if (fgets(text, (int)size, stdin) == NULL) text[0] = 0;
  text[strcspn(text, "\n")] = 0;
  return strlen(text);
}

static int activate(hf_authenticator_t *keys, const char *path) {
  char code[64], pin[16], user[HF_USER_BYTES];
  size_t length = sizeof user;
  hf_protection_t protection = {NULL, 0, NULL, 0, 0};
  hf_channel_t channel = {receive_message, send_message, NULL, NULL};
  hf_connection_t connection = {NULL, &channel, NULL, 0};
  struct sockaddr_un address;
  int result, descriptor = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
  memset(&address, 0, sizeof address);
  address.sun_family = AF_UNIX;
  strncpy(address.sun_path, path, sizeof address.sun_path - 1);
  if (connect(descriptor, (struct sockaddr *)&address, sizeof address) != 0) return HF_ERROR_SYSTEM;
  channel.context = &descriptor;
  line(code, sizeof code);
  protection.pin_length = line(pin, sizeof pin);
  protection.pin = protection.pin_length > 0 ? (const uint8_t *)pin : NULL;
  result = hf_authenticator_activate(keys, &connection, code, &protection, 0, user, &length, NULL);
  if (result == 0) printf("%s, stored %d times\n", user, store_count);
  close(descriptor);
  return result;
}

static int password(hf_authenticator_t *keys) {
  char pin[16], code[HF_CODE_BYTES];
  size_t length = sizeof code;
  hf_record_t record = {NULL, 0, NULL, 0};
  int result;
  record.secret_length = line(pin, sizeof pin);
  record.secret = (const uint8_t *)pin;
  result = hf_authenticator_password(keys, &record, NULL, code, &length, NULL);
  if (result == 0) printf("%s, stored %d times\n", code, store_count);
  return result;
}

static int records(hf_authenticator_t *keys) {
  static char json[65536];
  size_t length = sizeof json;
  int result = hf_authenticator_records(keys, NULL, json, &length);
  if (result == 0) printf("%s\n", json);
  return result;
}

/* Prints the number of changes, and shows that a state from before the last one would be refused. */
static int stamp(hf_authenticator_t *keys, const hf_store_t *store) {
  uint8_t id[HF_STATE_ID_BYTES];
  uint64_t count;
  hf_authenticator_t *later;
  int result = hf_authenticator_stamp(keys, id, &count);
  if (result != 0) return result;
  printf("%u changes\n", (unsigned)count);
  result = hf_authenticator_open_store(store, id, count, &later);
  if (result != 0) return result;
  hf_authenticator_close(later);
  return hf_authenticator_open_store(store, id, count + 1, &later) == HF_ERROR_DAMAGED ? 0 : HF_ERROR_SYSTEM;
}

int main(int count, char **words) {
  hf_store_t store = {load, replace, NULL};
  hf_authenticator_t *keys;
  int result;
  if (count < 3) return 64;
  store.context = words[1];
  result = hf_authenticator_open_store(&store, NULL, 0, &keys);
  if (result == 0) {
    result = HF_ERROR_ARGUMENT;
    if (strcmp(words[2], "activate") == 0 && count == 4) result = activate(keys, words[3]);
    if (strcmp(words[2], "password") == 0) result = password(keys);
    if (strcmp(words[2], "records") == 0) result = records(keys);
    if (strcmp(words[2], "stamp") == 0) result = stamp(keys, &store);
    hf_authenticator_close(keys);
  }
  if (result != 0) fprintf(stderr, "person: %s\n", hf_text(result));
  return result < 0 ? 100 - result : result;
}
