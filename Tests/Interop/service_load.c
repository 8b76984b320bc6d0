// Load for the online service: provers that enrol, connections that stay idle, and the cryptography of an enrolment by itself.
//
// usage: service_load enrol PORT CERTIFICATES CLIENTS <WORK >TIMES
//        service_load ask PORT CERTIFICATES <REQUESTS >TIMES
//        service_load idle PORT CERTIFICATES COUNT
//        service_load cryptography COUNT
//
// WORK has two lines for each enrolment: the body of POST /v1/attest, and the body of POST /v1/tokens with an @ in place of the
// attestation. Both requests use one connection, as holdfast-carrier does. TIMES has a line for each request: the method, the path,
// the status and the microseconds to the last byte of the answer. `enrol` has a line more for each connection (TLS connect 200),
// while the times of `ask` include making it.
// REQUESTS has a line for each: method, path, header line or -, body or -; they are made one after the other.
// `idle` prints a line when all connections are made, and keeps them until its input ends.
// `cryptography` prints the microseconds of processor time of one enrolment's signatures and key agreements.

#define _GNU_SOURCE
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <openssl/ec.h>
#include <openssl/ecdsa.h>
#include <openssl/evp.h>
#include <openssl/ssl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { answerSize = 65536, lineSize = 131072 };

static struct sockaddr_in address;
static SSL_CTX *context;
static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;

static void fail(const char *what) {
  fprintf(stderr, "service_load: %s\n", what);
  ERR_print_errors_fp(stderr);
  exit(1);
}

static double now(clockid_t clock) {
  struct timespec time;
  clock_gettime(clock, &time);
  return time.tv_sec + time.tv_nsec / 1e9;
}

// TLS

