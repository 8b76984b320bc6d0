import HoldfastCore
import HoldfastFormats
import HoldfastIssuer
import HoldfastStorage

extension Failure {
  /// Creates the failure for a service's folder that could not be created or used.
  init(_ fault: ServiceFolderFault, folder: String) {
    switch fault {
    case .file(let error):
      switch error.kind {
      case .notFound:
        self.init(
          .malformed, "there is no whole service in \(folder): \(error.path) is missing",
          hint: Self.isService(folder) ? Self.restore : "make one: holdfast service init --dir \(folder.shellWord)")
      case .exists:
        self.init(
          .malformed, "there is a service in \(folder) already, and nothing is overwritten", hint: "take another folder"
        )
      case .anotherKind: self.init(error)
      case .locked: self.init(.unavailable, "\(folder) is being changed by another process", hint: "try again")
      default: self.init(error, hint: Self.restore)
      }
    case .key(let file):
      self.init(.malformed, "\(folder)/\(file.rawValue) does not hold a key of its kind", hint: Self.restore)
    case .halfMade:
      self.init(
        .malformed, "the making of the service in \(folder) was interrupted",
        hint: "make it again: holdfast service init --dir \(folder.shellWord)")
    case .policy(.malformed(let mistake)), .policy(.member(let mistake)):
      self.init(
        .malformed, mistake.text(in: "\(folder)/policy.json"), hint: "mend or restore it; nothing is approved meanwhile"
      )
    case .policy(.formerMember(let member)):
      self.init(
        .malformed, "\(folder)/policy.json: the member '\(member)' is of an earlier version",
        hint: "replace it by \"images\": {\"DIGEST\": {\"subject\": \"NAME\", \"version\": [1, 2, 3]}}, "
          + "or by \"images\": {} and holdfast service approve")
    case .sharedKey: self.init(.malformed, "\(folder): one key serves two purposes", hint: "make a new service")
    case .ledger(let fault): self.init(fault, folder: folder)
    case .cryptography: self.init(.fault, "the cryptographic library or the random source failed")
    }
  }

  private static let restore = "restore it from a backup, or make a new service"

  /// Returns whether the folder holds any file of a service, in which case `service init` refuses it.
  private static func isService(_ folder: String) -> Bool {
    (try? FolderKind.kind(ofFolder: folder)) == .service
  }

  /// Creates the failure for a service's folder that could not be created.
  init(making fault: ServiceFolderFault, folder: String) {
    guard case .file(let error) = fault, error.path == folder else {
      self.init(fault, folder: folder)
      return
    }
    self.init(making: error)
  }

  init(_ fault: LedgerFault, folder: String) {
    let path = fault.file.map { "\(folder)/\($0.rawValue)" } ?? folder
    switch fault.cause {
    case .corrupt, .foreign, .wrongType, .constraint:
      self.init(.malformed, "\(path) is damaged, or another file", hint: Self.restore)
    case .newerVersion: self.init(.malformed, "\(path) was written by a later version", hint: "use that version")
    case .cannotOpen:
      self.init(.malformed, "\(path) is missing, or is not a regular file that can be opened", hint: Self.restore)
    case .permission:
      self.init(
        .noPermission, "\(path) is not this user's alone",
        hint: "chmod 600 \(path.shellWord), as the user it belongs to")
    case .readOnly: self.init(.fault, "\(path) or its file system is read-only", hint: Self.whenReadOnly)
    case .full: self.init(.fault, "the disk is full, \(path) was not written", hint: "free some space and run it again")
    case .busy: self.init(.unavailable, "\(path) is held by another process", hint: "try again")
    case nil, .outOfRange, .misuse, .other: self.init(.fault, "\(path) could not be read or written")
    }
  }

  /// Creates the failure for a service that could not appraise evidence.
  init(_ fault: AttestationFault, folder: String) {
    switch fault {
    case .malformed: self.init(.malformed, "the evidence is not well-formed", hint: "make it anew: holdfast measure")
    case .noClock: self.init(.fault, "there is no clock to judge freshness by")
    case .ledger(let fault): self.init(fault, folder: folder)
    case .cryptography: self.init(.fault, "the cryptographic library or the random source failed")
    }
  }

