// The limit: the same works in C with libcrypto, as fast as its interface allows. Keys and contexts are kept, hashes use the
// low-level functions, and nothing is allocated that libcrypto does not allocate itself. Secrets are wiped, as Holdfast does it.
//
// usage: reference WORK FOLDER
//        reference process PID
//        reference trees:THREADS PID
//        reference measure:FILE FOLDER

#define OPENSSL_SUPPRESS_DEPRECATED
#include <fcntl.h>
#include <openssl/crypto.h>
#include <openssl/ec.h>
#include <openssl/ecdsa.h>
#include <openssl/evp.h>
#include <openssl/objects.h>
#include <openssl/sha.h>
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

#include "worker.h"

static const char *folder;

// HMAC of two parts, by the low-level hashes. Source: RFC 2104.

typedef struct {
  SHA256_CTX inner, outer;
} HMAC256;

static void begin256(HMAC256 *mac, const unsigned char *key, size_t count) {
  unsigned char block[64];
  memset(block, 0x36, 64);
  for (size_t index = 0; index < count; index++) block[index] ^= key[index];
  SHA256_Init(&mac->inner);
  SHA256_Update(&mac->inner, block, 64);
  for (size_t index = 0; index < 64; index++) block[index] ^= 0x36 ^ 0x5c;
  SHA256_Init(&mac->outer);
  SHA256_Update(&mac->outer, block, 64);
  explicit_bzero(block, 64);
}

static void finish256(HMAC256 *mac, unsigned char *code) {
  SHA256_Final(code, &mac->inner);
  SHA256_Update(&mac->outer, code, 32);
  SHA256_Final(code, &mac->outer);
  explicit_bzero(mac, sizeof *mac);
}

static void hmac_sha1(const char *key, size_t count, const unsigned char *message, size_t length, unsigned char *code) {
  unsigned char block[64];
  SHA_CTX inner, outer;
  memset(block, 0x36, 64);
  for (size_t index = 0; index < count; index++) block[index] ^= (unsigned char)key[index];
  SHA1_Init(&inner);
  SHA1_Update(&inner, block, 64);
  for (size_t index = 0; index < 64; index++) block[index] ^= 0x36 ^ 0x5c;
  SHA1_Init(&outer);
  SHA1_Update(&outer, block, 64);
  SHA1_Update(&inner, message, length);
  SHA1_Final(code, &inner);
  SHA1_Update(&outer, code, 20);
  SHA1_Final(code, &outer);
  explicit_bzero(block, 64);
  explicit_bzero(&inner, sizeof inner);
  explicit_bzero(&outer, sizeof outer);
}

// The token: COSE_Encrypt around COSE_Sign1, decoded, decrypted, verified, its claims read.

typedef struct {
  const unsigned char *at, *end;
} Reader;

static int head(Reader *reader, int *major, uint64_t *value) {
  if (reader->at == reader->end) return 0;
  int first = *reader->at++, more = first & 31;
  *major = first >> 5;
  *value = more;
  if (more < 24) return 1;
  if (more > 27 || reader->end - reader->at < 1 << (more - 24)) return 0;
  *value = 0;
  for (int index = 0; index < 1 << (more - 24); index++) *value = *value << 8 | *reader->at++;
  return 1;
}

static int expect(Reader *reader, int major, uint64_t value) {
  int found;
  uint64_t number;
  return head(reader, &found, &number) && found == major && number == value;
}

static int string(Reader *reader, int major, Reader *content) {
  int found;
  uint64_t count;
  if (!head(reader, &found, &count) || found != major || (uint64_t)(reader->end - reader->at) < count) return 0;
  content->at = reader->at;
  content->end = reader->at += count;
  return 1;
}

static unsigned char *token, *expected_claims;
static size_t token_count, claims_count;
static EC_KEY *device, *issuer;
static EC_POINT *ephemeral;
static EVP_CIPHER_CTX *gcm;
static unsigned char issuer_id[8], device_id[8];

// Appends the head of a byte string, and the string.
static void hash_string(SHA256_CTX *hash, Reader content) {
  size_t count = content.end - content.at;
  unsigned char head[3] = {0x58, count, 0};
  size_t width = count < 24 ? (head[0] = 0x40 | count, 1) : count < 256 ? 2 : (head[0] = 0x59, head[1] = count >> 8, head[2] = count, 3);
  SHA256_Update(hash, head, width);
  SHA256_Update(hash, content.at, count);
}

