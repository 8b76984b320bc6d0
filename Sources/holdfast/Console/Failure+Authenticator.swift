import HoldfastAuthenticator
import HoldfastCore
import HoldfastFormats
import HoldfastStorage

extension Failure {
  /// Creates the failure for an authenticator that could not be used or refused an operation.
  init(_ fault: AuthenticatorFault, folder: String) {
    switch fault {
    case .missing:
      self.init(
        .malformed, "there is no authenticator in \(folder)",
        hint: "one is made by holdfast otp activate and holdfast otp import")
    case .notFolder:
      self.init(
        .malformed, "\(folder) is not a folder, or a symbolic link to one",
        hint: "give the folder itself, or another name")
    case .noPermission:
      self.init(.noPermission, "no permission for \(folder)", hint: "run as the user whom it belongs to")
    case .wrongOwner:
      self.init(.noPermission, "\(folder) belongs to another user", hint: "run as the user whom it belongs to")
    case .readOnly:
      self.init(.fault, "\(Self.file(folder)) or its file system is read-only", hint: Self.whenReadOnly)
    case .tooOpen:
      self.init(
        .noPermission, "\(folder) or the file in it is open to others, or another user's",
        hint: "chmod -R go= \(folder.shellWord)")
    case .corrupt:
      self.init(
        .malformed, "\(Self.file(folder)) is damaged",
        hint: "restore it with holdfast otp state import, or activate anew")
    case .foreign:
      self.init(.malformed, "\(Self.file(folder)) is another application's", hint: "take another folder")
    case .newerVersion:
      self.init(.malformed, "\(Self.file(folder)) was written by a later version", hint: "use that version")
    case .busy: self.init(.unavailable, "\(Self.file(folder)) is held by another process", hint: "try again")
    case .diskFull:
      self.init(
        .fault, "the disk is full: nothing was changed and nothing is shown", hint: "free some space and run it again")
    case .folder(let error): self.init(error, hint: "put it right, or take another folder")
    case .failed:
      self.init(.fault, "the system, the random source or the cryptographic library failed")
    default: self.init(record: fault)
    }
  }

  /// Creates the failure for an authenticator that could not be created.
  init(making fault: AuthenticatorFault, folder: String) {
    guard fault == .missing else {
      self.init(fault, folder: folder)
      return
    }
    self.init(making: FileError(.notFound, at: folder))
  }

  private static func file(_ folder: String) -> String { "\(folder)/\(AuthenticatorFolder.fileName)" }

  /// Creates the failure for a mistake in a record or a new record.
  private init(record fault: AuthenticatorFault) {
    switch fault {
    case .noRecords:
      self.init(.denied, "there are no records yet", hint: "holdfast otp activate and holdfast otp import make some")
    case .unknownRecord: self.init(.denied, "there is no such record", hint: Self.listing)
    case .severalUsers: self.init(.usage, "there are several users", hint: "say which one: --user NAME")
    case .severalRecords:
      self.init(.usage, "the user has several records of the kind", hint: "say which one: --index N (\(Self.listing))")
    case .exists:
      self.init(
        .denied, "there is a record of that user and index already, or no index is free",
        hint: "take another --index, or remove it: holdfast otp remove")
    case .secretTwice:
      self.init(
        .denied, "the same secret would be stored twice, by which a thief of the file could test PINs",
        hint: "remove the record that has it first: holdfast otp remove")
    case .notConfirmed:
      self.init(
        .denied, "the device never confirmed the activation", hint: "activate anew, with a new code of the device's")
    case .badUser: self.init(.malformed, "a user's name has 1 to 32 bytes and no control characters")
    case .badIndex: self.init(.usage, "an index is from 1 to 8")
    case .unsuitableMethod:
      self.init(.denied, "the method of the record does not serve that purpose", hint: Self.listing)
    case .badRecord: self.init(.malformed, "a secret has 1 to 128 bytes, and a counter is below 2^53")
    default: self.init(use: fault)
    }
  }

  private static let listing = "holdfast otp list shows what there is"

  /// Creates the failure for a code that could not be made.
  private init(use fault: AuthenticatorFault) {
    switch fault {
    case .clockOutOfRange:
      self.init(
        .malformed, "the clock is before 1970 or after 2106, so that there is no code of the time",
        hint: "set the clock (timedatectl)")
    case .counterExhausted: self.init(.denied, "the counter is at its end", hint: "activate anew")
    case .notSynchronised:
      self.init(
        .denied, "the counter is further ahead than the device looks",
        hint: "holdfast otp sync asks the device; otp --pair gives two codes in a row, by which it finds back")
    case .badQuestion:
      self.init(.usage, "a challenge is missing, malformed, or not what the record takes", hint: Self.listing)
    case .noChallenge:
      self.init(
        .denied, "there is no challenge, or it has served already", hint: "make one: holdfast otp challenge")
    case .protectionMismatch(.external):
      self.init(.usage, "the record is protected by a key", hint: "give --key-file or --key-fd")
    case .protectionMismatch(.none): self.init(.usage, "the record is protected by nothing", hint: "give no PIN or key")
    case .protectionMismatch:
      self.init(.usage, "the record is protected by a PIN", hint: "give --pin-file, or type it")
    default: self.init(change: fault)
    }
  }

