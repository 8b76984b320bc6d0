import HoldfastAuthenticator
import HoldfastCore
import HoldfastFormats
import HoldfastLinux

extension Failure {
  /// Creates the failure for an authenticator that could not be used or refused an operation.
  package init(_ fault: AuthenticatorFault, folder: String) {
    switch fault {
    case .missing: self.init(noAuthenticatorIn: folder)
    case .folder(let error) where error == FileError(.notFound, at: folder): self.init(noAuthenticatorIn: folder)
    case .folder(let error): self.init(error, hint: "correct that, or use another folder")
    case .readOnly:
      self.init(.fault, "\(Self.file(folder)) or its file system is read-only", hint: Self.whenReadOnly)
    case .tooOpen:
      self.init(
        .noPermission, "\(Self.file(folder)) is open to others, or belongs to another user",
        hint: "chmod go= \(Self.file(folder).shellWord)")
    case .corrupt:
      self.init(
        .malformed, "\(Self.file(folder)) is damaged",
        hint: "restore it with holdfast otp state import, or activate again")
    case .foreign:
      self.init(.malformed, "\(Self.file(folder)) belongs to another application", hint: "use another folder")
    case .rolledBack: self.init(.malformed, "\(Self.file(folder)) is an older copy", hint: "restore the latest one")
    case .newerVersion:
      self.init(.malformed, "\(Self.file(folder)) was written by a later version", hint: "use that version")
    case .busy: self.init(.unavailable, "\(Self.file(folder)) is in use by another process", hint: "try again")
    case .diskFull:
      self.init(
        .fault, "the disk is full; nothing was changed, and no code is shown", hint: "free some space and try again")
    case .failed:
      self.init(.fault, "the system, the random source or the cryptographic library failed")
    default: self.init(record: fault)
    }
  }

  /// Creates the failure for an account that could not be exported.
  package init(exporting fault: AuthenticatorFault, folder: String) {
    guard case .demanded(let demand) = fault else {
      self.init(fault, folder: folder)
      return
    }
    self.init(
      .denied, "the device's owner demands that the secrets need \(demand.text), which an exported secret would not",
      hint: "holdfast otp state export moves all records as they are; or the owner adds a spare authenticator")
  }

  /// Creates the failure for an authenticator that could not be created.
  package init(making fault: AuthenticatorFault, folder: String) {
    guard case .folder(let error) = fault, error.kind == .notFound else {
      self.init(fault, folder: folder)
      return
    }
    self.init(making: error)
  }

  private init(noAuthenticatorIn folder: String) {
    self.init(
      .malformed, "there is no authenticator in \(folder)",
      hint: "holdfast otp activate and holdfast otp import create one")
  }

  private static func file(_ folder: String) -> String { "\(folder)/\(AuthenticatorFolder.fileName)" }

  /// Creates the failure for a mistake in a record or a new record.
  private init(record fault: AuthenticatorFault) {
    switch fault {
    case .noRecords:
      self.init(
        .denied, "there are no records yet", hint: "holdfast otp activate and holdfast otp import create records")
    case .unknownRecord: self.init(.denied, "there is no such record", hint: Self.listing)
    case .severalUsers: self.init(.usage, "there are several users", hint: "choose one with --user NAME")
    case .severalRecords:
      self.init(.usage, "the user has several such records", hint: "choose one with --index N; \(Self.listing)")
    case .exists:
      self.init(
        .denied, "there is already a record with that user and index, or no index is free",
        hint: "use another --index, or remove the record with holdfast otp remove")
    case .secretTwice:
      self.init(
        .denied, "the same secret would be stored twice, which would allow anyone who steals the file to test PINs",
        hint: "first remove the record that has it: holdfast otp remove")
    case .notConfirmed:
      self.init(
        .denied, "the device never confirmed the activation",
        hint: "activate again, with a new code from the device's owner")
    case .unknownEnd:
      self.init(
        .denied, "new secrets wait, and it is not known whether the device has them",
        hint: "holdfast otp sync finds out")
    case .badUser: self.init(.malformed, "a user's name has 1 to 32 bytes and no control characters")
    case .badIndex: self.init(.usage, "an index must be from 1 to 8")
    case .unsuitableMethod:
      self.init(.denied, "the record's method is not for that purpose", hint: Self.listing)
    case .badRecord: self.init(.malformed, "a secret has 1 to 128 bytes, and a counter is below 2^53")
    case .malformedAccount: self.init(.malformed, "that is not the URI of an account")
    default: self.init(use: fault)
    }
  }

