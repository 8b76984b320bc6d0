#if Service
import ArgumentParser
import Glibc
import HoldfastDatabase
import HoldfastFormats
import HoldfastLinux
import HoldfastService

/// An unsuccessful end of a verb: the exit status, one sentence, and a hint.
struct ServiceFailure: Error {
  /// The exit statuses, which are those of `holdfast`.
  enum Status: Int32 {
    case refused = 1
    case malformed = 2
    case usage = 64
    case unavailable = 69
    case fault = 70
    case noPermission = 77
  }

  let status: Status
  let message: String
  var hint: String?

  init(_ status: Status, _ message: String, hint: String? = nil) {
    (self.status, self.message, self.hint) = (status, message, hint)
  }
}

extension ServiceFailure {
  init(_ fault: FleetFault) {
    switch fault {
    case .notCreated: self.init(.malformed, "there is no service in this database", hint: "holdfast-service init")
    case .alreadyCreated: self.init(.malformed, "there is a service in this database already; nothing was changed")
    case .wrongServiceKey:
      self.init(.malformed, "service.key is not the key with which the keys in this database are encrypted")
    case .corrupt: self.init(.fault, "the database contains a value that the service does not write")
    case .noClock: self.init(.fault, "there is no clock, or it was set just now")
    case .cryptography: self.init(.fault, "the cryptographic library or the random source failed")
    case .database(let fault): self.init(fault)
    }
  }

  init(_ fault: SQLFault) {
    switch fault {
    case .unavailable: self.init(.unavailable, "the database does not answer", hint: "is its server running?")
    case .busy, .slow, .conflict: self.init(.unavailable, "the database is too busy; nothing was changed")
    case .full: self.init(.fault, "the database's disk is full; nothing was changed")
    case .readOnly:
      self.init(
        .unavailable, "the database permits only reading; nothing was changed",
        hint: "is this a standby, or a read-only file system?")
    case .permission: self.init(.noPermission, "the database refuses this user")
    case .corrupt: self.init(.fault, "the database is damaged", hint: "restore it from a backup")
    case .foreign: self.init(.malformed, "the database belongs to another application")
    case .newerVersion:
      self.init(.malformed, "a newer version of holdfast-service has used the database", hint: "install that version")
    case .missing: self.init(.malformed, "there is no database", hint: "holdfast-service init")
    case .uncertain:
      self.init(.unavailable, "it is unknown whether the change was made", hint: "look before you repeat it")
    case .notSynchronous:
      self.init(
        .malformed, "the database has several hosts, but its server does not replicate synchronously",
        hint: "set synchronous_standby_names, and synchronous_commit to on")
    case .noStandby:
      self.init(
        .unavailable, "commits wait for a standby that does not answer; nothing was changed",
        hint: "is the standby running?")
    case .olderTimeline: self.init(.malformed, "the database's server is a former primary", hint: "stop it")
    case .constraint, .misuse, .other: self.init(.fault, "the database refused a statement (\(fault))")
    }
  }

