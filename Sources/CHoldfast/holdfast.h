/* Holdfast: offline hardware attestation, for programs in C and C++ and in every language that can call C.
 *
 * The library has three parts: a prover (an app that proves itself to devices), an authenticator (a person's one-time
 * passwords and seals), and a device (the verifier: a lock, a charger, a pump). docs/c-interface.md has a first program for each;
 * docs/protocol.md defines the messages.
 *
 * Results. A function that returns int returns 0 or a positive number if it did its work, and an hf_error below 0 if it did
 * not. Where a device's verdict is the result, the number is an hf_status: 0 is accepted, and anything else is not. A function
 * that fails changes none of the caller's memory, except where it says so, and except the needed length of a buffer.
 *
 * Memory. All data goes to memory of the caller. A buffer is a pointer and `size_t *length`: before the call, *length is the
 * buffer's size in bytes; after it, the number of bytes written. If the buffer is too small, the result is HF_ERROR_BUFFER, and
 * *length is the size needed. A buffer may be NULL if *length is 0, which asks for the size. Texts are UTF-8 and end with a NUL,
 * which their length includes. A call whose work cannot be repeated (it sends a command, or uses up a code) checks the buffer
 * before it begins; the constants below are the sizes that it needs. Pointers given to a call need be valid only during the
 * call, except where a comment says otherwise. Callbacks, too: what they are given is valid until they return.
 *
 * Handles. hf_…_open allocates an object and gives its handle, because its size is not known to C; hf_…_close frees it and
 * does nothing for NULL. Close an object only when no other call is using it, and use no handle afterwards: neither can be
 * checked. A device outlives its sessions by itself, in whichever order they are closed.
 *
 * Threads. Every function may be called from any thread. A prover and a device serve several calls at once. An authenticator
 * serves one at a time, and others wait. A session serves one call at a time, and another gets HF_ERROR_BUSY. The library has no
 * global state of the caller's, such as a last error.
 *
 * Callbacks must return: no longjmp, no C++ exception and no pthread_exit may leave them. A callback may call the library, but
 * not close the object that called it. The library blocks no signals and changes no signal handlers, except where a comment says
 * so.
 *
 * Versions. A program that was built with this header works with every later libholdfast.so.1. Its symbols have the version
 * HOLDFAST_1. Enumerations may get more values; structures do not change.
 */
#ifndef HOLDFAST_H
#define HOLDFAST_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The sizes of buffers and values, in bytes. */
#define HF_DEVICE_ID_BYTES 16
#define HF_NONCE_BYTES 16
#define HF_PROOF_BYTES 32
/* Evidence of hf_prover_begin. */
#define HF_EVIDENCE_BYTES 4096
/* A one-time password or a seal, with its NUL. */
#define HF_CODE_BYTES 17
/* The result of a command. */
#define HF_RESULT_BYTES 1024
/* The longest message between prover and device. */
#define HF_MESSAGE_BYTES 4096
/* A device's challenge and its verdict. */
#define HF_CHALLENGE_BYTES 64
#define HF_VERDICT_BYTES 1152
/* The most parameters of a command. */
#define HF_PARAMETER_COUNT 8
/* A user's name with its NUL. */
#define HF_USER_BYTES 33
/* A device's challenge to a person, 16 hexadecimal digits with their NUL. */
#define HF_DEVICE_CHALLENGE_BYTES 17
/* The identity of the state in an hf_store_t. */
#define HF_STATE_ID_BYTES 16
/* The largest state in an hf_store_t. */
#define HF_STATE_BYTES 4194304

/* A device's verdict. Source: docs/protocol.md, Statuses. */
typedef enum hf_status {
  HF_ACCEPTED = 0,
  HF_TOKEN_INVALID = 1,
  HF_TOKEN_EXPIRED = 2,
  HF_TOKEN_REVOKED = 3,
  HF_TOKEN_UNKNOWN = 4,
  HF_INTEGRITY_MISMATCH = 5,
  HF_DEVICE_MISMATCH = 6,
  HF_FACTOR_MISSING = 7,
  HF_OTP_REJECTED = 8,
  HF_SEAL_REJECTED = 9,
  HF_LOCKED_OUT = 10,
  HF_COMMAND_REFUSED = 11,
  HF_CHALLENGE_EXPIRED = 12,
  HF_MALFORMED = 13,
  HF_BUSY = 14,
  HF_USES_EXHAUSTED = 15,
  HF_VERSION_TOO_OLD = 16,
  HF_INTERNAL = 17
} hf_status_t;