// The content key: HKDF-SHA-256 of the shared secret, with the context of the recipient. Source: RFC 5869, RFC 9053 §5.2.
static void derive(const unsigned char *secret, Reader recipient, unsigned char *key) {
  static const unsigned char start[] = {0x84, 3, 0x83, 0xf6, 0xf6, 0xf6, 0x83, 0xf6, 0xf6, 0xf6, 0x82, 0x19, 1, 0};
  unsigned char zero[32] = {0}, pseudorandom[32], one = 1;
  HMAC256 mac;
  begin256(&mac, zero, 32);
  SHA256_Update(&mac.inner, secret, 32);
  finish256(&mac, pseudorandom);
  begin256(&mac, pseudorandom, 32);
  explicit_bzero(pseudorandom, 32);
  SHA256_Update(&mac.inner, start, sizeof start);
  hash_string(&mac.inner, recipient);
  SHA256_Update(&mac.inner, &one, 1);
  finish256(&mac, key);
}

static int open_envelope(unsigned char *plaintext, int *plaintext_count) {
  static const unsigned char context[] = "\x83\x67" "Encrypt" "\x43\xa1\x01\x03\x40";
  Reader reader = {token, token + token_count}, protected, iv, ciphertext, recipient, kid, x, y, none;
  if (!expect(&reader, 6, 96) || !expect(&reader, 4, 4) || !string(&reader, 2, &protected) || !expect(&reader, 5, 1) ||
      !expect(&reader, 0, 5) || !string(&reader, 2, &iv) || !string(&reader, 2, &ciphertext) ||
      !expect(&reader, 4, 1) || !expect(&reader, 4, 3) || !string(&reader, 2, &recipient) || !expect(&reader, 5, 1) ||
      !expect(&reader, 1, 0) || !expect(&reader, 5, 4) || !expect(&reader, 0, 1) || !expect(&reader, 0, 2) ||
      !expect(&reader, 1, 0) || !expect(&reader, 0, 1) || !expect(&reader, 1, 1) || !string(&reader, 2, &x) ||
      !expect(&reader, 1, 2) || !string(&reader, 2, &y) || !string(&reader, 2, &none) || reader.at != reader.end ||
      x.end - x.at != 32 || y.end - y.at != 32 || iv.end - iv.at != 12 || ciphertext.end - ciphertext.at < 16)
    return 0;
  Reader header = recipient;
  if (!expect(&header, 5, 2) || !expect(&header, 0, 1) || !expect(&header, 1, 24) || !expect(&header, 0, 4) ||
      !string(&header, 2, &kid) || kid.end - kid.at != 8 || memcmp(kid.at, device_id, 8) != 0)
    return 0;
  unsigned char point[65] = {4}, secret[32], key[32];
  memcpy(point + 1, x.at, 32);
  memcpy(point + 33, y.at, 32);
  if (!EC_POINT_oct2point(EC_KEY_get0_group(device), ephemeral, point, 65, NULL) ||
      ECDH_compute_key(secret, 32, ephemeral, device, NULL) != 32)
    return 0;
  derive(secret, recipient, key);
  explicit_bzero(secret, 32);
  int count = ciphertext.end - ciphertext.at - 16, written, ended;
  int result = EVP_DecryptInit_ex2(gcm, NULL, key, iv.at, NULL);
  explicit_bzero(key, 32);
  return result && EVP_CIPHER_CTX_ctrl(gcm, EVP_CTRL_AEAD_SET_TAG, 16, (void *)(ciphertext.end - 16)) &&
         EVP_DecryptUpdate(gcm, NULL, &written, context, sizeof context - 1) &&
         EVP_DecryptUpdate(gcm, plaintext, &written, ciphertext.at, count) &&
         EVP_DecryptFinal_ex(gcm, plaintext + written, &ended) && (*plaintext_count = count);
}

static int verify(const unsigned char *signature, const unsigned char *digest) {
  ECDSA_SIG *numbers = ECDSA_SIG_new();
  ECDSA_SIG_set0(numbers, BN_bin2bn(signature, 32, NULL), BN_bin2bn(signature + 32, 32, NULL));
  int result = ECDSA_do_verify(digest, 32, numbers, issuer);
  ECDSA_SIG_free(numbers);
  return result == 1;
}