  init(_ fault: AdministrationFault) {
    switch fault {
    case .mistake(let mistake): self.init(.usage, mistake.text)
    case .notFound: self.init(.malformed, "there is no such record")
    case .conflict(.tooLong): self.init(.usage, "a text has more bytes than its record can hold")
    case .conflict(.invalidKey): self.init(.malformed, "the descriptor's key is no key of a device, or has another id")
    case .conflict(.severalFilters): self.init(.usage, "tokens can be listed by device, prover or user, not by several")
    case .conflict(.anotherKey):
      self.init(.refused, "the device is registered with another key", hint: "a new device has a new id: device init")
    case .conflict(.anotherEvidenceKey):
      self.init(.refused, "the release is registered with another evidence key")
    case .conflict(.usedInvitation): self.init(.refused, "the invitation was used or revoked already")
    case .conflict(.decidedRequest): self.init(.refused, "the request was decided already, or has expired")
    case .conflict(.existingOperator): self.init(.refused, "there is, or was, an operator of that name")
    case .conflict(.gapInLog):
      self.init(.refused, "entries before this part of the audit log are missing", hint: "send an earlier part first")
    case .conflict(.forkedLog):
      self.init(
        .refused, "this is not the audit log that the service knows: entries were changed, or the device was reset")
    case .conflict(.brokenLog): self.init(.malformed, "these are no entries of an audit log, or not in order")
    case .conflict(.invalidDomain):
      self.init(.usage, "that is no DNS name in lower case", hint: "a pin for every domain has the name '*'")
    case .conflict(.invalidPin):
      self.init(.usage, "that is no pin", hint: "a pin is sha256// and the base64 of 32 bytes, as curl takes it")
    case .conflict(.tooMany):
      self.init(
        .refused,
        """
        there are as many as there may be: 64 domains, 16 pins of a domain, 256 strings, 32 settings, 16 minimum versions of a device or \
        group, 4 keys that a key introduces to one, 256 users of a device to lock or remove; nothing was changed
        """)
    case .conflict(.notShared):
      self.init(
        .refused, "the tokens of this domain are signed with ES256, whose public key is at /.well-known/app-tokens.json"
      )
    case .conflict(.notNewer):
      self.init(.refused, "the number of the rules must be above that of the present ones, which provers may have")
    case .conflict(.anotherManifest):
      self.init(.refused, "the maker's manifest does not name this executable with this name and version")
    case .conflict(.manifestSignature):
      self.init(
        .malformed, "the signature of the manifest is not that of the maker's key",
        hint: "openssl dgst -sha256 -sign maker.key -out release.sig release.json")
    case .conflict(.unsignedDevice):
      self.init(
        .refused, "the policy demands a maker's signature over this device's descriptor",
        hint: "add --signature with what the maker delivered with the device")
    case .conflict(.reservedSubject):
      self.init(.usage, "the name development belongs to apps that run with the development key")
    case .conflict(.lowerVersion):
      self.init(.refused, "the minimum version is higher already, and only rises: devices keep the highest")
    case .conflict(.unapprovedVersion):
      self.init(
        .refused,
        "no approved executable of this app has that version or a later one, so that devices would refuse them all",
        hint: "a minimum version is never lowered; approve the new executable first: image approve")
    case .conflict(.cannotIntroduce):
      self.init(
        .refused, "a key introduces others only once it signs, and not itself",
        hint: "name one that devices trust already: --by; list keys shows them")
    case .conflict(.introducedKey):
      self.init(.refused, "bulletins have introduced that key with other times already, which devices keep")
    case .conflict(.endedKey):
      self.init(
        .refused, "one of the keys ends there, for ever", hint: "list key-orders; introduce another key, by another one"
      )
    case .conflict(.noSuccessor):
      self.init(
        .refused,
        "the service has not introduced the key that signs now to these devices, so that they may trust none afterwards",
        hint: "introduce it first: introduce-key; if they trust it by device trust, say --without-successor")
    case .conflict(.pastTime): self.init(.usage, "that time is over already, or a key would not sign before it")
    case .fleet(let fault): self.init(fault)
    }
  }

  init(_ error: FileError, hint: String? = "holdfast-service init") {
    switch error.kind {
    case .notFound: self.init(.malformed, "\(error.path) does not exist", hint: hint)
    case .diskFull: self.init(.fault, "the disk is full; \(error.path) was not written")
    case .exists: self.init(.malformed, "\(error.path) already exists; nothing was overwritten")
    case .noPermission, .tooOpen, .wrongOwner:
      self.init(.noPermission, "\(error.path) is not only this user's, or this user may not read it")
    default: self.init(.fault, "\(error.path) could not be read or written")
    }
  }
}

/// A verb of `holdfast-service`. It throws only a ``ServiceFailure``.
protocol ServiceVerb: AsyncParsableCommand {
  mutating func perform() async throws(ServiceFailure)
}

extension ServiceVerb {
  mutating func run() async throws {
    do throws(ServiceFailure) {
      guard ProcessHardening.apply() else { throw ServiceFailure(.fault, "the process could not be protected") }
      try await perform()
    } catch {
      Output.note(error.message)
      if let hint = error.hint { Output.note(hint: hint) }
      throw ExitCode(error.status.rawValue)
    }
  }
}

/// The output of a verb: results on standard output, everything else on standard error.
enum Output {
  /// Whether standard output is a terminal.
  static let isTerminal = isatty(STDOUT_FILENO) == 1
  /// Whether standard output is a terminal that shows colours.
  static let hasColour = unsafe isTerminal && getenv("NO_COLOR") == nil

  static func result(_ text: String) { write(text.printable + "\n", to: STDOUT_FILENO) }
  static func result(_ json: JSONValue) {
    write(String(decoding: json.compact(), as: UTF8.self) + "\n", to: STDOUT_FILENO)
  }
  static func result(lines: [UInt8]) { write(String(decoding: lines, as: UTF8.self), to: STDOUT_FILENO) }
  static func note(_ text: String) { write("holdfast-service: \(text.printable)\n", to: STDERR_FILENO) }
  static func note(hint: String) { write("hint: \(hint.printable)\n", to: STDERR_FILENO) }

  private static func write(_ text: String, to descriptor: Int32) {
    var bytes = Array(text.utf8)[...]
    while !bytes.isEmpty {
      let count = unsafe bytes.withUnsafeBytes { unsafe Glibc.write(descriptor, $0.baseAddress, $0.count) }
      if count < 0 && errno == EINTR { continue }
      guard count > 0 else { return }
      bytes = bytes.dropFirst(count)
    }
  }
}
#endif
