/* A prover for tests. usage: prover begin STATE | accept STATE DESCRIPTOR TOKEN | prove STATE COMMAND | over STATE SOCKET COMMAND
 *
 * begin writes the evidence to standard output; accept reads a descriptor and a token from files; prove takes the endpoint from
 * HF_ENDPOINT; over carries the messages over a SOCK_SEQPACKET socket with callbacks of its own. The exit status is that of a
 * verdict, and 100 minus the error otherwise. */
#include <holdfast.h>

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#ifdef OWN_KEYS
extern const hf_proof_keys_t hf_proof_keys;
static const hf_proof_keys_t *const keys = &hf_proof_keys;
#else
static const hf_proof_keys_t *const keys = NULL;
#endif

static int wait_for(int descriptor, short what, uint32_t milliseconds) {
  struct pollfd one = {0, 0, 0};
  one.fd = descriptor;
  one.events = what;
  switch (poll(&one, 1, milliseconds > 600000 ? 600000 : (int)milliseconds)) {
  case 1: return 0;
  case 0: return HF_ERROR_TIMEOUT;
  default: return -1;
  }
}

static int receive_message(void *context, uint8_t *message, size_t *length, uint32_t milliseconds) {
  int waited = wait_for(*(int *)context, POLLIN, milliseconds);
  ssize_t count;
  if (waited != 0) return waited;
  count = recv(*(int *)context, message, *length, 0);
  if (count <= 0) return HF_ERROR_CONNECTION;
  *length = (size_t)count;
  return 0;
}

static int send_message(void *context, const uint8_t *message, size_t length, uint32_t milliseconds) {
  int waited = wait_for(*(int *)context, POLLOUT, milliseconds);
  if (waited != 0) return waited;
  return send(*(int *)context, message, length, MSG_NOSIGNAL) == (ssize_t)length ? 0 : HF_ERROR_CONNECTION;
}

static void end_channel(void *context) { shutdown(*(int *)context, SHUT_RDWR); }

static int begin(hf_prover_t *prover) {
  uint8_t evidence[HF_EVIDENCE_BYTES];
  size_t length = sizeof evidence;
  int result = hf_prover_begin(prover, NULL, NULL, NULL, HF_REPLACE, evidence, &length);
  if (result == 0 && fwrite(evidence, 1, length, stdout) != length) return HF_ERROR_SYSTEM;
  return result;
}

static size_t read_file(const char *path, char *bytes, size_t size) {
  FILE *file = fopen(path, "rb");
  size_t count = 0;
  if (file != NULL) {
    count = fread(bytes, 1, size - 1, file);
    fclose(file);
  }
  bytes[count] = 0;
  return count;
}

static int accept_token(hf_prover_t *prover, const char *descriptor_path, const char *token_path) {
  static char descriptor[8192], token[4096];
  size_t length;
  read_file(descriptor_path, descriptor, sizeof descriptor);
  length = read_file(token_path, token, sizeof token);
  return hf_prover_accept(prover, descriptor, (const uint8_t *)token, length, NULL, HF_REPLACE);
}

static int prove(hf_prover_t *prover, const char *path, const char *command) {
  hf_request_t request;
  hf_outcome_t outcome;
  uint8_t answer[HF_RESULT_BYTES];
  size_t length = sizeof answer;
  int result, descriptor = -1;

  memset(&request, 0, sizeof request);
  request.command = command;
  if (path == NULL) {
    result = hf_prover_prove(prover, getenv("HF_ENDPOINT"), &request, NULL, answer, &length, &outcome);
  } else {
    hf_channel_t channel = {receive_message, send_message, end_channel, NULL};
    struct sockaddr_un address;
    memset(&address, 0, sizeof address);
    address.sun_family = AF_UNIX;
    strncpy(address.sun_path, path, sizeof address.sun_path - 1);
    descriptor = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (connect(descriptor, (struct sockaddr *)&address, sizeof address) != 0) return HF_ERROR_SYSTEM;
    channel.context = &descriptor;
    result = hf_prover_prove_over(prover, &channel, &request, NULL, answer, &length, &outcome);
  }
  if (result >= 0) printf("%s, %u: %.*s\n", hf_text(result), outcome.is_authenticated, (int)length, (const char *)answer);
  if (descriptor >= 0) close(descriptor);
  return result;
}

int main(int count, char **words) {
  hf_prover_t *prover;
  int result = HF_ERROR_ARGUMENT;
  if (count < 3) return 64;
  if (hf_prover_open(words[2], keys, &prover) != 0) return 70;
  if (strcmp(words[1], "begin") == 0) result = begin(prover);
  else if (strcmp(words[1], "accept") == 0 && count == 5) result = accept_token(prover, words[3], words[4]);
  else if (strcmp(words[1], "prove") == 0 && count == 4) result = prove(prover, NULL, words[3]);
  else if (strcmp(words[1], "over") == 0 && count == 5) result = prove(prover, words[3], words[4]);
  if (result < 0) fprintf(stderr, "prover: %s\n", hf_text(result));
  hf_prover_close(prover);
  return result < 0 ? 100 - result : result;
}