  /// Creates the failure for an app that the service does not approve.
  init(_ refusal: AttestationRefusal) {
    switch refusal {
    case .unknownProofKey:
      self.init(
        .denied, "not attested: the keys of the app's release are not registered with the service",
        hint: "holdfast service approve --dir S IMAGE registers them, with --mpk-key FILE those of another build")
    case .notAuthentic:
      self.init(.denied, "not attested: the evidence was not made with the evidence key of the release that it names")
    case .notFresh:
      self.init(.denied, "not attested: the baseline was not taken within the last five minutes", hint: "measure again")
    case .incomplete: self.init(.denied, "not attested: components are missing in the evidence")
    case .unknownImage:
      self.init(
        .denied, "not attested: the service's policy does not know this app's image",
        hint: "approve this build: holdfast service approve --dir S IMAGE --subject NAME --version 1.2.3")
    case .subject(let claimed, let approved):
      self.init(
        .denied,
        "not attested: the app calls itself '\(claimed)', and the service's policy calls its image '\(approved)'",
        hint: "leave --subject out, or approve the image under that name: holdfast service approve --dir S IMAGE "
          + "--subject NAME --version 1.2.3")
    case .version(let claimed, let approved):
      self.init(
        .denied,
        "not attested: the app says that it is version \(claimed.text), and the service's policy says \(approved.text)",
        hint: "leave --app-version out, or approve the image as that version: holdfast service approve --dir S IMAGE "
          + "--subject NAME --version 1.2.3")
    case .property(let property):
      self.init(
        .denied, "not attested: the app has the property '\(property)', which the service's policy refuses",
        hint: "end what causes it and enrol again")
    case .repeated: self.init(.denied, "not attested: this evidence was used before", hint: "measure again")
    }
  }

  /// Creates the failure for a backend that could not answer.
  init(_ fault: IssuanceFault, folder: String) {
    switch fault {
    case .noClock: self.init(.fault, "there is no clock")
    case .tooManyCommands: self.init(.usage, "a token carries at most 16 commands")
    case .ledger(let fault): self.init(fault, folder: folder)
    case .writing(.claims): self.init(.usage, "a time or a number of the token is out of range")
    case .writing(.tooLong): self.init(.usage, "the token would be longer than a device takes")
    case .writing(.noMACSecret):
      self.init(
        .malformed, "the service shares no key with any device: \(folder)/mac.key is not there",
        hint: "holdfast service mac-key makes one"
      )
    case .writing(.cryptography): self.init(.fault, "the cryptographic library or the random source failed")
    }
  }

  /// Creates the failure for a token that the backend refuses to issue.
  init(_ refusal: IssuanceRefusal) {
    switch refusal {
    case .attestation: self.init(.denied, "not issued: this is no attestation token of this service")
    case .issuer: self.init(.denied, "not issued: the attestation token is another service's")
    case .audience: self.init(.denied, "not issued: the attestation token is for another backend")
    case .notYetValid: self.init(.denied, "not issued: the attestation token is not valid yet")
    case .expired: self.init(.denied, "not issued: the attestation token has expired", hint: "attest again")
    case .anotherDevice: self.init(.denied, "not issued: the app was attested for another device")
    case .unnamedApp:
      self.init(
        .denied,
        "not issued: the attestation token names no app, and the service's policy has no 'subject' for such apps")
    case .unknownDevice:
      self.init(
        .denied, "not issued: the device is not registered with the service",
        hint: "register it, as the service's owner: holdfast service device add --dir S DESCRIPTOR")
    case .anotherKey:
      self.init(
        .denied, "not issued: the device is registered with another key, or its first token was for another one",
        hint: "take the descriptor from the device itself; its owner's word counts: holdfast service device remove "
          + "--dir S ID, then holdfast service device add --dir S DESCRIPTOR")
    case .blockedDevice:
      self.init(
        .denied, "not issued: the service's owner has blocked the device",
        hint: "to end that: holdfast service device unblock --dir S ID")
    case .baselineOfAnotherDevice:
      self.init(
        .denied, "not issued: this baseline belongs to another device, where its token would prove as well",
        hint: "enrol with a fresh baseline")
    }
  }
}
