import Glibc
import HoldfastAuthenticator
import HoldfastFormats
import HoldfastLinux
import HoldfastStorage
import HoldfastVectors

/// An unsuccessful end of a verb: the exit status, one sentence, and a hint for the user.
///
/// Only this file and `Failure+….swift` contain such texts. They name files and numbers, never contents.
package struct Failure: Error {
  package let status: ExitStatus
  /// The kind of the failure, for programs. Its number and identifier stay the same.
  package let code: FailureCode
  package let message: String
  package let hint: String?
  /// Whether a printed result already states the failure. In that case, `--json` prints no other object.
  package private(set) var hasResult = false

  package init(_ status: ExitStatus, _ message: String, hint: String? = nil) {
    (self.status, code, self.message, self.hint) = (status, FailureCode(status), message, hint)
  }

  /// Creates a failure of a kind that programs may want to know. The table has its exit status.
  package init(code: FailureCode, _ message: String, hint: String? = nil) {
    (status, self.code, self.message, self.hint) = (code.row.status, code, message, hint)
  }

  /// Creates the failure for a secret in the arguments, which every process of this host can read. The message does not repeat
  /// it.
  package init(secretGivenTo option: String, hint: String) {
    self.init(
      .usage, "\(option) does not take the secret itself, because others could read it in the process list", hint: hint)
  }

  /// The failure in the output of `--json`.
  package var json: JSONValue {
    .object(
      [("error", .string(message))] + (hint.map { [("hint", .string($0))] } ?? [])
        + [
          ("exit", .integer(UInt64(status.rawValue))), ("code", .string(code.row.identifier)),
          ("number", .integer(UInt64(code.rawValue))),
        ])
  }

  /// The failure for SIGINT or SIGTERM before the end of the operation.
  package static var interrupted: Failure { Failure(.unavailable, "the command was interrupted before it finished") }

  /// Returns the same failure for a verb that has already printed its result.
  package func afterResult() -> Failure {
    var failure = self
    failure.hasResult = true
    return failure
  }
}

extension Failure {
  /// Creates the failure for a file of the user or of a state folder that could not be used.
  package init(_ error: FileError, hint: String? = nil) {
    let path = error.path
    switch error.kind {
    case .notFound:
      self.init(
        code: .fileNotFound, "\(path) does not exist", hint: hint ?? "is the name right, and is it in this folder?")
    case .noPermission:
      self.init(code: .fileNoPermission, "no permission for \(path)", hint: "run as the user that owns it")
    case .readOnly:
      self.init(code: .fileReadOnly, "\(path) is on a read-only file system", hint: hint ?? Self.whenReadOnly)
    case .isDirectory:
      self.init(code: .fileIsFolder, "\(path) is a folder, not a file", hint: hint)
    case .notDirectory:
      self.init(code: .fileNotFolder, "\(path) is not a folder", hint: hint)
    case .anotherKind(let kind):
      self.init(
        code: .fileAnotherKind, "\(path) is \(kind.text)'s folder, which this command does not accept",
        hint: "use another folder")
    case .notRegular:
      self.init(code: .fileNotRegular, "\(path) is not a regular file", hint: hint)
    case .symbolicLink:
      self.init(code: .fileSymbolicLink, "\(path) is a symbolic link, which is not followed here", hint: hint)
    case .tooLarge:
      self.init(code: .fileTooLarge, "\(path) is too large", hint: hint)
    case .tooOpen(let mode):
      self.init(
        code: .fileTooOpen, "\(path) has mode \(octal(mode)), so others could use it",
        hint: "chmod go= \(path.shellWord)")
    case .wrongOwner:
      self.init(code: .fileWrongOwner, "\(path) belongs to another user", hint: "run as the user that owns it")
    case .exists:
      self.init(code: .fileExists, "\(path) already exists; nothing was overwritten", hint: hint)
    case .locked:
      self.init(code: .fileLocked, "\(path) is in use by another process", hint: hint)
    case .diskFull:
      self.init(code: .diskFull, "the disk is full; \(path) was not written", hint: "free some space and try again")
    case .other(ENAMETOOLONG):
      self.init(.malformed, "\(path): the name is too long", hint: hint)
    case .other(let number):
      self.init(.fault, "\(path): system error \(number)", hint: hint)
    }
  }

