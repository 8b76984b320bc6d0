import HoldfastCore
import HoldfastFormats
import HoldfastIssuer
import HoldfastLinux

extension Failure {
  /// Creates the failure for a service's folder that could not be created or used.
  package init(_ fault: ServiceFolderFault, folder: String) {
    switch fault {
    case .file(let error):
      switch error.kind {
      case .notFound:
        self.init(
          .malformed, "there is no complete service in \(folder): \(error.path) is missing",
          hint: Self.isService(folder) ? Self.restore : "create one: holdfast service init --dir \(folder.shellWord)")
      case .exists:
        self.init(
          .malformed, "there is already a service in \(folder); nothing was overwritten", hint: "use another folder"
        )
      case .anotherKind: self.init(error)
      case .locked: self.init(.unavailable, "another process is changing \(folder)", hint: "try again")
      default: self.init(error, hint: Self.restore)
      }
    case .key(let file):
      self.init(.malformed, "\(folder)/\(file.rawValue) does not hold a key of its kind", hint: Self.restore)
    case .halfMade:
      self.init(
        .malformed, "the creation of the service in \(folder) was interrupted",
        hint: "create it again: holdfast service init --dir \(folder.shellWord)")
    case .policy(.malformed(let mistake)), .policy(.member(let mistake)):
      self.init(
        .malformed, mistake.text(in: "\(folder)/policy.json"),
        hint: "correct or restore it; until then nothing is approved"
      )
    case .policy(.formerMember(let member)):
      self.init(
        .malformed, "\(folder)/policy.json: the member '\(member)' belongs to an earlier version",
        hint: "replace it with \"images\": {\"DIGEST\": {\"subject\": \"NAME\", \"version\": [1, 2, 3]}}, "
          + "or with \"images\": {} and holdfast service approve")
    case .sharedKey: self.init(.malformed, "\(folder): one key has two purposes", hint: "create a new service")
    case .ledger(let fault): self.init(fault, folder: folder)
    case .cryptography: self.init(.fault, "the cryptographic library or the random source failed")
    }
  }

  private static let restore = "restore it from a backup, or create a new service"

  /// Returns whether the folder holds any file of a service, in which case `service init` refuses it.
  private static func isService(_ folder: String) -> Bool {
    (try? FolderKind.kind(ofFolder: folder)) == .service
  }

  /// Creates the failure for a service's folder that could not be created.
  package init(making fault: ServiceFolderFault, folder: String) {
    guard case .file(let error) = fault, error.path == folder else {
      self.init(fault, folder: folder)
      return
    }
    self.init(making: error)
  }

  package init(_ fault: ServiceLedgerFault, folder: String) {
    let path = fault.file.map { "\(folder)/\($0.rawValue)" } ?? folder
    guard let cause = fault.cause else {
      self.init(.fault, "\(path) could not be read or written")
      return
    }
    self.init(cause, path: path, restore: Self.restore)
  }

  /// Creates the failure for a service that could not appraise evidence.
  package init(_ fault: AttestationFault, folder: String) {
    switch fault {
    case .malformed: self.init(.malformed, "the evidence is not well-formed", hint: "create it again: holdfast measure")
    case .noClock: self.init(.fault, "there is no clock to check freshness with")
    case .ledger(let fault): self.init(fault, folder: folder)
    case .cryptography: self.init(.fault, "the cryptographic library or the random source failed")
    }
  }