/* The reason why a call did not do its work. */
typedef enum hf_error {
  /* An argument is NULL, too long, too short, or not of the form that the function's comment requires. */
  HF_ERROR_ARGUMENT = -1,
  /* A buffer is too small. Its length is now the one needed. Nothing else happened. */
  HF_ERROR_BUFFER = -2,
  /* The call is out of order: there is no challenge to answer, or the session or service has ended. */
  HF_ERROR_ORDER = -3,
  /* Another thread uses the session, or another process the folder. */
  HF_ERROR_BUSY = -4,
  /* The call was cancelled. If the request had been sent, the device may still carry it out. */
  HF_ERROR_CANCELLED = -5,
  /* The folder does not exist, or nothing that this call needs is in it. */
  HF_ERROR_MISSING = -6,
  /* The folder is of another kind: a device's where a prover's is needed, for example. */
  HF_ERROR_KIND = -7,
  /* The folder was written by a version that this one does not read. */
  HF_ERROR_VERSION = -8,
  /* The folder is damaged, incomplete, or an older copy. */
  HF_ERROR_DAMAGED = -9,
  /* The system refuses access, the file system is read-only, or the folder is open to other users. */
  HF_ERROR_PERMISSION = -10,
  /* The disk or the quota is exhausted. */
  HF_ERROR_FULL = -11,
  /* The system failed in another way: a file, a thread, a descriptor, memory. */
  HF_ERROR_SYSTEM = -12,
  /* The device is not enrolled. */
  HF_ERROR_NOT_ENROLLED = -13,
  /* The device is enrolled, or a baseline waits for its token, and HF_REPLACE was not given. */
  HF_ERROR_ENROLLED = -14,
  /* No baseline waits for this token, or another device's enrolment has used it. */
  HF_ERROR_NO_BASELINE = -15,
  /* The app or its host could not be measured, or has not the key of the enrolment. */
  HF_ERROR_MEASUREMENT = -16,
  /* The connection could not be made, was lost, or a callback of an hf_channel_t failed. */
  HF_ERROR_CONNECTION = -17,
  /* The other end did not answer in time. If the request had been sent, the device may still carry it out. */
  HF_ERROR_TIMEOUT = -18,
  /* The other end did not follow the protocol. */
  HF_ERROR_PROTOCOL = -19,
  /* The other end could not prove that it is the enrolled device. Nothing that it said counts. */
  HF_ERROR_IMPOSTOR = -20,
  /* The authenticator has no such record, or more than one that fits. */
  HF_ERROR_RECORD = -21,
  /* The record cannot make the code: its count is used up or too far ahead, its method or protection is another one. */
  HF_ERROR_CODE = -22,
  /* The cryptographic library or the random source failed. */
  HF_ERROR_CRYPTOGRAPHY = -23,
  /* Another device answers than the one that was asked for, or the enrolled one with another key. Nothing was sent to it. */
  HF_ERROR_ANOTHER_DEVICE = -24,
  /* The device refuses the owner's code: it is wrong, too old, used up, for another purpose, or another device's. */
  HF_ERROR_OWNER_CODE = -25,
  /* The authenticator has records of the user already, and HF_REPLACE was not given. The owner's code is still good. */
  HF_ERROR_EXISTS = -26,
  /* The records are stored, and it is not known whether the device has added the user: hf_authenticator_synchronise finds
   * out. */
  HF_ERROR_UNKNOWN_END = -27,
  /* The device does not know the user, or did not complete the activation. */
  HF_ERROR_USER = -28,
  /* The new PIN breaks a rule: it counts up or down, repeats itself, or begins or ends with a year. */
  HF_ERROR_PIN = -29,
  /* The undo code is wrong, there is no change of the protection, or there is one that must be confirmed or undone first. */
  HF_ERROR_CHANGE = -30
} hf_error_t;

/* A flag of hf_prover_begin, hf_prover_accept and hf_authenticator_activate. */
#define HF_REPLACE 1u
/* A flag of hf_prover_begin: proofs may use digests of code that only root can have changed since the process hashed it. */
#define HF_KNOWN_CODE 2u
/* A flag of hf_prover_begin: code is measured by tree digests, whose chunks all processors hash at once. The service must have
 * approved the image with its tree digest. */
#define HF_TREE_DIGESTS 4u

/* Returns a short English text for an hf_status or hf_error, which is valid for ever; never NULL. */
const char *hf_text(int result);

/* Writes the version of the library, such as 1.2.0-3-g0123456789ab; at most 128 bytes.
 *
 * Returns 0, HF_ERROR_ARGUMENT or HF_ERROR_BUFFER. */
int hf_version(char *text, size_t *length);

/* Protects this process from being read by other processes: it cannot be traced or dumped, its memory is not swapped out where
 * the system allows that, and a crash ends it at once (the handlers of crash signals are the default ones afterwards). Call it
 * before any other function, and before hf_prover_begin in particular: a debugger can no longer be attached, and a measurement
 * records whether one could.
 *
 * Returns 0, or HF_ERROR_SYSTEM if the system refused. */