static void prepare(const char *port, const char *certificates) {
  address.sin_family = AF_INET;
  address.sin_port = htons((unsigned short)atoi(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  context = SSL_CTX_new(TLS_client_method());
  if (context == NULL || SSL_CTX_load_verify_locations(context, certificates, NULL) != 1) fail("certificates");
  SSL_CTX_set_verify(context, SSL_VERIFY_PEER, NULL);
  SSL_CTX_set_min_proto_version(context, TLS1_3_VERSION);
}

static SSL *dial(int *descriptor) {
  int one = 1;
  *descriptor = socket(AF_INET, SOCK_STREAM, 0);
  if (*descriptor < 0) return NULL;
  setsockopt(*descriptor, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
  SSL *connection = NULL;
  if (connect(*descriptor, (struct sockaddr *)&address, sizeof address) == 0 && (connection = SSL_new(context)) != NULL &&
      SSL_set_fd(connection, *descriptor) == 1 && SSL_connect(connection) == 1) {
    return connection;
  }
  SSL_free(connection);
  close(*descriptor);
  return NULL;
}

// Returns the number of bytes of an answer that has begun; 0 until its head is there.
static int lengthOf(const char *answer) {
  const char *end = strstr(answer, "\r\n\r\n"), *field = strcasestr(answer, "\r\ncontent-length:");
  if (end == NULL) return 0;
  return (int)(end + 4 - answer) + (field != NULL && field < end ? atoi(field + strlen("\r\ncontent-length:")) : 0);
}

// Makes one request on a connection, and returns the status; 0 if there is no whole answer. `answer` gets the answer with its head.
static int ask(SSL *connection, const char *method, const char *path, const char *header, const char *body, char *answer) {
  int status = 0, length = 0, count = 0;
  size_t size = body == NULL ? 0 : strlen(body);
  char *request = malloc(size + 1024);
  int sent = snprintf(request, size + 1024,
                      "%s %s HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n%s%sContent-Length: %zu\r\n\r\n%s",
                      method, path, header == NULL ? "" : header, header == NULL ? "" : "\r\n", size, size ? body : "");
  answer[0] = 0;
  if (SSL_write(connection, request, sent) == sent) {
    do {
      length += count;
      answer[length] = 0;
      int whole = lengthOf(answer);
      if (whole > 0 && length >= whole) {
        sscanf(answer, "HTTP/1.1 %d", &status);
        break;
      }
    } while (length < answerSize - 1 && (count = SSL_read(connection, answer + length, answerSize - 1 - length)) > 0);
  }
  free(request);
  return status;
}

static int timed(SSL *connection, double start, const char *method, const char *path, const char *header, const char *body,
                 char *answer) {
  int status = connection == NULL ? 0 : ask(connection, method, path, header, body, answer);
  printf("%s %s %d %.0f\n", method, path, status, (now(CLOCK_MONOTONIC) - start) * 1e6);
  return status;
}

static void hangUp(SSL *connection, int descriptor) {
  if (connection == NULL) return;
  SSL_free(connection);
  close(descriptor);
}

// Provers

// Reads the two lines of an enrolment; 0 at the end of the input.
static int next(char *first, char *second) {
  pthread_mutex_lock(&turn);
  int isThere = fgets(first, lineSize, stdin) != NULL && fgets(second, lineSize, stdin) != NULL;
  pthread_mutex_unlock(&turn);
  if (isThere) {
    first[strcspn(first, "\n")] = 0;
    second[strcspn(second, "\n")] = 0;
  }
  return isThere;
}

static void enrolOne(const char *first, char *second, char *answer, char *body) {
  double start = now(CLOCK_MONOTONIC);
  int descriptor;
  SSL *connection = dial(&descriptor);
  printf("TLS connect %d %.0f\n", connection == NULL ? 0 : 200, (now(CLOCK_MONOTONIC) - start) * 1e6);
  if (timed(connection, now(CLOCK_MONOTONIC), "POST", "/v1/attest", NULL, first, answer) == 200) {
    char *token = strstr(answer, "\"attestation\":\""), *place = strchr(second, '@');
    if (token == NULL || place == NULL) fail("an answer without an attestation");
    token += strlen("\"attestation\":\"");
    token[strcspn(token, "\"")] = 0;
    snprintf(body, 2 * lineSize, "%.*s%s%s", (int)(place - second), second, token, place + 1);
    timed(connection, now(CLOCK_MONOTONIC), "POST", "/v1/tokens", NULL, body, answer);
  }
  hangUp(connection, descriptor);
}

static void *enrol(void *unused) {
  char *first = malloc(lineSize), *second = malloc(lineSize), *answer = malloc(answerSize), *body = malloc(2 * lineSize);
  while (next(first, second)) enrolOne(first, second, answer, body);
  free(first);
  free(second);
  free(answer);
  free(body);
  return unused;
}

static void enrolAll(int count) {
  pthread_t *threads = calloc(count, sizeof *threads);
  for (int number = 0; number < count; number++) {
    if (pthread_create(&threads[number], NULL, enrol, NULL) != 0) fail("threads");
  }
  for (int number = 0; number < count; number++) pthread_join(threads[number], NULL);
  free(threads);
}

static void askAll(void) {
  char *line = malloc(lineSize), *answer = malloc(answerSize);
  while (fgets(line, lineSize, stdin) != NULL) {
    line[strcspn(line, "\n")] = 0;
    char *rest = line, *method = strsep(&rest, "\t"), *path = strsep(&rest, "\t"), *header = strsep(&rest, "\t");
    if (rest == NULL) fail("a request with too few parts");
    double start = now(CLOCK_MONOTONIC);
    int descriptor;
    SSL *connection = dial(&descriptor);
    timed(connection, start, method, path, strcmp(header, "-") ? header : NULL, strcmp(rest, "-") ? rest : NULL, answer);
    hangUp(connection, descriptor);
  }
  free(line);
  free(answer);
}

// Connections that say nothing

static void idle(int count) {
  for (int number = 0; number < count; number++) {
    int descriptor;
    SSL *connection = dial(&descriptor);
    if (connection == NULL) fail("a connection was refused");
    // The session tickets are read, as a client's first request would have it.
    struct timeval patience = {0, 1};
    char byte;
    setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    SSL_read(connection, &byte, 1);
  }
  puts("idle");
  fflush(stdout);
  while (getchar() != EOF) continue;
}

// Cryptography

static EVP_PKEY *make(int type) {
  EVP_PKEY *key = type == EVP_PKEY_EC ? EVP_EC_gen("P-256") : EVP_PKEY_Q_keygen(NULL, NULL, "X25519");
  if (key == NULL) fail("a key");
  return key;
}

static void agree(EVP_PKEY *own, EVP_PKEY *other) {
  unsigned char secret[32];
  size_t size = sizeof secret;
  EVP_PKEY_CTX *agreement = EVP_PKEY_CTX_new(own, NULL);
  if (agreement == NULL || EVP_PKEY_derive_init(agreement) != 1 || EVP_PKEY_derive_set_peer(agreement, other) != 1 ||
      EVP_PKEY_derive(agreement, secret, &size) != 1) {
    fail("an agreement");
  }
  EVP_PKEY_CTX_free(agreement);
}

static void sign(EVP_PKEY *key) {
  unsigned char signature[80], message[400] = {0};
  size_t size = sizeof signature;
  EVP_MD_CTX *signing = EVP_MD_CTX_new();
  if (signing == NULL || EVP_DigestSignInit(signing, NULL, EVP_sha256(), NULL, key) != 1 ||
      EVP_DigestSign(signing, signature, &size, message, sizeof message) != 1) {
    fail("a signature");
  }
  EVP_MD_CTX_free(signing);
}

// An enrolment has a handshake (a signature, and an X25519 key with an agreement), an attestation token that is encrypted
// (a P-256 key and an agreement) and opened (an agreement), and a measurement token that is signed and encrypted (a signature,
// a P-256 key and an agreement).
static void measure(int count) {
  EVP_PKEY *fixed = make(EVP_PKEY_EC), *peer = make(EVP_PKEY_EC), *remote = make(EVP_PKEY_X25519);
  double start = now(CLOCK_PROCESS_CPUTIME_ID);
  for (int number = 0; number < count; number++) {
    EVP_PKEY *session = make(EVP_PKEY_X25519);
    agree(session, remote);
    sign(fixed);
    EVP_PKEY_free(session);
    for (int token = 0; token < 2; token++) {
      EVP_PKEY *own = make(EVP_PKEY_EC);
      agree(own, peer);
      EVP_PKEY_free(own);
    }
    agree(fixed, peer);
    sign(fixed);
  }
  printf("%.1f\n", (now(CLOCK_PROCESS_CPUTIME_ID) - start) / count * 1e6);
}

int main(int count, char **words) {
  struct rlimit descriptors;
  getrlimit(RLIMIT_NOFILE, &descriptors);
  descriptors.rlim_cur = descriptors.rlim_max;
  setrlimit(RLIMIT_NOFILE, &descriptors);
  setvbuf(stdout, NULL, _IOFBF, 1 << 16);
  if (count == 3 && strcmp(words[1], "cryptography") == 0) {
    measure(atoi(words[2]));
    return 0;
  }
  if (count < 4) return 64;
  prepare(words[2], words[3]);
  if (count == 5 && strcmp(words[1], "enrol") == 0) {
    enrolAll(atoi(words[4]));
  } else if (count == 4 && strcmp(words[1], "ask") == 0) {
    askAll();
  } else if (count == 5 && strcmp(words[1], "idle") == 0) {
    idle(atoi(words[4]));
  } else {
    return 64;
  }
  return 0;
}
