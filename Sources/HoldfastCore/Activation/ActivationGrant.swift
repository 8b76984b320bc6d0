/// What a device gives a new user beside the secrets: `{1: user, 2: time, 3: [[purpose, method] …], 4: seal parameter length}`.
public struct ActivationGrant: Sendable, Equatable {
  public let user: BoundedText<32>
  /// The device's time, in Unix seconds.
  public let time: UInt64
  public var otp: CodeMethod?
  public var seal: CodeMethod?
  /// The most characters of a parameter under a seal.
  public let sealParameterLength: UInt64

  public init(user: BoundedText<32>, time: UInt64, otp: CodeMethod?, seal: CodeMethod?, sealParameterLength: UInt64) {
    self.user = user
    self.time = time
    self.otp = otp
    self.seal = seal
    self.sealParameterLength = sealParameterLength
  }

  init(_ plaintext: Span<UInt8>) throws(EncodingFault) {
    var reader = CBORReader(plaintext)
    var order = CBORLabelOrder()
    guard try reader.mapHead() == 4 else { throw .unexpected }
    try reader.label(1, &order)
    user = try reader.boundedText()
    try reader.label(2, &order)
    time = try reader.unsigned()
    try reader.label(3, &order)
    let count = try reader.arrayHead()
    var last: UInt64 = 0
    for _ in 0..<count {
      try reader.array(of: 2)
      let purpose = try reader.unsigned()
      guard purpose > last else { throw .unexpected }
      last = purpose
      switch purpose {
      case UInt64(CodePurpose.otp.rawValue): otp = try CodeMethod(&reader)
      case UInt64(CodePurpose.seal.rawValue): seal = try CodeMethod(&reader)
      default: throw .unexpected
      }
    }
    try reader.label(4, &order)
    sealParameterLength = try reader.unsigned()
    guard !user.isEmpty, (1...64).contains(sealParameterLength) else { throw .unexpected }
    try reader.finish()
  }

  func encode<Sink: ByteSink & ~Copyable>(into sink: inout Sink) throws(Sink.Failure) {
    try sink.appendCBOR(map: 4)
    try sink.appendCBOR(unsigned: 1)
    try sink.appendCBOR(text: user.bytes)
    try sink.appendCBOR(unsigned: 2)
    try sink.appendCBOR(unsigned: time)
    try sink.appendCBOR(unsigned: 3)
    try sink.appendCBOR(array: (otp == nil ? 0 : 1) + (seal == nil ? 0 : 1))
    if let otp { try sink.appendAccount(.otp, otp) }
    if let seal { try sink.appendAccount(.seal, seal) }
    try sink.appendCBOR(unsigned: 4)
    try sink.appendCBOR(unsigned: sealParameterLength)
  }
}

extension ByteSink where Self: ~Copyable {
  fileprivate mutating func appendAccount(_ purpose: CodePurpose, _ method: CodeMethod) throws(Failure) {
    try appendCBOR(array: 2)
    try appendCBOR(unsigned: UInt64(purpose.rawValue))
    try method.encode(into: &self)
  }
}