int hf_protect_process(void);

/* ------------------------------------------------------------------------------------------------------------------ Prover */

/* The keys of an app's releases, 0 is the current one. `holdfast proof-keys --c mpk.key` writes a C source that defines them.
 * The structure and its functions must stay valid until the prover is closed; the functions may be called from several threads
 * at once. */
typedef struct hf_proof_keys {
  /* 1 to 64. */
  uint32_t count;
  /* Whether the current one is the default key that everybody knows. The library finds that out by itself. */
  uint32_t is_default;
  /* Writes the measurement proof key of a release, 16 bytes. */
  void (*measurement_proof_key)(uint32_t index, uint8_t out[16]);
  /* Writes the evidence key of a release, 32 bytes. */
  void (*evidence_key)(uint32_t index, uint8_t out[32]);
} hf_proof_keys_t;

/* An app that proves itself to devices, with its enrolments in a state folder. */
typedef struct hf_prover hf_prover_t;

/* A request to a device. Texts are UTF-8; those that may be absent are NULL. */
typedef struct hf_request {
  /* The command, 1 to 32 bytes. */
  const char *command;
  /* Its parameters, at most 64 bytes each; NULL if there are none. */
  const char *const *parameters;
  /* 0 to HF_PARAMETER_COUNT. */
  size_t parameter_count;
  /* The user of the codes, 1 to 32 bytes; NULL without codes. */
  const char *user;
  /* The user's one-time password and seal, 1 to 16 digits each; NULL if absent. */
  const char *otp;
  const char *seal;
} hf_request_t;

/* The conditions of a proof. */
typedef struct hf_proof_options {
  /* The device that must answer, HF_DEVICE_ID_BYTES; NULL for any enrolled device. */
  const uint8_t *device_id;
  /* The time from connecting to the verdict, in milliseconds, 1 to 3,600,000; 0 for 30,000. */
  uint32_t timeout_milliseconds;
} hf_proof_options_t;

/* What is known after a proof, in addition to its status. */
typedef struct hf_outcome {
  /* The device that answered; zeros if none identified itself. */
  uint8_t device_id[HF_DEVICE_ID_BYTES];
  /* 1 if the device proved that it is the enrolled one. An acceptance is always authenticated; another status that is not may
   * come from anybody. */
  uint32_t is_authenticated;
  /* 1 if the device had accepted the request before and did not act again; the status is the earlier outcome. */
  uint32_t is_repetition;
  /* The factors that the command lacks: the sum of 1 (integrity), 2 (device), 4 (one-time password), 8 (seal). */
  uint32_t missing_factors;
  /* The time after which the device checks the next code, in seconds; 0 if it does not wait. */
  uint32_t retry_after_seconds;
  /* The times of the measurement, of connecting, of computing, and until the verdict, in microseconds. */
  uint64_t measure_microseconds, connect_microseconds, round_microseconds, device_microseconds;
} hf_outcome_t;

/* A transport of the caller's: anything that carries whole messages of 1 to HF_MESSAGE_BYTES, in order. */
typedef struct hf_channel {
  /* Receives one message into `message`, which has *length bytes, and sets *length. It waits at most `milliseconds`. Returns 0,
   * HF_ERROR_TIMEOUT, or any other value below 0 if the channel has ended. */
  int (*receive)(void *context, uint8_t *message, size_t *length, uint32_t milliseconds);
  /* Sends one message within `milliseconds`. Returns 0, HF_ERROR_TIMEOUT, or any other value below 0. */
  int (*send)(void *context, const uint8_t *message, size_t length, uint32_t milliseconds);
  /* Makes receive and send return soon; called by hf_prover_cancel, on its thread. NULL if that is not possible: a cancelled
   * proof then ends when receive or send returns. */
  void (*end)(void *context);
  void *context;
} hf_channel_t;

/* Opens a prover. Nothing is read or written yet.
 *
 * - state: the path of the state folder, which the first enrolment creates.
 * - keys: the keys of the app's releases; NULL for the default key that everybody knows, which protects nothing: a program with
 *   it says so on standard error when it enrols and proves.
 *
 * Returns 0, or HF_ERROR_ARGUMENT. */
int hf_prover_open(const char *state, const hf_proof_keys_t *keys, hf_prover_t **prover);
void hf_prover_close(hf_prover_t *prover);

