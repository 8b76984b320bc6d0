import HoldfastCore
import HoldfastOpenSSL

/// The public parameters of a blinding: the salts of its masks, and what else their derivation needs. They exclude the
/// PIN and the keys.
///
/// A secret is blinded by one mask for each input, and all of them are needed: it is stored as the secret XOR the masks.
/// Nothing here or in the file lets anyone test one input while another is missing.
package struct Protection: Equatable {
  /// The salt and cost of the PIN's mask; nil without a PIN.
  package private(set) var pin: PINMask?
  /// The salt of the key's mask; nil without a key.
  package private(set) var key: FixedBytes<16>?
  /// The salt of the host's mask, and what recognises the host; nil for a record that is not bound to a host.
  package private(set) var host: HostMask?

  /// The parameters of a PIN's mask.
  package struct PINMask: Equatable {
    package let salt: FixedBytes<16>
    package let cost: ScryptCost
  }

  /// The parameters of a host's mask.
  package struct HostMask: Equatable {
    let salt: FixedBytes<16>
    /// The first 8 bytes of another value that is derived from the host's secret. They tell another host from the right
    /// one before a wrong code is shown. A host's secret is 32 random bytes, so that it cannot be searched for, and they
    /// depend on neither PIN nor key.
    let check: FixedBytes<8>
  }

  /// No protection: the secret is stored as it is.
  package static let none = Protection()

  /// The inputs that the use of the secret requires.
  package var inputs: ProtectionInputs {
    var inputs: ProtectionInputs = []
    if pin != nil { inputs.insert(.pin) }
    if key != nil { inputs.insert(.key) }
    if host != nil { inputs.insert(.host) }
    return inputs
  }

  private init() {}

  /// Creates a protection by these inputs, with fresh salts.
  package static func fresh<Random: RandomSource & ~Copyable>(
    for protector: borrowing ProtectionSecret, cost: ScryptCost, random: inout Random
  ) throws(AuthenticatorFault) -> Protection {
    var protection = Protection()
    let inputs = protector.inputs
    do throws(RandomFailure) {
      if inputs.contains(.pin) { protection.pin = PINMask(salt: try random.fixedBytes(), cost: cost) }
      if inputs.contains(.key) { protection.key = try random.fixedBytes() }
      if inputs.contains(.host) {
        let salt: FixedBytes<16> = try random.fixedBytes()
        guard let check = protector.hostCheck(salt: salt) else { throw RandomFailure() }
        protection.host = HostMask(salt: salt, check: check)
      }
    } catch { throw .failed }
    return protection
  }

  /// Returns the protection without the masks of `inputs`.
  func removing(_ inputs: ProtectionInputs) -> Protection {
    var rest = self
    if inputs.contains(.pin) { rest.pin = nil }
    if inputs.contains(.key) { rest.key = nil }
    if inputs.contains(.host) { rest.host = nil }
    return rest
  }

  /// Returns only the masks of `inputs`.
  package func only(_ inputs: ProtectionInputs) -> Protection { removing(self.inputs.subtracting(inputs)) }

  /// Returns the masks of both, which have none in common.
  func adding(_ other: Protection) -> Protection {
    var sum = self
    sum.pin = pin ?? other.pin
    sum.key = key ?? other.key
    sum.host = host ?? other.host
    return sum
  }
}

/// The inputs that the use of a record's secret requires, all of them. The raw value is the one in the file.
public struct ProtectionInputs: OptionSet, Sendable, Hashable {
  /// The bits of the inputs.
  public let rawValue: UInt8

  /// Creates a set from its bits.
  public init(rawValue: UInt8) { self.rawValue = rawValue }

  /// A PIN of 4 to 6 digits.
  public static let pin = ProtectionInputs(rawValue: 1)
  /// A key from another authenticator, such as a fingerprint reader, a smart card or a key ring.
  public static let key = ProtectionInputs(rawValue: 2)
  /// The secret of the host to which the record is bound.
  public static let host = ProtectionInputs(rawValue: 4)

  /// No input: the secret is stored unprotected.
  package static let none: ProtectionInputs = []
  /// Every kind of input.
  static let all: ProtectionInputs = [.pin, .key, .host]
}

extension Protection {
  /// Writes a CBOR array: the bits of ``inputs``, then salt, log2 of N, r and p for a PIN, the salt for a key, and salt
  /// and check value for a host.
  package func encode(into bytes: inout [UInt8]) {
    bytes.appendCBOR(array: 1 + (pin == nil ? 0 : 4) + (key == nil ? 0 : 1) + (host == nil ? 0 : 2))
    bytes.appendCBOR(unsigned: UInt64(inputs.rawValue))
    if let pin {
      bytes.appendCBOR(bytes: pin.salt.bytes)
      bytes.appendCBOR(unsigned: UInt64(pin.cost.logarithm))
      bytes.appendCBOR(unsigned: UInt64(pin.cost.blockSize))
      bytes.appendCBOR(unsigned: UInt64(pin.cost.parallelization))
    }
    if let key { bytes.appendCBOR(bytes: key.bytes) }
    if let host {
      bytes.appendCBOR(bytes: host.salt.bytes)
      bytes.appendCBOR(bytes: host.check.bytes)
    }
  }

  package var encoded: [UInt8] {
    var bytes: [UInt8] = []
    encode(into: &bytes)
    return bytes
  }

  /// Reads the encoding that ``encode(into:)`` writes.
  ///
  /// - Throws: `unexpected` for a cost out of bounds, an unknown bit, or another number of items.
  package init(_ reader: inout CBORReader) throws(EncodingFault) {
    let count = try reader.arrayHead()
    let inputs = ProtectionInputs(rawValue: UInt8(clamping: try reader.unsigned()))
    guard inputs.isSubset(of: .all) else { throw .unexpected }
    let (hasPIN, hasKey, hasHost) = (inputs.contains(.pin), inputs.contains(.key), inputs.contains(.host))
    guard count == 1 + (hasPIN ? 4 : 0) + (hasKey ? 1 : 0) + (hasHost ? 2 : 0) else { throw .unexpected }
    if hasPIN {
      let salt: FixedBytes<16> = try reader.fixedBytes()
      let numbers = (try reader.unsigned(), try reader.unsigned(), try reader.unsigned())
      guard max(numbers.0, numbers.1, numbers.2) <= 64,
        let cost = ScryptCost(
          logarithm: Int(numbers.0), blockSize: Int(numbers.1), parallelization: Int(numbers.2))
      else { throw .unexpected }
      pin = PINMask(salt: salt, cost: cost)
    }
    if hasKey { key = try reader.fixedBytes() }
    if hasHost { host = HostMask(salt: try reader.fixedBytes(), check: try reader.fixedBytes()) }
  }

  package init(encoded bytes: [UInt8]) throws(EncodingFault) {
    var reader = CBORReader(bytes.span)
    try self.init(&reader)
    try reader.finish()
  }
}