// Reads all claims, and returns whether they are the expected ones.
static int read_claims(Reader claims) {
  Reader whole = claims;
  int major;
  uint64_t count, value;
  if (!head(&claims, &major, &count) || major != 5) return 0;
  for (uint64_t index = 0; index < count; index++) {
    if (!head(&claims, &major, &value) || major > 1 || !head(&claims, &major, &value)) return 0;
    if (major != 0 && major != 2 && major != 3) return 0;
    if (major != 0 && (uint64_t)(claims.end - claims.at) < value) return 0;
    if (major != 0) claims.at += value;
  }
  return claims.at == claims.end && (size_t)(whole.end - whole.at) == claims_count &&
         CRYPTO_memcmp(whole.at, expected_claims, claims_count) == 0;
}

static int open_token(void) {
  unsigned char plaintext[4096], digest[32];
  int count;
  if (!open_envelope(plaintext, &count)) return 0;
  Reader reader = {plaintext, plaintext + count}, protected, payload, signature, kid, type;
  if (!expect(&reader, 6, 18) || !expect(&reader, 4, 4) || !string(&reader, 2, &protected) || !expect(&reader, 5, 0) ||
      !string(&reader, 2, &payload) || !string(&reader, 2, &signature) || reader.at != reader.end ||
      signature.end - signature.at != 64)
    return 0;
  Reader header = protected;
  if (!expect(&header, 5, 3) || !expect(&header, 0, 1) || !expect(&header, 1, 6) || !expect(&header, 0, 4) ||
      !string(&header, 2, &kid) || kid.end - kid.at != 8 || memcmp(kid.at, issuer_id, 8) != 0 ||
      !expect(&header, 0, 16) || !string(&header, 3, &type) || type.end - type.at != 11)
    return 0;
  SHA256_CTX hash;
  SHA256_Init(&hash);
  SHA256_Update(&hash, "\x84\x6a" "Signature1", 12);
  hash_string(&hash, protected);
  SHA256_Update(&hash, "\x40", 1);
  hash_string(&hash, payload);
  SHA256_Final(digest, &hash);
  int result = verify(signature.at, digest) && read_claims(payload);
  explicit_bzero(plaintext, sizeof plaintext);
  return result;
}

static EC_KEY *public_key(const unsigned char *point, unsigned char *id) {
  unsigned char digest[32];
  EC_KEY *key = EC_KEY_new_by_curve_name(NID_X9_62_prime256v1);
  EC_KEY_oct2key(key, point, 65, NULL);
  memcpy(id, SHA256(point, 65, digest), 8);
  return key;
}

static void prepare_token(void) {
  size_t count;
  token = contents(folder, "token", &token_count);
  expected_claims = contents(folder, "claims", &claims_count);
  issuer = public_key(contents(folder, "issuer.point", &count), issuer_id);
  device = public_key(contents(folder, "device.point", &count), device_id);
  EC_KEY_set_private_key(device, BN_bin2bn(contents(folder, "scalar", &count), 32, NULL));
  ephemeral = EC_POINT_new(EC_KEY_get0_group(device));
  gcm = EVP_CIPHER_CTX_new();
  EVP_DecryptInit_ex2(gcm, EVP_CIPHER_fetch(NULL, "AES-256-GCM", NULL), NULL, NULL, NULL);
}

// Proofs and one-time passwords.

static int prove(void) {
  static const unsigned char expected[32] = {0x05, 0x7b, 0xdc, 0x13, 0xa7, 0x36, 0x54, 0x4e, 0x3e, 0x57, 0x90, 0xad, 0xf6, 0x8f, 0xdc, 0xab, 0x59, 0x42, 0xf2, 0x44, 0x1c, 0x1d, 0xfb, 0x64, 0x38, 0x27, 0x31, 0x4e, 0xb1, 0xb8, 0xf0, 0x8d};
  unsigned char key[16], input[48], code[32];
  memset(key, 0x33, 16);
  memset(input, 0x55, 16);
  memset(input + 16, 0x11, 32);
  HMAC256 mac;
  begin256(&mac, key, 16);
  SHA256_Update(&mac.inner, input, 48);
  finish256(&mac, code);
  return CRYPTO_memcmp(code, expected, 32) == 0;
}

static const char code_key[] = "12345678901234567890";

static int is_code(const unsigned char *message, size_t length, int digits, const char *expected) {
  unsigned char mac[20];
  char code[9];
  hmac_sha1(code_key, 20, message, length, mac);
  int offset = mac[19] & 15;
  uint32_t number = (uint32_t)(mac[offset] & 127) << 24 | mac[offset + 1] << 16 | mac[offset + 2] << 8 | mac[offset + 3];
  for (int index = digits; index-- > 0; number /= 10) code[index] = (char)('0' + number % 10);
  explicit_bzero(mac, 20);
  return memcmp(code, expected, (size_t)digits) == 0;
}

