import HoldfastCore
import HoldfastOpenSSL

/// The public parameters of a blinding. They exclude the PIN or key and do not depend on it.
package enum Protection: Equatable {
  case none
  case pin(salt: FixedBytes<16>, ScryptCost)
  case key(salt: FixedBytes<16>)

  package var kind: ProtectionKind {
    switch self {
    case .none: .none
    case .pin: .pin
    case .key: .key
    }
  }

  /// Creates a protection of a kind, with a fresh salt.
  package static func fresh<Random: RandomSource & ~Copyable>(
    _ kind: ProtectionKind, cost: ScryptCost, random: inout Random
  ) throws(AuthenticatorFault) -> Protection {
    guard kind != .none else { return .none }
    let salt: FixedBytes<16>
    do throws(RandomFailure) { salt = try random.fixedBytes() } catch { throw .failed }
    return kind == .pin ? .pin(salt: salt, cost) : .key(salt: salt)
  }
}

extension Protection {
  /// Writes `[0]`, `[1, salt, logarithm of N, r, p]` or `[2, salt]` in CBOR.
  package func encode(into bytes: inout [UInt8]) {
    switch self {
    case .none:
      bytes.appendCBOR(array: 1)
      bytes.appendCBOR(unsigned: UInt64(kind.rawValue))
    case .pin(let salt, let cost):
      bytes.appendCBOR(array: 5)
      bytes.appendCBOR(unsigned: UInt64(kind.rawValue))
      bytes.appendCBOR(bytes: salt.bytes)
      bytes.appendCBOR(unsigned: UInt64(cost.logarithm))
      bytes.appendCBOR(unsigned: UInt64(cost.blockSize))
      bytes.appendCBOR(unsigned: UInt64(cost.parallelization))
    case .key(let salt):
      bytes.appendCBOR(array: 2)
      bytes.appendCBOR(unsigned: UInt64(kind.rawValue))
      bytes.appendCBOR(bytes: salt.bytes)
    }
  }

  package var encoded: [UInt8] {
    var bytes: [UInt8] = []
    encode(into: &bytes)
    return bytes
  }

  /// Reads the encoding that ``encode(into:)`` writes.
  ///
  /// - Throws: `unexpected` for a cost out of bounds.
  package init(_ reader: inout CBORReader) throws(EncodingFault) {
    switch (try reader.arrayHead(), try reader.unsigned()) {
    case (1, 0): self = .none
    case (5, 1):
      let salt: FixedBytes<16> = try reader.fixedBytes()
      let numbers = (try reader.unsigned(), try reader.unsigned(), try reader.unsigned())
      guard max(numbers.0, numbers.1, numbers.2) <= 64,
        let cost = ScryptCost(
          logarithm: Int(numbers.0), blockSize: Int(numbers.1), parallelization: Int(numbers.2))
      else { throw .unexpected }
      self = .pin(salt: salt, cost)
    case (2, 2): self = .key(salt: try reader.fixedBytes())
    default: throw .unexpected
    }
  }

  package init(encoded bytes: [UInt8]) throws(EncodingFault) {
    var reader = CBORReader(bytes.span)
    try self.init(&reader)
    try reader.finish()
  }
}