/* Measures the app and its host, and begins an enrolment: writes the evidence for the attestation service. Existing enrolments
 * stay as they are. Anyone who reads the evidence knows the measurements: carry it only over a confidential connection, and do not
 * store it.
 *
 * - device_id: the device, HF_DEVICE_ID_BYTES; NULL for the one that hf_prover_accept names.
 * - subject: the name that the app claims, 1 to 64 bytes; NULL for no claim.
 * - version: the version that it claims, 3 numbers; NULL for no claim.
 * - flags: any of HF_REPLACE if a baseline that waits for its token may be lost, HF_KNOWN_CODE if the enrolment permits known
 *   code, HF_TREE_DIGESTS if it demands tree digests; otherwise 0. A service may refuse evidence that permits known code.
 * - evidence: HF_EVIDENCE_BYTES.
 *
 * Returns 0; HF_ERROR_ARGUMENT, _BUFFER, _ENROLLED, _MEASUREMENT, _CRYPTOGRAPHY, or an error of the folder. */
int hf_prover_begin(hf_prover_t *prover, const uint8_t *device_id, const char *subject, const uint64_t *version,
                    uint32_t flags, uint8_t *evidence, size_t *length);

/* Completes an enrolment with the token that the backend issued for the evidence. An enrolment that is replaced stays valid
 * until the new one is complete.
 *
 * - descriptor: the device's description from its owner, JSON as `holdfast device show --json` prints it.
 * - token: 1 to 3072 bytes; or the whole answer of an online service to POST /v1/tokens, JSON of at most 65536 bytes, which may
 *   also have the issuer's report and its terms. The token of the device's enrolment is accepted again, and changes nothing: after
 *   an error, the call can be repeated.
 * - report: the issuer's report on the token, a JSON object as `holdfast issue --json` prints it in `token`; NULL if there is
 *   none, or the answer has it. It tells hf_prover_status when the token expires, and is not authenticated.
 * - flags: HF_REPLACE if the device may be enrolled already; otherwise 0.
 *
 * Returns 0; HF_ERROR_ARGUMENT (also for a descriptor or report that is none), _ENROLLED, _NO_BASELINE, or an error of the
 * folder. */
int hf_prover_accept(hf_prover_t *prover, const char *descriptor, const uint8_t *token, size_t token_length,
                     const char *report, uint32_t flags);

/* Measures the app and its host, connects to a device, proves to it, and has it carry out a request.
 *
 * - endpoint: the device's address, such as unix:/run/lock.sock; see docs/operating.md.
 * - options: NULL for any enrolled device within 30 seconds.
 * - result: what the device's machine answered; HF_RESULT_BYTES, which is checked before anything is sent. Both NULL if it is
 *   not wanted. Empty unless the verdict is authenticated.
 * - outcome: written if there is a verdict; NULL if it is not wanted.
 *
 * Returns the device's hf_status: 0 if and only if the device accepted the request and proved its identity. Below 0, there is
 * no verdict; after HF_ERROR_CANCELLED, _CONNECTION, _TIMEOUT, _PROTOCOL and _IMPOSTOR, the request may have been carried out if
 * it was sent. Also HF_ERROR_ARGUMENT, _BUFFER, _NOT_ENROLLED, _ANOTHER_DEVICE, _MEASUREMENT, _CRYPTOGRAPHY, and the errors of
 * the folder. */
int hf_prover_prove(hf_prover_t *prover, const char *endpoint, const hf_request_t *request,
                    const hf_proof_options_t *options, uint8_t *result, size_t *length, hf_outcome_t *outcome);

/* The same over a transport of the caller's that is connected, and on which nothing has been received yet. The callbacks are
 * called on this thread, except `end`. */
int hf_prover_prove_over(hf_prover_t *prover, const hf_channel_t *channel, const hf_request_t *request,
                         const hf_proof_options_t *options, uint8_t *result, size_t *length, hf_outcome_t *outcome);

/* Ends every proof of the prover that is running, from any other thread: each returns HF_ERROR_CANCELLED. Later ones are not
 * affected. */
int hf_prover_cancel(hf_prover_t *prover);

/* Proves to an enrolled device, by an HMAC over a nonce that the app chose, that the app and its host are unchanged: for a
 * compatibility round. Everything is measured again, or known unchanged.
 *
 * - device_id: an enrolled device, HF_DEVICE_ID_BYTES.
 * - nonce: HF_NONCE_BYTES, never used before; the top bit of the first byte must be clear.
 * - proof: HF_PROOF_BYTES.
 *
 * Returns 0; HF_ERROR_ARGUMENT, _BUFFER, _NOT_ENROLLED, _MEASUREMENT, _CRYPTOGRAPHY, or an error of the folder. */
int hf_prover_integrity_proof(hf_prover_t *prover, const uint8_t *device_id, const uint8_t *nonce, size_t nonce_length,
                              uint8_t *proof, size_t *length);

/* The same for the host only, whatever the state of the app. */
int hf_prover_device_proof(hf_prover_t *prover, const uint8_t *device_id, const uint8_t *nonce, size_t nonce_length,
                           uint8_t *proof, size_t *length);

