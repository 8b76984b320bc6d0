/// A code and its user.
public struct UserCode: Sendable, Equatable {
  /// The name of the user whose code it is, at most 32 bytes.
  public let user: BoundedText<32>
  /// The code, at most 16 bytes.
  public let code: BoundedText<16>

  /// Creates a code from its parts.
  public init(user: BoundedText<32>, code: BoundedText<16>) {
    self.user = user
    self.code = code
  }
}

/// A prover's request: a command of at most 32 bytes, at most 8 parameters of at most 64 bytes, and codes.
public struct Request: ~Copyable, Sendable {
  /// The name of the command, at most 32 bytes.
  public private(set) var command: BoundedText<32>
  private var parameters = InlineArray<8, BoundedText<64>>(repeating: BoundedText())
  /// The number of parameters; nil if the list itself is absent.
  public private(set) var parameterCount: Int?
  /// The codes that the user gives.
  public var codes = ByPurpose<UserCode>()
  /// The number of the request, larger than that of every earlier request to the device and at most 2^53 - 1; nil for a
  /// request without one. The device carries out no number twice.
  public var number: UInt64?
  private let pin = Pinned()

  /// Creates a request without parameters, codes and number.
  public init(command: BoundedText<32>) {
    self.command = command
  }

  /// Returns a second copy, for another round.
  public borrowing func copy() -> Request {
    var other = Request(command: command)
    (other.parameters, other.parameterCount) = (parameters, parameterCount)
    (other.codes, other.number) = (codes, number)
    return other
  }

  /// Appends a parameter. Throws `unexpected` if there are 8 already.
  public mutating func append(parameter: BoundedText<64>) throws(EncodingFault) {
    let count = parameterCount ?? 0
    guard count < parameters.count else { throw .unexpected }
    parameters[count] = parameter
    parameterCount = count + 1
  }

  /// Returns the parameter at `index`, below ``parameterCount``.
  public borrowing func parameter(_ index: Int) -> BoundedText<64> {
    precondition(index < parameterCount ?? 0)
    return parameters[index]
  }
}

extension Request {
  /// Decodes `{1: command, 2: [parameter …], 3: [user, otp], 4: [user, seal], 5: number}`, of which only the command is
  /// required.
  ///
  /// - Throws: `malformed` if it is not deterministic CBOR, `unexpected` for another structure.
  public init(_ plaintext: Span<UInt8>) throws(EncodingFault) {
    self.init(command: BoundedText())
    try decode(plaintext)
  }

  /// Decodes the same into a request that has nothing but a command.
  mutating func decode(_ plaintext: Span<UInt8>) throws(EncodingFault) {
    var reader = CBORReader(plaintext)
    var order = CBORLabelOrder()
    let count = try reader.mapHead()
    guard count >= 1 else { throw .unexpected }
    try reader.label(1, &order)
    command = try reader.boundedText()
    for _ in 1..<count {
      switch try reader.label(&order) {
      case 2:
        let parameterCount = try reader.arrayHead()
        self.parameterCount = 0
        for _ in 0..<parameterCount { try append(parameter: try reader.boundedText()) }
      case 3: codes[.otp] = try reader.userCode()
      case 4: codes[.seal] = try reader.userCode()
      case 5: number = try reader.unsigned()
      default: throw .unexpected
      }
    }
    try reader.finish()
  }

  /// Writes the request as deterministic CBOR.
  public borrowing func encode<Sink: ByteSink & ~Copyable>(into sink: inout Sink) throws(Sink.Failure) {
    try sink.appendCBOR(
      map: 1 + (parameterCount == nil ? 0 : 1) + codes.count + (number == nil ? 0 : 1))
    try sink.appendCBOR(unsigned: 1)
    try sink.appendCBOR(text: command.bytes)
    if let parameterCount {
      try sink.appendCBOR(unsigned: 2)
      try sink.appendCBOR(array: parameterCount)
      for index in 0..<parameterCount { try sink.appendCBOR(text: parameters[index].bytes) }
    }
    if let otp = codes[.otp] { try sink.appendPair(3, otp) }
    if let seal = codes[.seal] { try sink.appendPair(4, seal) }
    if let number {
      try sink.appendCBOR(unsigned: 5)
      try sink.appendCBOR(unsigned: number)
    }
  }
}

extension CBORReader {
  fileprivate mutating func userCode() throws(EncodingFault) -> UserCode {
    try array(of: 2)
    return UserCode(user: try boundedText(), code: try boundedText())
  }
}

extension ByteSink where Self: ~Copyable {
  fileprivate mutating func appendPair(_ label: UInt64, _ code: UserCode) throws(Failure) {
    try appendCBOR(unsigned: label)
    try appendCBOR(array: 2)
    try appendCBOR(text: code.user.bytes)
    try appendCBOR(text: code.code.bytes)
  }
}
