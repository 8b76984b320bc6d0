/// Makes challenges that never repeat, even where the random source at boot is poor.
///
/// `HMAC-SHA-256(seed, "holdfast/1 challenge" ‖ 0x00 ‖ boot ‖ connection ‖ round ‖ entropy)[0..<16]`: the counters, 64 bits
/// each, make it unique, the seed makes it unpredictable, and entropy helps where there is some.
public struct ChallengeSource: ~Copyable {
  private let seed: Secret<32>
  private let bootCount: UInt64
  private let connection: UInt64
  private var round: UInt64 = 0

  /// - Parameters:
  ///   - seed: a secret of the device, made with its key.
  ///   - bootCount: counts the starts of the device, durably.
  ///   - connection: counts the connections since.
  public init(seed: consuming Secret<32>, bootCount: UInt64, connection: UInt64) {
    self.seed = seed
    self.bootCount = bootCount
    self.connection = connection
  }

  /// The seed that goes with a device's private key.
  public static func seed<Crypto: Cryptography & ~Copyable>(
    from scalar: borrowing Secret<32>, using cryptography: inout Crypto
  ) throws(CryptographyFailure) -> Secret<32> {
    try derivedSecret("holdfast/1 challenge seed", from: scalar, using: &cryptography)
  }

  mutating func next<Crypto: Cryptography & ~Copyable>(
    entropy: borrowing Secret<32>, using cryptography: inout Crypto
  ) throws(CryptographyFailure) -> FixedBytes<16> {
    round += 1
    var mac = try seed.withBytes { (key: Span<UInt8>) throws(CryptographyFailure) in
      try cryptography.hmacSHA256(key: key)
    }
    mac.append(domain: "holdfast/1 challenge")
    mac.append(bigEndian: bootCount)
    mac.append(bigEndian: connection)
    mac.append(bigEndian: round)
    entropy.withBytes { mac.append($0) }
    let digest = try mac.finish()
    var challenge = FixedBytes<16>()
    for index in 0..<16 { challenge[index] = digest[index] }
    return challenge
  }
}