  /// Creates the failure for a database that could not be read or written. `restore` is the hint for one that is lost.
  package init(_ error: DatabaseError, path: String, restore: String) {
    switch error {
    case .corrupt, .foreign, .wrongType, .constraint:
      self.init(.malformed, "\(path) is damaged, or is another file", hint: restore)
    case .newerVersion: self.init(.malformed, "\(path) was written by a later version", hint: "use that version")
    case .cannotOpen:
      self.init(.malformed, "\(path) is missing, or is not a regular file that can be opened", hint: restore)
    case .permission:
      self.init(
        .noPermission, "\(path) belongs to another user, or is open to others",
        hint: "chmod 600 \(path.shellWord), as the user that owns it")
    case .readOnly: self.init(.fault, "\(path) or its file system is read-only", hint: Self.whenReadOnly)
    case .full: self.init(FileError(.diskFull, at: path))
    case .busy: self.init(.unavailable, "\(path) is in use by another process", hint: "try again")
    case .outOfRange, .misuse, .other: self.init(.fault, "\(path) could not be read or written")
    }
  }

  /// Creates the failure for a file or folder that could not be created, because of its parent folder or of an existing file.
  package init(making error: FileError) {
    switch error.kind {
    case .notFound:
      self.init(
        .malformed, "the folder that should contain \(error.path) does not exist",
        hint: "create it first, or check the name")
    case .notDirectory, .symbolicLink, .notRegular, .isDirectory:
      self.init(error, hint: "use another name")
    default: self.init(error)
    }
  }

  /// Creates the failure for a result that standard output did not accept; nil for `errno` 0.
  package init?(lostResult number: Int32) {
    switch number {
    case 0: return nil
    case EPIPE: self.init(.fault, "the reader of standard output stopped before the end")
    case ENOSPC, EDQUOT:
      self.init(
        .fault, "the disk is full; standard output was not written",
        hint: "free some space and display the result again")
    case EBADF:
      self.init(
        .fault, "standard output is closed, so the result is lost", hint: "to discard the result, use >/dev/null")
    default: self.init(.fault, "standard output could not be written: system error \(number)")
    }
  }

  package static let whenReadOnly = "make it writable, or use another place"
}

extension FolderKind {
  /// The kind with its article.
  fileprivate var text: String {
    switch self {
    case .device: "a device"
    case .service: "a service"
    case .prover: "a prover"
    case .authenticator: "an authenticator"
    case .vault: "a vault"
    }
  }
}

private func octal(_ mode: UInt32) -> String { "0" + String(mode, radix: 8) }

extension Failure {
  /// Creates the failure for accounts that could not be read from a file. It never names the file's contents.
  package init(_ fault: ImportFault, in name: String) {
    switch fault {
    case .malformed:
      self.init(.malformed, "\(name) is not well-formed", hint: "is --format the right one?")
    case .noAccount: self.init(.malformed, "\(name) contains no account")
    case .tooLarge: self.init(.malformed, "\(name) is too large, or contains too many accounts")
    case .accountNeeded: self.init(.usage, "a bare secret does not name its user", hint: "add --user NAME")
    case .severalAccounts:
      self.init(.usage, "\(name) contains several accounts", hint: "--user is for a single account: leave it out")
    case .invalidSecret: self.init(.malformed, "\(name): a secret is missing, empty, or not in its alphabet")
    case .secretTooLong:
      self.init(.malformed, "\(name): a secret has more than \(Credential.maximumSecretByteCount) bytes")
    case .invalidName: self.init(.malformed, "\(name): a name is missing, or has control characters")
    case .userTooLong:
      self.init(
        .malformed, "\(name): a user's name has more than \(Credential.maximumUserByteCount) bytes",
        hint: "use another one: --user NAME")
    case .issuerTooLong:
      self.init(.malformed, "\(name): an issuer has more than \(Credential.maximumIssuerByteCount) bytes")
    case .repeatedParameter: self.init(.malformed, "\(name): a parameter occurs twice")
    case .invalidCounter: self.init(.malformed, "\(name): a counter is missing, or is not a number below 2^53")
    case .invalidDigits: self.init(.malformed, "\(name): the number of digits is not from 4 to 10")
    case .invalidPeriod: self.init(.malformed, "\(name): a period is not from 1 to 86400 seconds")
    default: self.init(unreadable: fault, in: name)
    }
  }