/* Compares the app and its host with the baselines of the enrolments: an object
 * {"devices": [{"device_id", "changed": [id], "components": [{"id", "scope", "state"}], "findings": [name]}]}, where a state is
 * unchanged, changed or unmeasured. It contains no digests.
 *
 * - device_id: the only device, HF_DEVICE_ID_BYTES; NULL for all.
 *
 * Returns 0; HF_ERROR_ARGUMENT, _BUFFER, _NOT_ENROLLED, _MEASUREMENT, or an error of the folder. */
int hf_prover_explain(hf_prover_t *prover, const uint8_t *device_id, char *json, size_t *length);

/* Writes the state of each enrolment, without a connection: an object {"devices": [{"device_id", "state", "seconds_left", …}]},
 * where a state is valid, expired, unknown, damaged or unreadable, and the other members are the issuer's report.
 *
 * Parameters and results are those of hf_prover_explain. */
int hf_prover_status(hf_prover_t *prover, const uint8_t *device_id, char *json, size_t *length);

/* ----------------------------------------------------------------------------------------------------------- Authenticator */

/* A person's authenticator: the secrets shared with devices, in a folder (also that of `holdfast otp`) or in a store of the
 * caller's. */
typedef struct hf_authenticator hf_authenticator_t;

/* A place of the caller's for the whole state of an authenticator: a file, a key ring, a row of a database. Its functions
 * are called on the thread that called the library, and by several threads at once if several call it. docs/authenticator.md
 * describes the bytes: they contain the secrets, masked by what protects each. They must not call the library with an
 * authenticator in this store. */
typedef struct hf_store {
  /* Writes the bytes that were stored last to `state`, which has *length bytes (HF_STATE_BYTES), and sets *length; 0 if
   * nothing was stored yet. Returns 0, or an hf_error. */
  int (*load)(void *context, uint8_t *state, size_t *length);
  /* Replaces the stored bytes, which must still be `old` (nothing if old_length is 0), by `state`, in one step even if the
   * power is cut. When it returns 0, they are durable, and the old ones are gone. Returns HF_ERROR_BUSY if another process
   * has changed them, or another hf_error. */
  int (*replace)(void *context, const uint8_t *old, size_t old_length, const uint8_t *state, size_t length);
  void *context;
} hf_store_t;

/* The way to a device: its address, or a connection of the caller's that is open, and on which nothing has been received
 * yet. One of the first two is NULL. */
typedef struct hf_connection {
  /* Such as unix:/run/lock.sock; see docs/operating.md. */
  const char *endpoint;
  const hf_channel_t *channel;
  /* The device that must answer, HF_DEVICE_ID_BYTES; NULL for any that fits. An activation is bound to its device by the
   * code. */
  const uint8_t *device_id;
  /* The time for the whole step, in milliseconds, 1 to 3,600,000; 0 for 30,000. */
  uint32_t timeout_milliseconds;
} hf_connection_t;

/* What a record's secret needs. NULL in place of it: nothing. */
typedef struct hf_protection {
  /* A PIN, 4 to 6 digits; NULL for none. */
  const uint8_t *pin;
  size_t pin_length;
  /* A key, 16 to 1024 bytes, instead of the PIN or in addition to it; NULL for none. */
  const uint8_t *key;
  size_t key_length;
  /* 1 if this host's device.secret is needed, which makes a copy of the state useless on another host; otherwise 0. */
  uint32_t binds_host;
} hf_protection_t;

/* What a device says of a user. */
typedef struct hf_synchronised {
  /* The device that answered. */
  uint8_t device_id[HF_DEVICE_ID_BYTES];
  /* 1 if the user has one-time passwords, and seals. */
  uint32_t has_otp, has_seal;
  /* The first counter or time step that the device accepts in each; 0 without. */
  uint64_t otp_next, seal_next;
  /* The difference of the device's clock from this one, in seconds; positive if it is ahead. */
  int64_t clock_offset_seconds;
} hf_synchronised_t;

/* The record to use, and what unlocks it. Zeros select the only record, without PIN or key. */
typedef struct hf_record {
  /* The user, 1 to 32 bytes; NULL if there is only one. */
  const char *user;
  /* The index of the user's record, 1 to 8; 0 if only one fits. */
  uint32_t index;
  /* The PIN, 4 to 6 digits, or the key that another authenticator provides, 16 to 1024 bytes; NULL if the record has neither.
   * A wrong one gives a wrong code, which only the device can notice. A record that needs both is refused (HF_ERROR_CODE). One
   * that is bound to its host also needs the host's device.secret, which is read where the host keeps it. */
  const uint8_t *secret;
  size_t secret_length;
} hf_record_t;

/* Opens an authenticator's folder, and keeps its file open.
 *
 * Returns 0; HF_ERROR_ARGUMENT, or an error of the folder. */
int hf_authenticator_open(const char *folder, hf_authenticator_t **authenticator);
void hf_authenticator_close(hf_authenticator_t *authenticator);