  private static let listing = "holdfast otp list shows the records"

  /// Creates the failure for a code that could not be made.
  private init(use fault: AuthenticatorFault) {
    switch fault {
    case .clockOutOfRange:
      self.init(
        .malformed, "the clock is before 1970 or after 2106, so no code can be computed",
        hint: "set the clock (timedatectl)")
    case .counterExhausted: self.init(.denied, "the counter has reached its end", hint: "activate again")
    case .notSynchronised:
      self.init(
        .denied, "the counter is further ahead than the device searches",
        hint:
          "for passwords, holdfast otp code --pair shows two in a row: give both to the device, then run holdfast otp sync"
      )
    case .badQuestion:
      self.init(.usage, "a challenge is missing, malformed, or not what the record requires", hint: Self.listing)
    case .noChallenge:
      self.init(
        .denied, "there is no challenge, or it was already used", hint: "create one: holdfast otp challenge")
    case .protectionMismatch([]): self.init(.usage, "the record is not protected", hint: "leave out the PIN or key")
    case .protectionMismatch(let inputs):
      self.init(.usage, "the record's protection is: \(inputs.text)", hint: "give exactly that")
    case .otherHost:
      self.init(
        .denied, "the record is bound to another host", hint: "use it there, or activate again on this host")
    default: self.init(change: fault)
    }
  }

  /// Creates the failure for a protection that was not changed or a state that was not imported.
  private init(change fault: AuthenticatorFault) {
    switch fault {
    case .weakPIN(let fault): self.init(fault)
    case .demanded(let demand):
      self.init(
        .denied, "the device's owner demands that the secrets need \(demand.text)",
        hint: (demand.pinLength ?? 0) > PIN.lengths.upperBound
          ? "no PIN of this authenticator is that long; ask the owner for another demand"
          : "choose that protection, with --add-key-file for a key and a PIN")
    case .changeOpen:
      self.init(
        .denied, "the last change is not confirmed yet",
        hint: "if codes were accepted since then, run otp protect --confirm; if not, otp protect --undo-code-file FILE")
    case .noChange: self.init(.denied, "there is no change to confirm or undo")
    case .interrupted:
      self.init(
        .denied, "a change was interrupted after the old secret was erased",
        hint: "the undo code restores it: otp protect --undo-code-file FILE; if it was a state import, run that again")
    case .malformedUndoCode:
      self.init(
        .malformed, "that is not an undo code", hint: "an undo code has seven groups of four characters: check them")
    case .wrongUndoCode: self.init(.denied, "that undo code belongs to another change")
    case .weakPassphrase:
      self.init(
        .malformed, "a passphrase must have at least 8 characters, at most 1,024 bytes, and not only digits",
        hint: "use several words, and never the PIN")
    case .malformedState:
      self.init(
        .malformed, "that is not a state string of this version, or some of its characters are missing or wrong",
        hint: "holdfast otp state export writes one: copy all of it")
    case .wrongPassphrase: self.init(.denied, "the passphrase is wrong")
    case .notEmpty:
      self.init(.denied, "there are already records", hint: "--replace replaces them by the imported ones")
    default: self.init(.fault, "the authenticator failed")
    }
  }

