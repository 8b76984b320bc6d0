// A TLS 1.3 handshake in which both sides show a certificate, over a pair of Unix sockets, in one thread: a way to do without a
// first round. Both keys are P-256, and no tickets are sent.

#include <fcntl.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <sys/socket.h>
#include <unistd.h>

#include "worker.h"

static SSL_CTX *server, *client;
static int sockets[2];

static X509 *certify(EVP_PKEY *key) {
  X509 *certificate = X509_new();
  X509_NAME *name = X509_get_subject_name(certificate);
  X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, (const unsigned char *)"peer", -1, -1, 0);
  X509_set_version(certificate, 2);
  ASN1_INTEGER_set(X509_get_serialNumber(certificate), 1);
  X509_set_issuer_name(certificate, name);
  X509_gmtime_adj(X509_getm_notBefore(certificate), -60);
  X509_gmtime_adj(X509_getm_notAfter(certificate), 86400);
  X509_set_pubkey(certificate, key);
  X509_sign(certificate, key, EVP_sha256());
  return certificate;
}

static SSL_CTX *context(const SSL_METHOD *method, EVP_PKEY *key, X509 *own, X509 *other) {
  SSL_CTX *context = SSL_CTX_new(method);
  SSL_CTX_set_min_proto_version(context, TLS1_3_VERSION);
  SSL_CTX_use_PrivateKey(context, key);
  SSL_CTX_use_certificate(context, own);
  SSL_CTX_set_num_tickets(context, 0);
  X509_STORE_add_cert(SSL_CTX_get_cert_store(context), other);
  SSL_CTX_set_verify(context, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, NULL);
  return context;
}

static int shake(void) {
  SSL *one = SSL_new(client), *other = SSL_new(server);
  SSL_set_fd(one, sockets[0]);
  SSL_set_fd(other, sockets[1]);
  SSL_set_connect_state(one);
  SSL_set_accept_state(other);
  int is_done = 0;
  for (int turn = 0; turn < 8 && !is_done; turn++) is_done = (SSL_do_handshake(one) == 1) & (SSL_do_handshake(other) == 1);
  is_done = is_done && SSL_get_verify_result(one) == X509_V_OK && SSL_get_verify_result(other) == X509_V_OK &&
            SSL_version(one) == TLS1_3_VERSION;
  SSL_free(one);
  SSL_free(other);
  return is_done;
}

int main(void) {
  EVP_PKEY *keys[2] = {EVP_EC_gen("P-256"), EVP_EC_gen("P-256")};
  X509 *certificates[2] = {certify(keys[0]), certify(keys[1])};
  client = context(TLS_client_method(), keys[0], certificates[0], certificates[1]);
  server = context(TLS_server_method(), keys[1], certificates[1], certificates[0]);
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, sockets) != 0) stop("there are no sockets");
  serve(shake);
  return 0;
}