static int is_counter_code(uint64_t counter, int digits, const char *expected) {
  unsigned char message[8];
  for (int index = 0; index < 8; index++) message[index] = (unsigned char)(counter >> (56 - 8 * index));
  return is_code(message, 8, digits, expected);
}

static int hotp(void) { return is_counter_code(0, 6, "755224"); }
static int totp(void) { return is_counter_code(59 / 30, 8, "94287082"); }

static int ocra(void) {
  static const char suite[] = "OCRA-1:HOTP-SHA1-6:QN08";
  unsigned char message[sizeof suite + 128] = {0};
  memcpy(message, suite, sizeof suite);
  return is_code(message, sizeof message, 6, "237653");
}

// Measuring: a file, read and hashed in portions.

static unsigned char expected_digest[32];
static char measured[4096];

static void hash_file(unsigned char *digest) {
  static unsigned char chunk[256 << 10];
  SHA256_CTX hash;
  SHA256_Init(&hash);
  int file = open(measured, O_RDONLY | O_CLOEXEC);
  for (ssize_t count; (count = read(file, chunk, sizeof chunk)) > 0;) SHA256_Update(&hash, chunk, (size_t)count);
  close(file);
  SHA256_Final(digest, &hash);
}

static int measure(void) {
  unsigned char digest[32];
  hash_file(digest);
  return memcmp(digest, expected_digest, 32) == 0;
}

static void measure_file(const char *name) {
  snprintf(measured, sizeof measured, "%s/%s", folder, name);
  hash_file(expected_digest);
  serve(measure);
}

// Measuring another process: its executable by one thread, its code in memory by another, as the process does it itself.

static char code[1 << 20];
static int memory;
static unsigned char text_digest[32], expected_text[32];

static void *hash_text(void *unused) {
  static unsigned char chunk[256 << 10];
  SHA256_CTX hash;
  SHA256_Init(&hash);
  for (char *line = code; line && *line; line = strchr(line, '\n'), line = line ? line + 1 : NULL) {
    unsigned long start, end, inode;
    char protection[5];
    if (sscanf(line, "%lx-%lx %4s %*x %*s %lu", &start, &end, protection, &inode) != 4) continue;
    if (protection[2] != 'x' || inode == 0) continue;
    while (start < end) {
      size_t wanted = end - start < sizeof chunk ? end - start : sizeof chunk;
      ssize_t count = pread(memory, chunk, wanted, (off_t)start);
      if (count <= 0) stop("memory cannot be read");
      SHA256_Update(&hash, chunk, (size_t)count);
      start += (unsigned long)count;
    }
  }
  SHA256_Final(text_digest, &hash);
  return unused;
}

static int measure_process(void) {
  pthread_t thread;
  unsigned char digest[32];
  if (pthread_create(&thread, NULL, hash_text, NULL) != 0) return 0;
  hash_file(digest);
  pthread_join(thread, NULL);
  return memcmp(digest, expected_digest, 32) == 0 && memcmp(text_digest, expected_text, 32) == 0;
}

static void prepare_process(const char *id) {
  char path[64];
  snprintf(path, sizeof path, "/proc/%s/maps", id);
  int maps = open(path, O_RDONLY | O_CLOEXEC);
  size_t length = 0;
  for (ssize_t count; (count = read(maps, code + length, sizeof code - 1 - length)) > 0;) length += (size_t)count;
  close(maps);
  snprintf(path, sizeof path, "/proc/%s/mem", id);
  memory = open(path, O_RDONLY | O_CLOEXEC);
  snprintf(measured, sizeof measured, "/proc/%s/exe", id);
  hash_file(expected_digest);
  hash_text(NULL);
  memcpy(expected_text, text_digest, 32);
}

// The same bytes in chunks, as tree digests: each thread takes the next chunk. docs/measurement.md, "Tree digests".

enum { chunk_size = 128 << 10, most_parts = 256, most_threads = 64 };
static struct part { int file; unsigned long start, length; size_t first, count; } parts[most_parts];
static size_t part_count, chunk_count;
static unsigned long thread_count;
static unsigned char (*leaves)[32];
static atomic_size_t next_chunk;

static void append_number(SHA256_CTX *hash, unsigned long number) {
  unsigned char bytes[8];
  for (int index = 0; index < 8; index++) bytes[index] = (unsigned char)(number >> (56 - 8 * index));
  SHA256_Update(hash, bytes, 8);
}