/* The same, after creating the folder if necessary: an authenticator without records, for a first activation. */
int hf_authenticator_create(const char *folder, hf_authenticator_t **authenticator);

/* Opens an authenticator in a store of the caller's. An empty one has no records.
 *
 * - store: copied; its context must stay valid until the authenticator is closed.
 * - state_id, change_count: the last values of hf_authenticator_stamp that the caller knows of; an older state or another
 *   one is refused (HF_ERROR_DAMAGED, HF_ERROR_KIND). NULL and 0 for none: then older bytes are noticed only after newer
 *   ones were seen.
 *
 * Returns 0; HF_ERROR_ARGUMENT, _DAMAGED, _KIND, _VERSION, _SYSTEM, or what `load` returned. */
int hf_authenticator_open_store(const hf_store_t *store, const uint8_t *state_id, uint64_t change_count,
                                hf_authenticator_t **authenticator);

/* Writes the identity of the state in the caller's store, HF_STATE_ID_BYTES, and the number of its changes so far. A caller
 * that compares them finds out whether a call has changed the state; zeros for an empty store, and for a folder.
 *
 * Returns 0; HF_ERROR_ARGUMENT, or an error of the store. */
int hf_authenticator_stamp(hf_authenticator_t *authenticator, uint8_t *state_id, uint64_t *change_count);

/* Writes the records without their secrets, as `holdfast otp list --json` prints them: an object {"records": [{"user", "index",
 * "purpose", "device_id", "method", "requires", "confirmed", …}]}.
 *
 * - user: the only user; NULL for all.
 *
 * Returns 0; HF_ERROR_ARGUMENT, _BUFFER, or an error of the folder. */
int hf_authenticator_records(hf_authenticator_t *authenticator, const char *user, char *json, size_t *length);

/* Becomes a user of a device, with a code from its owner (`holdfast device user add`). Afterwards, the device and the
 * authenticator share fresh secrets.
 *
 * - code: as the owner's program printed it; lower case, spaces and missing hyphens do not matter. It is used up when the
 *   device confirms.
 * - protection: what the new secrets need from then on; NULL for nothing. The host's device.secret is created if necessary.
 * - flags: HF_REPLACE if records of the same user may be replaced; otherwise 0.
 * - user: the user's name, HF_USER_BYTES, which is checked before anything is sent.
 * - device_id: the device, HF_DEVICE_ID_BYTES; NULL if it is not wanted.
 *
 * Returns 0, or the device's hf_status if it denies; HF_ERROR_ARGUMENT (also for a mistyped code), _BUFFER, _PIN,
 * _OWNER_CODE, _EXISTS, _UNKNOWN_END, _CODE, _CONNECTION, _TIMEOUT, _PROTOCOL, _CRYPTOGRAPHY, or an error of the folder. */
int hf_authenticator_activate(hf_authenticator_t *authenticator, const hf_connection_t *connection, const char *code,
                              const hf_protection_t *protection, uint32_t flags, char *user, size_t *length,
                              uint8_t *device_id);

/* Ends a lockout at a device, with a code from its owner (`holdfast device user unlock`). It needs no authenticator.
 *
 * Returns 0, or the device's hf_status if it denies; HF_ERROR_ARGUMENT, _OWNER_CODE, _CONNECTION, _TIMEOUT, _PROTOCOL,
 * _CRYPTOGRAPHY. */
int hf_authenticator_unlock(const hf_connection_t *connection, const char *code);

/* Takes over a device's time and counters, after the app has proved itself. An activation whose end was lost is completed,
 * and a change of the PIN is confirmed if the device has accepted a code from after it. hf_prover_cancel ends it.
 *
 * - user: NULL for the only one.
 * - said: what the device said; NULL if it is not wanted.
 *
 * Returns 0, or the device's hf_status if it denies; HF_ERROR_ARGUMENT, _USER, _RECORD, _ANOTHER_DEVICE, _NOT_ENROLLED,
 * _MEASUREMENT, _CONNECTION, _TIMEOUT, _PROTOCOL, _IMPOSTOR, _CANCELLED, _SYSTEM without a clock, or an error of a folder. */
int hf_authenticator_synchronise(hf_authenticator_t *authenticator, hf_prover_t *prover, const char *user,
                                 const hf_connection_t *connection, hf_synchronised_t *said);

/* Has a device prove that it knows the user's host secret, before a person types a code into it. hf_prover_cancel ends it.
 *
 * - user: NULL for the only one.
 * - challenge: the device's own challenge, for a seal that needs one; HF_DEVICE_CHALLENGE_BYTES, checked before anything is
 *   sent. Both NULL if it is not wanted.
 *
 * Returns 0 if the device has proved itself, HF_ERROR_IMPOSTOR if its answer is wrong; otherwise as
 * hf_authenticator_synchronise. */