  /// Creates the failure for text that is not a PIN or a PIN that is too weak.
  package init(_ fault: PINFault) {
    let (text, hint): (String, String?) =
      switch fault {
      case .length: ("a PIN must have 4 to 6 digits", nil)
      case .notDigits: ("a PIN must consist of the digits 0 to 9", nil)
      case .run: ("a PIN whose digits count up or down is guessed first", "choose another one")
      case .repetition: ("a PIN that repeats itself is guessed first", "choose another one")
      case .year: ("a PIN that begins or ends with a year, 1900 to 2099, is guessed early", "choose another one")
      }
    self.init(.malformed, text, hint: hint)
  }

  /// Creates the failure for a command that cannot be sealed.
  package init(_ fault: SealFault, fieldByteLimit: Int?) {
    func text(_ name: String, _ fault: SealFieldFault, limit: String) -> String {
      switch fault {
      case .empty: "\(name) is empty"
      case .tooLong: "\(name) has more than \(limit)"
      case .controlCharacter:
        "\(name) has control characters, or characters that are invisible or change the direction of text"
      }
    }
    let limit = fieldByteLimit.map { "\($0) bytes" } ?? "16 characters"
    switch fault {
    case .command(let fault): self.init(.malformed, text("the command", fault, limit: "32 bytes"))
    case .tooManyParameters: self.init(.malformed, "a command can have at most 8 parameters")
    case .parameter(let number, let fault): self.init(.malformed, text("parameter \(number)", fault, limit: limit))
    }
  }

  /// Creates the failure for an OCRA answer that could not be computed from the inputs.
  package init(_ fault: OCRAFault) {
    switch fault {
    case .missingInput(let name):
      self.init(.usage, "the suite needs \(name.option)")
    case .unexpectedInput(let name):
      self.init(.usage, "the suite does not use \(name.text)", hint: "leave out \(name.option)")
    case .sessionTooLong:
      self.init(.usage, "--session has more bytes than the suite allows")
    case .noTruncation:
      self.init(.fault, "the suite has no number of digits")
    case .cryptography:
      self.init(.fault, "libcrypto failed")
    }
  }

  /// Creates the failure for text that is not an OCRA suite.
  package init(badSuite text: String) {
    let example = "a suite looks like OCRA-1:HOTP-SHA256-8:QH64-T1M (RFC 6287, section 6)"
    let isOtherwiseGood = OCRASuite(text.uppercased()) != nil
    self.init(
      .usage, isOtherwiseGood ? "--suite must be in capital letters" : "--suite is not a suite of RFC 6287",
      hint: example)
  }

  /// Creates the failure for a question that does not have the suite's format.
  package init(badQuestionFor suite: OCRASuite) {
    let characters =
      switch suite.questionFormat {
      case .alphanumeric: "printable ASCII characters"
      case .numeric: "decimal digits"
      case .hexadecimal: "hex digits"
      }
    self.init(
      .usage, "--question is not 1 to \(suite.questionLength) \(characters)",
      hint: "a question for a mutual answer is both questions together, at most \(2 * suite.questionLength) characters")
  }

  /// Creates the failure for a secret that is not valid base32.
  package init(_ fault: Base32Fault, in name: String) {
    let reason =
      switch fault {
      case .character: "it has characters other than A to Z, 2 to 7 and single spaces or dashes between them"
      case .length: "it is cut off, or has one character too many"
      case .padding: "its padding does not fill eight characters"
      case .strayBits: "its last character contains bits that do not belong to a whole byte"
      }
    self.init(.malformed, "\(name) is not base32: \(reason)", hint: "is it --format hex or --format raw?")
  }
}

extension OCRAInputName {
  fileprivate var option: String {
    switch self {
    case .counter: "--counter"
    case .pin: "--pin or --pin-file"
    case .session: "--session"
    case .time: "--time"
    }
  }

  fileprivate var text: String {
    switch self {
    case .counter: "a counter"
    case .pin: "a PIN"
    case .session: "session information"
    case .time: "the time"
    }
  }
}