  /// Creates the failure for a protection that was not changed or a state that was not imported.
  private init(change fault: AuthenticatorFault) {
    switch fault {
    case .weakPIN(let fault): self.init(fault)
    case .changeOpen:
      self.init(
        .denied, "the last change is not confirmed yet",
        hint: "if codes are accepted since then: otp protect --confirm; if not: otp protect --undo-code-file FILE")
    case .noChange: self.init(.denied, "there is no change to confirm or to undo")
    case .interrupted:
      self.init(
        .denied, "a change was interrupted when the old secret was erased already",
        hint: "the undo code brings it back: otp protect --undo-code-file FILE; a state import is to be done again")
    case .malformedUndoCode:
      self.init(.malformed, "that is no undo code", hint: "it is seven groups of four characters: compare them")
    case .wrongUndoCode: self.init(.denied, "that is the undo code of another change")
    case .weakPassphrase:
      self.init(
        .malformed, "a passphrase has 8 characters to 1,024 bytes, and not only digits",
        hint: "take several words; never the PIN")
    case .malformedState:
      self.init(
        .malformed, "that is no state string of this version, or characters of it are missing or wrong",
        hint: "holdfast otp state export writes one: copy it whole")
    case .wrongPassphrase: self.init(.denied, "the passphrase is another one")
    case .notEmpty:
      self.init(.denied, "there are records already", hint: "--replace puts the imported ones in their place")
    default: self.init(.fault, "the authenticator failed")
    }
  }

  /// Creates the failure for text that is not a PIN or a PIN that is too weak.
  init(_ fault: PINFault) {
    let (text, hint): (String, String?) =
      switch fault {
      case .length: ("a PIN has 4 to 6 digits", nil)
      case .notDigits: ("a PIN has the digits 0 to 9 and nothing else", nil)
      case .run: ("a PIN whose digits count up or down is guessed first", "take another one")
      case .repetition: ("a PIN that repeats itself is guessed first", "take another one")
      case .year: ("a PIN that begins or ends with a year, 1900 to 2099, is guessed early", "take another one")
      }
    self.init(.malformed, text, hint: hint)
  }

  /// Creates the failure for a command that cannot be sealed.
  init(_ fault: SealFault, fieldByteLimit: Int?) {
    func text(_ name: String, _ fault: SealFieldFault, limit: String) -> String {
      switch fault {
      case .empty: "\(name) is empty"
      case .tooLong: "\(name) has more than \(limit)"
      case .controlCharacter:
        "\(name) has control characters, or others that are not seen or change the direction of text"
      }
    }
    let limit = fieldByteLimit.map { "\($0) bytes" } ?? "16 characters"
    switch fault {
    case .command(let fault): self.init(.malformed, text("the command", fault, limit: "32 bytes"))
    case .tooManyParameters: self.init(.malformed, "a command has at most 8 parameters")
    case .parameter(let number, let fault): self.init(.malformed, text("parameter \(number)", fault, limit: limit))
    }
  }

  /// Creates the failure for an OCRA answer that could not be computed from the inputs.
  init(_ fault: OCRAFault) {
    switch fault {
    case .missingInput(let name):
      self.init(.usage, "the suite needs \(name.option)")
    case .unexpectedInput(let name):
      self.init(.usage, "the suite takes no \(name.text)", hint: "leave \(name.option) out")
    case .sessionTooLong:
      self.init(.usage, "--session has more bytes than the suite says")
    case .noTruncation:
      self.init(.fault, "the suite has no digits")
    case .cryptography:
      self.init(.fault, "libcrypto failed")
    }
  }

  /// Creates the failure for text that is not an OCRA suite.
  init(badSuite text: String) {
    let example = "a suite looks like OCRA-1:HOTP-SHA256-8:QH64-T1M (RFC 6287, section 6)"
    let isOtherwiseGood = OCRASuite(text.uppercased()) != nil
    self.init(
      .usage, isOtherwiseGood ? "--suite is not in capitals" : "--suite is not a suite of RFC 6287", hint: example)
  }

  /// Creates the failure for a question that does not have the suite's format.
  init(badQuestionFor suite: OCRASuite) {
    let characters =
      switch suite.questionFormat {
      case .alphanumeric: "printable ASCII characters"
      case .numeric: "decimal digits"
      case .hexadecimal: "hex digits"
      }
    self.init(
      .usage, "--question is not 1 to \(suite.questionLength) \(characters)",
      hint: "a mutual question is two of them, at most \(2 * suite.questionLength) characters")
  }

  /// Creates the failure for a secret that is not valid base32.
  init(_ fault: Base32Fault, in name: String) {
    let reason =
      switch fault {
      case .character: "it has other characters than A to Z, 2 to 7 and single spaces or dashes between them"
      case .length: "it is cut off, or has a character too many"
      case .padding: "its padding does not fill eight characters"
      case .strayBits: "its last character stands for more bits than there is room for"
      }
    self.init(.malformed, "\(name) is not base32: \(reason)", hint: "--format hex or --format raw?")
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
    case .counter: "counter"
    case .pin: "PIN"
    case .session: "session information"
    case .time: "time"
    }
  }
}