int hf_authenticator_check_host(hf_authenticator_t *authenticator, hf_prover_t *prover, const char *user,
                                const hf_connection_t *connection, char *challenge, size_t *length);

/* Changes what protects a record's secret, and those of all records that share its protection. It needs no device.
 *
 * A mistyped old PIN cannot be noticed, and would destroy the secret. Therefore `show` is given an undo code first, 34
 * characters, which restores the old state until hf_authenticator_confirm, or until the device has accepted a code and
 * hf_authenticator_synchronise has heard of it.
 *
 * - record: its user and index; its secret must be NULL. NULL for the only record for passwords, or without one for seals.
 * - old: all that the record needs now; NULL for nothing.
 * - protection: what it needs from then on; NULL for nothing. If a PIN comes, goes or changes, everything that stays is
 *   repeated.
 * - show: shows the undo code to the person, and returns 0 if they have it; anything else, and nothing changes.
 *
 * Returns 0; HF_ERROR_ARGUMENT, _CANCELLED if the undo code was not shown, _PIN, _RECORD, _CODE if `old` is not what the
 * record needs, _CHANGE if the last change is open, or an error of the folder. HF_ERROR_CODE may also mean that a change was
 * interrupted, and hf_authenticator_undo then restores the secret. */
int hf_authenticator_change(hf_authenticator_t *authenticator, const hf_record_t *record, const hf_protection_t *old,
                            const hf_protection_t *protection, int (*show)(void *context, const char *undo_code),
                            void *context);

/* Restores a user's secrets from before the last change, with the undo code that was shown.
 *
 * Returns 0; HF_ERROR_ARGUMENT (also for a mistyped undo code), _CHANGE, or an error of the folder. */
int hf_authenticator_undo(hf_authenticator_t *authenticator, const char *user, const char *undo_code);

/* Confirms that the new protection works, and forgets the old state.
 *
 * - index: the record whose code was accepted, 1 to 8; 0 for all of the user.
 *
 * Returns 0; HF_ERROR_ARGUMENT, _RECORD, _CHANGE if there is nothing to confirm, or an error of the folder. */
int hf_authenticator_confirm(hf_authenticator_t *authenticator, const char *user, uint32_t index);

/* Makes the next one-time password, after recording durably that it is used.
 *
 * - record: NULL for the only one, without PIN or key.
 * - question: the question of an OCRA account; otherwise NULL.
 * - code: HF_CODE_BYTES, which is checked before the password is used up.
 * - seconds: how long it is valid, 0 if it does not depend on the time; NULL if that is not wanted.
 *
 * Returns 0; HF_ERROR_ARGUMENT, _BUFFER, _RECORD, _CODE, _CRYPTOGRAPHY, or an error of the folder. */
int hf_authenticator_password(hf_authenticator_t *authenticator, const hf_record_t *record, const char *question,
                              char *code, size_t *length, uint32_t *seconds);

/* Makes a seal: a code that is valid only for this command with these parameters. Show them to the person first. The texts are
 * normalised (Unicode NFC); send them to the device in that form.
 *
 * - request: the command, and parameters of at most 16 characters unless the record allows more; its codes must be NULL.
 * - device_challenge: the device's challenge, 16 hexadecimal digits, for records whose seals need one; otherwise NULL.
 *
 * Other parameters and results are those of hf_authenticator_password. */
int hf_authenticator_seal(hf_authenticator_t *authenticator, const hf_record_t *record, const hf_request_t *request,
                          const char *device_challenge, char *code, size_t *length, uint32_t *seconds);

/* ------------------------------------------------------------------------------------------------------------------ Device */

/* A device (the verifier) in its folder, which `holdfast device init` makes. */
typedef struct hf_device hf_device_t;

/* One connection between a prover and the device, whose messages the caller carries. */
typedef struct hf_session hf_session_t;

/* A command that the device has accepted and recorded durably. Texts are UTF-8. */
typedef struct hf_command {
  /* The command's name. */
  const char *name;
  /* The first parameter_count are texts, the others NULL. */
  const char *parameters[HF_PARAMETER_COUNT];
  size_t parameter_count;
  /* The user whose codes the command needed; NULL if it needed none. */
  const char *user;
  /* The app that the token names; may be empty. */
  const char *subject;
  /* The number of the round's entry in the audit log; 0 if there is none. */
  uint64_t sequence;
} hf_command_t;

