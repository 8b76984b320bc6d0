import HoldfastCore
@_spi(_Unicode) import Swift

/// A command and its parameters as they are sealed: normalised, bounded, and without anything that a terminal would obey.
public struct SealRequest: Sendable, Equatable {
  /// 1 to 32 UTF-8 bytes, normalised.
  public let command: String
  /// At most 8, each normalised.
  public let parameters: [String]

  /// The most parameters.
  public static let maximumParameterCount = 8
  /// The most characters of a parameter, where a record does not allow more bytes.
  public static let usualCharacterCount = 16

  /// Normalises to NFC and checks. `fieldByteLimit` is a record's: the most UTF-8 bytes of a parameter, or nil for 16
  /// characters, of at most 64 bytes.
  public init(command: String, parameters: [String], fieldByteLimit: Int? = nil) throws(SealFault) {
    self.command = command.normalised
    if let fault = self.command.fieldFault(byteLimit: 32) { throw .command(fault) }
    guard parameters.count <= Self.maximumParameterCount else { throw .tooManyParameters }
    self.parameters = parameters.map(\.normalised)
    for (index, parameter) in self.parameters.enumerated() {
      if let fault = parameter.fieldFault(byteLimit: min(fieldByteLimit ?? 64, 64)) {
        throw .parameter(index + 1, fault)
      }
      guard fieldByteLimit != nil || parameter.unicodeScalars.count <= Self.usualCharacterCount else {
        throw .parameter(index + 1, .tooLong)
      }
    }
  }
}

/// Why a command cannot be sealed.
public enum SealFault: Error, Sendable, Equatable {
  case command(SealFieldFault)
  case tooManyParameters
  /// Parameters are counted from 1.
  case parameter(Int, SealFieldFault)
}

/// What is wrong with a field.
public enum SealFieldFault: Sendable, Equatable {
  case empty
  case tooLong
  /// It has control characters, or others that nobody sees, or that change the direction of text: two requests that look
  /// the same would not be.
  case controlCharacter
}

extension String {
  /// In Normalization Form C. Source: UAX #15.
  fileprivate var normalised: String {
    var scalars = UnicodeScalarView()
    for scalar in _nfc { scalars.append(scalar) }
    return String(scalars)
  }

  fileprivate func fieldFault(byteLimit: Int) -> SealFieldFault? {
    if isEmpty { return .empty }
    if unicodeScalars.contains(where: { $0.isControl || $0.properties.isDefaultIgnorableCodePoint }) {
      return .controlCharacter
    }
    return utf8.count > byteLimit ? .tooLong : nil
  }
}
