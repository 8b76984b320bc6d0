import HoldfastAuthenticator

extension Failure {
  /// Accounts could not be read from a file. Its contents are never named.
  init(_ fault: ImportFault, in name: String) {
    switch fault {
    case .malformed:
      self.init(.malformed, "\(name) is not well-formed in its format", hint: "is --format the right one?")
    case .noAccount: self.init(.malformed, "\(name) holds no account")
    case .tooLarge: self.init(.malformed, "\(name) is too large, or holds too many accounts")
    case .accountNeeded: self.init(.usage, "a bare secret does not say whose it is", hint: "give --user NAME")
    case .severalAccounts: self.init(.usage, "\(name) holds several accounts", hint: "--user is for one")
    case .invalidSecret: self.init(.malformed, "\(name): a secret is missing, empty, or not in its alphabet")
    case .secretTooLong:
      self.init(.malformed, "\(name): a secret has more than \(Credential.maximumSecretByteCount) bytes")
    case .invalidName: self.init(.malformed, "\(name): a name is missing, or has control characters")
    case .userTooLong:
      self.init(
        .malformed, "\(name): a user's name has more than \(Credential.maximumUserByteCount) bytes",
        hint: "give another one: --user NAME")
    case .issuerTooLong:
      self.init(.malformed, "\(name): an issuer has more than \(Credential.maximumIssuerByteCount) bytes")
    case .repeatedParameter: self.init(.malformed, "\(name): a parameter is there twice")
    case .invalidCounter: self.init(.malformed, "\(name): a counter is missing, or is no number below 2^53")
    case .invalidDigits: self.init(.malformed, "\(name): digits are not a number from 4 to 10")
    case .invalidPeriod: self.init(.malformed, "\(name): a period is not from 1 to 86400 seconds")
    default: self.init(unreadable: fault, in: name)
    }
  }

  private init(unreadable fault: ImportFault, in name: String) {
    switch fault {
    case .unsupportedAlgorithm: self.init(.malformed, "\(name): an algorithm that is not supported")
    case .unsupportedFeature: self.init(.malformed, "\(name): something that is not supported")
    case .missingPart(let number, let count):
      self.init(.malformed, "part \(number) of \(count) of the export is missing", hint: "put every part in the file")
    case .repeatedPart(let number): self.init(.malformed, "part \(number) of the export is there twice")
    case .foreignPart(let line): self.init(.malformed, "the URI on line \(line) belongs to another export")
    case .keyNeeded:
      self.init(.usage, "\(name) is encrypted under a key", hint: "give --container-key-file FILE")
    case .passphraseNeeded:
      self.init(.usage, "\(name) is encrypted under a passphrase", hint: "give --container-passphrase-file FILE")
    case .wrongKey: self.init(.denied, "the key or passphrase does not open \(name), or it was changed")
    case .missingMAC:
      self.init(.malformed, "\(name): an encrypted value has no MAC, so that anybody may have changed it")
    case .signatureNotChecked:
      self.init(
        .denied, "\(name) is signed, and nobody here checks by whom",
        hint: "where you know where it comes from: --accept-unchecked-signature")
    case .policyNotEnforced:
      self.init(
        .denied, "\(name) limits how a key may be used, which nobody here enforces",
        hint: "to take it all the same: --accept-unenforced-policy")
    default: self.init(.malformed, "\(name) cannot be read")
    }
  }

  /// An account could not be written.
  init(_ fault: ExportFault) {
    switch fault {
    case .unsupportedMethod: self.init(.denied, "an otpauth:// URI cannot hold an OCRA account")
    case .ambiguousName:
      self.init(.denied, "an otpauth:// URI cannot hold a name with a colon, or one that begins with a space")
    }
  }
}