  private init(unreadable fault: ImportFault, in name: String) {
    switch fault {
    case .unsupportedAlgorithm: self.init(.malformed, "\(name): it needs an algorithm that is not supported")
    case .unsupportedFeature: self.init(.malformed, "\(name): it needs a feature that is not supported")
    case .missingPart(let number, let count):
      self.init(.malformed, "part \(number) of \(count) of the export is missing", hint: "put all parts into the file")
    case .repeatedPart(let number): self.init(.malformed, "part \(number) of the export occurs twice")
    case .foreignPart(let line): self.init(.malformed, "the URI on line \(line) belongs to another export")
    case .keyNeeded:
      self.init(.usage, "\(name) is encrypted with a key", hint: "add --container-key-file FILE")
    case .passphraseNeeded:
      self.init(.usage, "\(name) is encrypted with a passphrase", hint: "add --container-passphrase-file FILE")
    case .wrongKey: self.init(.denied, "the key or passphrase does not decrypt \(name), or the file was changed")
    case .missingMAC:
      self.init(.malformed, "\(name): an encrypted value has no MAC, so anyone could have changed it")
    case .signatureNotChecked:
      self.init(
        .denied, "\(name) is signed, but this program cannot check the signature",
        hint: "if you know where the file comes from, add --accept-unchecked-signature")
    case .policyNotEnforced:
      self.init(
        .denied, "\(name) limits how a key may be used, but this program does not enforce that",
        hint: "to import it anyway, add --accept-unenforced-policy")
    default: self.init(.malformed, "\(name) cannot be read")
    }
  }

  /// Creates the failure for an account that cannot be written as a URI.
  package init(_ fault: ExportFault) {
    switch fault {
    case .unsupportedMethod: self.init(.denied, "an otpauth:// URI cannot hold an OCRA account")
    case .ambiguousName:
      self.init(.denied, "an otpauth:// URI cannot hold a name with a colon, or one that begins with a space")
    }
  }

  /// Creates the failure for a fault in a file of test vectors.
  package init(_ fault: VectorFault) {
    let test = fault.testIDs.isEmpty ? "" : ", tcId \(fault.testIDText)"
    let location = fault.location.isEmpty ? "" : ", \(fault.location)"
    self.init(.malformed, "\(fault.file)\(test)\(location): \(Self.reason(fault.kind))")
  }

  private static func reason(_ kind: VectorFault.Kind) -> String {
    switch kind {
    case .notJSON: "it is not strict JSON"
    case .tooLong: "it is too long"
    case .missing: "it is missing"
    case .wrongType: "it has the wrong JSON type"
    case .notHexadecimal: "it is not an even number of hex digits"
    case .wrongByteCount(let expected, let found): "it has \(found) bytes instead of \(expected)"
    case .wrongValue: "it cannot have that value"
    case .wrongNumberOfTests(let stated, let found): "numberOfTests is \(stated), but there are \(found)"
    case .noTests: "there is no test to replay"
    case .duplicateTestID(let id): "tcId \(id) occurs twice"
    case .unknownResult: "the result is neither valid, invalid nor acceptable"
    case .unknownSchema: "it is neither a schema of Holdfast nor one of Wycheproof"
    case .unknownType: "the schema has no such type of group"
    case .keysDiffer: "the key does not belong to the private key or the key id next to it"
    }
  }
}
