/// M1, from device to prover: `[1, 1, device_id, challenge, kid, required, clock / null]`.
package struct Challenge: Sendable {
  /// The id of the device, 16 bytes.
  package let deviceID: DeviceID
  /// The challenge: 16 bytes that this device never repeats.
  package let nonce: Nonce
  /// The id of the device's key, 8 bytes.
  public let keyID: KeyID
  /// The factors that every command needs: a hint, which proves nothing.
  package let required: Factors
  /// The device's time, in Unix seconds; nil if it has none.
  package let clock: UInt64?

  /// Creates a challenge from its parts.
  package init(deviceID: DeviceID, nonce: Nonce, keyID: KeyID, required: Factors, clock: UInt64?) {
    self.deviceID = deviceID
    self.nonce = nonce
    self.keyID = keyID
    self.required = required
    self.clock = clock
  }

  /// Decodes M1.
  ///
  /// - Throws: `malformed` if it is not deterministic CBOR, `unexpected` for another structure, version or factor.
  package init(_ message: Span<UInt8>) throws(EncodingFault) {
    var reader = CBORReader(message)
    try reader.array(of: 7)
    guard try reader.unsigned() == Message.challengeType, try reader.unsigned() == Message.version else {
      throw .unexpected
    }
    deviceID = try reader.fixedBytes()
    nonce = try reader.fixedBytes()
    keyID = try reader.fixedBytes()
    guard let bits = UInt8(exactly: try reader.unsigned()), Factors.all.isSuperset(of: Factors(rawValue: bits)) else {
      throw .unexpected
    }
    required = Factors(rawValue: bits)
    clock = reader.null() ? nil : try reader.unsigned()
    try reader.finish()
  }

  /// Writes M1.
  package func encode<Sink: ByteSink & ~Copyable>(into sink: inout Sink) throws(Sink.Failure) {
    try sink.appendCBOR(array: 7)
    try sink.appendCBOR(unsigned: Message.challengeType)
    try sink.appendCBOR(unsigned: Message.version)
    try sink.appendCBOR(bytes: deviceID.bytes)
    try sink.appendCBOR(bytes: nonce.bytes)
    try sink.appendCBOR(bytes: keyID.bytes)
    try sink.appendCBOR(unsigned: UInt64(required.rawValue))
    if let clock { try sink.appendCBOR(unsigned: clock) } else { try sink.appendCBORNull() }
  }
}

/// A source of challenges that never repeat, even if the random source is poor at boot.
///
/// `HMAC-SHA-256(seed, "holdfast/1 challenge" ‖ 0x00 ‖ boot ‖ connection ‖ round ‖ entropy)[0..<16]`: the counters, 64
/// bits each, make a challenge unique, the seed makes it unpredictable, and entropy helps if there is some.
public struct ChallengeSource: ~Copyable {
  private let seed: Secret<32>
  private let bootCount: UInt64
  private let connection: UInt64
  private var round: UInt64 = 0

  /// Creates the source of one connection.
  ///
  /// - Parameters:
  ///   - seed: a secret of the device, made with its key.
  ///   - bootCount: the number of the device's starts, counted durably.
  ///   - connection: the number of connections since the start.
  public init(seed: consuming Secret<32>, bootCount: UInt64, connection: UInt64) {
    self.seed = seed
    self.bootCount = bootCount
    self.connection = connection
  }

  /// Derives the seed from a device's private key, `scalar`, which is big-endian.
  public static func seed<Crypto: Cryptography & ~Copyable>(
    from scalar: borrowing Secret<32>, using cryptography: inout Crypto
  ) throws(CryptographyFailure) -> Secret<32> {
    try derivedSecret("holdfast/1 challenge seed", from: scalar, using: &cryptography)
  }

  package mutating func next<Crypto: Cryptography & ~Copyable>(
    entropy: borrowing Secret<32>, using cryptography: inout Crypto
  ) throws(CryptographyFailure) -> Nonce {
    round += 1
    var mac = try seed.withBytes { (key: Span<UInt8>) throws(CryptographyFailure) in
      try cryptography.hmacSHA256(key: key)
    }
    mac.append(domain: "holdfast/1 challenge")
    mac.append(bigEndian: bootCount)
    mac.append(bigEndian: connection)
    mac.append(bigEndian: round)
    entropy.withBytes { mac.append($0) }
    let digest: Digest = try mac.finish()
    var challenge = Nonce()
    for index in 0..<16 { challenge[index] = digest[index] }
    return challenge
  }
}

/// The constants that all messages of a session share.
///
/// Each message is one deterministic CBOR array whose first element is its type (docs/protocol.md, Session).
package enum Message {
  /// The length of the longest message, in bytes.
  package static var maximumByteCount: Int { MessageBuffer.capacity }
  /// The version of the protocol, in M1.
  package static let version: UInt64 = 1
  static let challengeType: UInt64 = 1
  static let answerType: UInt64 = 2
  static let verdictType: UInt64 = 3
  package static let compatibilityType: UInt64 = 12
  static let bulletinType: UInt64 = 7
  static let bulletinResultType: UInt64 = 8
  static let pageRequestType: UInt64 = 9
  static let pageType: UInt64 = 10
  static let receiptType: UInt64 = 11
}