  /// Creates the failure for an app that the service does not approve.
  package init(_ refusal: AttestationRefusal) {
    switch refusal {
    case .unknownProofKey:
      self.init(
        .denied, "not attested: the keys of the app's release are not registered with the service",
        hint:
          "approve this build with its key file: holdfast service approve --dir S IMAGE --subject NAME --version 1.2.3 "
          + "--proof-keys mpk.key")
    case .notAuthentic:
      self.init(
        .denied, "not attested: the evidence was not authenticated with the evidence key of the release that it names")
    case .notFresh:
      self.init(.denied, "not attested: the baseline was not taken within the last five minutes", hint: "measure again")
    case .incomplete: self.init(.denied, "not attested: components are missing from the evidence")
    case .unknownImage:
      self.init(
        .denied, "not attested: the service's policy does not contain this app's image",
        hint: "approve this build: holdfast service approve --dir S IMAGE --subject NAME --version 1.2.3")
    case .anotherRelease:
      self.init(
        .denied,
        "not attested: the evidence has the keys of a release, and the service's policy has this image in another one",
        hint:
          "if the image was built with this key, approve it again with the key file: holdfast service approve --dir S "
          + "IMAGE --subject NAME --version 1.2.3 --proof-keys mpk.key")
    case .subject(let claimed, let approved):
      self.init(
        .denied,
        "not attested: the app calls itself '\(claimed)', and the service's policy calls its image '\(approved)'",
        hint: "leave out --subject, or approve the image under that name: holdfast service approve --dir S IMAGE "
          + "--subject NAME --version 1.2.3")
    case .version(let claimed, let approved):
      self.init(
        .denied,
        "not attested: the app claims version \(claimed.text), and the service's policy says \(approved.text)",
        hint: "leave out --app-version, or approve the image as that version: holdfast service approve --dir S IMAGE "
          + "--subject NAME --version 1.2.3")
    case .knownCode:
      self.init(
        .denied, "not attested: the baseline permits known code, and the service's policy does not",
        hint: "enrol without --known-code")
    case .property(let property):
      self.init(
        .denied, "not attested: the app has the property '\(property)', which the service's policy refuses",
        hint: "remove its cause and enrol again")
    case .repeated: self.init(.denied, "not attested: this evidence was used before", hint: "measure again")
    }
  }

  /// Creates the failure for a backend that could not answer.
  package init(_ fault: IssuanceFault, folder: String) {
    switch fault {
    case .noClock: self.init(.fault, "there is no clock")
    case .writing(.tooManyCommands): self.init(.usage, "a token can carry at most 16 commands")
    case .ledger(let fault): self.init(fault, folder: folder)
    case .writing(.claims): self.init(.usage, "a time or number in the token is out of range")
    case .writing(.tooLong): self.init(.usage, "the token would be too long for a device")
    case .writing(.noMACSecret):
      self.init(
        .malformed, "the service shares no key with any device: \(folder)/mac.key does not exist",
        hint: "holdfast service mac-key creates one"
      )
    case .writing(.cryptography): self.init(.fault, "the cryptographic library or the random source failed")
    }
  }

  /// Creates the failure for a token that the backend refuses to issue.
  package init(_ refusal: IssuanceRefusal) {
    switch refusal {
    case .attestation: self.init(.denied, "not issued: this is not an attestation token of this service")
    case .issuer: self.init(.denied, "not issued: the attestation token comes from another service")
    case .audience: self.init(.denied, "not issued: the attestation token is for another backend")
    case .notYetValid: self.init(.denied, "not issued: the attestation token is not valid yet")
    case .expired: self.init(.denied, "not issued: the attestation token has expired", hint: "attest again")
    case .anotherDevice: self.init(.denied, "not issued: the app was attested for another device")
    case .unnamedApp:
      self.init(
        .denied,
        "not issued: the attestation token does not name an app, and the service's policy has no 'subject' for such apps"
      )
    case .unknownDevice:
      self.init(
        .denied, "not issued: the device is not registered with the service",
        hint: "register it, as the service's owner: holdfast service device add --dir S DESCRIPTOR")
    case .anotherKey:
      self.init(
        .denied, "not issued: the device is registered with another key, or its first token was issued for another key",
        hint:
          "get the descriptor from the device itself; if its owner confirms the new key, run holdfast service device remove "
          + "--dir S ID, then holdfast service device add --dir S DESCRIPTOR")
    case .blockedDevice:
      self.init(
        .denied, "not issued: the service's owner has blocked the device",
        hint: "to unblock it: holdfast service device unblock --dir S ID")
    case .baselineOfAnotherDevice:
      self.init(
        .denied,
        "not issued: this baseline belongs to another device, which would accept proofs made with this token too",
        hint: "enrol with a fresh baseline")
    }
  }
}