static void *hash_chunks(void *unused) {
  unsigned char *chunk = malloc(chunk_size);
  for (size_t next; (next = atomic_fetch_add(&next_chunk, 1)) < chunk_count;) {
    struct part *part = parts;
    while (next >= part->first + part->count) part++;
    unsigned long offset = (next - part->first) * (unsigned long)chunk_size;
    size_t wanted = part->length - offset < chunk_size ? part->length - offset : chunk_size;
    for (size_t done = 0; done < wanted;) {
      ssize_t count = pread(part->file, chunk + done, wanted - done, (off_t)(part->start + offset + done));
      if (count <= 0) stop("bytes cannot be read");
      done += (size_t)count;
    }
    SHA256_CTX hash;
    SHA256_Init(&hash);
    SHA256_Update(&hash, "holdfast/1 leaf", 16);
    append_number(&hash, next - part->first);
    SHA256_Update(&hash, chunk, wanted);
    SHA256_Final(leaves[next], &hash);
  }
  free(chunk);
  return unused;
}

static void append_root(SHA256_CTX *result, const struct part *part) {
  unsigned char root[32];
  SHA256_CTX hash;
  SHA256_Init(&hash);
  SHA256_Update(&hash, "holdfast/1 tree", 16);
  append_number(&hash, chunk_size);
  append_number(&hash, part->length);
  SHA256_Update(&hash, leaves + part->first, part->count * 32);
  SHA256_Final(root, &hash);
  SHA256_Update(result, root, 32);
}

static void hash_trees(void) {
  pthread_t threads[most_threads];
  atomic_store(&next_chunk, 0);
  for (unsigned long index = 1; index < thread_count; index++)
    if (pthread_create(&threads[index], NULL, hash_chunks, NULL) != 0) stop("no thread");
  hash_chunks(NULL);
  for (unsigned long index = 1; index < thread_count; index++) pthread_join(threads[index], NULL);
  SHA256_CTX hash;
  SHA256_Init(&hash);
  for (size_t index = 0; index < part_count; index++) append_root(&hash, &parts[index]);
  SHA256_Final(text_digest, &hash);
}

static int measure_trees(void) {
  hash_trees();
  return memcmp(text_digest, expected_text, 32) == 0;
}

static void add_part(int file, unsigned long start, unsigned long length) {
  if (part_count == most_parts) stop("there are too many parts");
  size_t count = (length + chunk_size - 1) / chunk_size;
  parts[part_count++] = (struct part){file, start, length, chunk_count, count};
  chunk_count += count;
}

static void prepare_trees(const char *id, const char *threads) {
  thread_count = strtoul(threads, NULL, 10);
  if (thread_count < 1 || thread_count > most_threads) stop("how many threads?");
  prepare_process(id);
  int file = open(measured, O_RDONLY | O_CLOEXEC);
  add_part(file, 0, (unsigned long)lseek(file, 0, SEEK_END));
  for (char *line = code; line && *line; line = strchr(line, '\n'), line = line ? line + 1 : NULL) {
    unsigned long start, end, inode;
    char protection[5];
    if (sscanf(line, "%lx-%lx %4s %*x %*s %lu", &start, &end, protection, &inode) != 4) continue;
    if (protection[2] == 'x' && inode != 0) add_part(memory, start, end - start);
  }
  leaves = malloc(chunk_count * 32);
  hash_trees();
  memcpy(expected_text, text_digest, 32);
}

int main(int count, char **arguments) {
  if (count != 3) stop("usage: reference WORK FOLDER");
  folder = arguments[2];
  const char *work = arguments[1];
  if (!strcmp(work, "token")) prepare_token(), serve(open_token);
  else if (!strcmp(work, "proof")) serve(prove);
  else if (!strcmp(work, "hotp")) serve(hotp);
  else if (!strcmp(work, "totp")) serve(totp);
  else if (!strcmp(work, "ocra")) serve(ocra);
  else if (!strcmp(work, "process")) prepare_process(folder), serve(measure_process);
  else if (!strncmp(work, "trees:", 6)) prepare_trees(folder, work + 6), serve(measure_trees);
  else if (!strncmp(work, "measure:", 8)) measure_file(work + 8);
  else if (!strcmp(work, "measure")) measure_file("executable");
  else if (!strcmp(work, "measure-large")) measure_file("large");
  else stop("there is no such work");
  return 0;
}