/* The machine that accepted commands move. */
typedef struct hf_actuator {
  /* Carries out a command, once: a command is never repeated, not even after a crash. It is called on the thread that receives
   * the message or serves the connection, and by one thread at a time; others wait, so it should bound its own time. It must not
   * call the session that called it.
   *
   * It writes its answer, at most HF_RESULT_BYTES, to `result`, and sets *length, which is HF_RESULT_BYTES before. It returns 0
   * if the command was carried out, HF_COMMAND_REFUSED if it knows no such command, and anything else if it failed; then the
   * prover gets HF_INTERNAL. A command with a NUL in a text is never passed to it, and fails. */
  int (*perform)(void *context, const hf_command_t *command, uint8_t *result, size_t *length);
  void *context;
  /* The names of the commands that it carries out; others are not passed to it. NULL if it is asked for every command. */
  const char *const *commands;
  /* 1 to 256; 0 with NULL. */
  size_t command_count;
} hf_actuator_t;

/* What the caller does with the verdict of hf_session_receive. */
typedef struct hf_round {
  /* 1 if the prover has proved that it holds a token's keys or an owner's code. */
  uint32_t is_peer_authenticated;
  /* The time to wait before the verdict is sent, in milliseconds; 0 unless proofs keep failing. */
  uint32_t delay_milliseconds;
  /* 1 if the connection must be closed after the verdict is sent. */
  uint32_t closes_connection;
  /* 1 if the next message belongs to this round: call hf_session_receive again, without another challenge. */
  uint32_t awaits_confirmation;
} hf_round_t;

/* Opens a device, and holds its folder against other processes until it is closed.
 *
 * - folder: the path of the device's folder.
 * - actuator: copied with its names; its context must stay valid until the device and its sessions are closed.
 *
 * Returns 0; HF_ERROR_ARGUMENT, _BUSY if another process serves the folder, _CRYPTOGRAPHY, or an error of the folder. */
int hf_device_open(const char *folder, const hf_actuator_t *actuator, hf_device_t **device);
void hf_device_close(hf_device_t *device);

/* Writes the device's public description, a JSON object, with which provers enrol.
 *
 * Returns 0, HF_ERROR_ARGUMENT or HF_ERROR_BUFFER. */
int hf_device_descriptor(const hf_device_t *device, char *json, size_t *length);

/* Serves provers at endpoints such as unix:/run/lock.sock, with a thread for each connection, until hf_device_stop. A device is
 * either served, once, or has sessions. It raises this process's limit of descriptors where necessary.
 *
 * Returns 0 after hf_device_stop; HF_ERROR_ARGUMENT for an endpoint that is none, _ORDER if it was served before or has sessions,
 * _CONNECTION if it cannot listen or has lost an endpoint, _PERMISSION, _SYSTEM, or an error of the folder. */
int hf_device_serve(hf_device_t *device, const char *const *endpoints, size_t count);

/* Ends hf_device_serve, from any thread, any number of times, also before it begins.
 *
 * Returns 0 or HF_ERROR_ARGUMENT. */
int hf_device_stop(hf_device_t *device);

/* Begins a session for one connection.
 *
 * Returns 0; HF_ERROR_ARGUMENT, _ORDER if the device is or was served, _SYSTEM if the ledger cannot be written, _CRYPTOGRAPHY. */
int hf_session_open(hf_device_t *device, hf_session_t **session);
void hf_session_close(hf_session_t *session);

/* Begins a round: writes the challenge to send, HF_CHALLENGE_BYTES. It is good for one answer, and replaces an earlier one.
 *
 * Returns 0; HF_ERROR_ARGUMENT, _BUFFER, _BUSY, _ORDER after a verdict that closes the connection; after _SYSTEM (the ledger
 * cannot be read) and _CRYPTOGRAPHY, close the connection. */
int hf_session_challenge(hf_session_t *session, uint8_t *message, size_t *length);

/* Answers the prover's message. An accepted command has been recorded and carried out when it returns.
 *
 * - message: any number of bytes; none, and more than HF_MESSAGE_BYTES, are malformed.
 * - waited_milliseconds: the time from sending the challenge to the first byte of the message.
 * - verdict: the verdict to send, HF_VERDICT_BYTES, which is checked before the message is looked at.
 * - round: what to do with it; not NULL.
 *
 * Returns the hf_status of the verdict; below 0 HF_ERROR_ARGUMENT, _BUFFER, _BUSY, or _ORDER without a challenge before it. */
int hf_session_receive(hf_session_t *session, const uint8_t *message, size_t message_length,
                       uint64_t waited_milliseconds, uint8_t *verdict, size_t *length, hf_round_t *round);

/* Writes the verdict on a message that never came (HF_CHALLENGE_EXPIRED, after 30 seconds), that was not whole (HF_MALFORMED,
 * after 10 seconds from its first byte; then close the connection), or for which there is no room (HF_BUSY).
 *
 * Returns 0; HF_ERROR_ARGUMENT (also for another status), _BUFFER, _BUSY. */
int hf_session_refuse(hf_session_t *session, int status, uint8_t *verdict, size_t *length);

#ifdef __cplusplus
}
#endif

#endif
