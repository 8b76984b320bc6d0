import HoldfastCore
import HoldfastOpenSSL

/// The id of a vault: 16 random bytes.
package typealias VaultID = FixedBytes<16>

/// The record of a vault: its key, wrapped by a passcode, by a key file, or by each of them.
///
/// The bytes are described in docs/vault.md, "The record". A MAC under a key from the host's secret covers them, so a record
/// that was cut, changed or copied from another host is recognised before anything is tried.
package struct VaultRecord: Sendable, Equatable {
  /// The key, wrapped by a passcode.
  struct PasscodeSlot: Sendable, Equatable {
    /// The number of attempts after which the vault is wiped, 3 to 100.
    let attemptLimit: Int
    let cost: ScryptCost
    let salt: FixedBytes<32>
    /// The encrypted key and its tag.
    let wrapped: FixedBytes<48>
  }

  /// The key, wrapped by a key file.
  struct KeyFileSlot: Sendable, Equatable {
    let salt: FixedBytes<32>
    let wrapped: FixedBytes<48>
  }

  static let byteCount = 265
  private static let magic = Array("holdfast-vault/1".utf8)
  private static let slotByteCounts = (passcode: 84, keyFile: 80)

  let id: VaultID
  /// A value that follows from the key and says nothing about it.
  let keyCheck: FixedBytes<32>
  /// The number of the version of this record. Of two whole copies, the one with the higher number counts.
  var revision: UInt32
  var passcode: PasscodeSlot?
  var keyFile: KeyFileSlot?

  /// Writes the record with its MAC.
  package func encoded(for host: borrowing Secret<32>) throws(CryptographyFailure) -> [UInt8] {
    var bytes = Self.magic
    bytes.append(id.bytes)
    bytes.append(keyCheck.bytes)
    bytes += (0..<4).map { UInt8(truncatingIfNeeded: revision >> (24 - 8 * $0)) }
    bytes.append((passcode == nil ? 0 : 1) | (keyFile == nil ? 0 : 2))
    if let passcode {
      bytes.append(UInt8(passcode.attemptLimit))
      bytes += passcode.cost.encoded
      bytes.append(passcode.salt.bytes)
      bytes.append(passcode.wrapped.bytes)
    } else {
      bytes += [UInt8](repeating: 0, count: Self.slotByteCounts.passcode)
    }
    if let keyFile {
      bytes.append(keyFile.salt.bytes)
      bytes.append(keyFile.wrapped.bytes)
    } else {
      bytes += [UInt8](repeating: 0, count: Self.slotByteCounts.keyFile)
    }
    let mac = try VaultMAC.compute(over: bytes, id: id, host: host)
    bytes.append(mac.bytes)
    return bytes
  }

  /// Parses a record; nil unless it is whole, of this host, and has at least one slot.
  package init?(_ bytes: [UInt8], for host: borrowing Secret<32>) throws(CryptographyFailure) {
    guard bytes.count == Self.byteCount, bytes.starts(with: Self.magic) else { return nil }
    let id = VaultID(bytes.span.extracting(16..<32))!
    guard try VaultMAC.isRight(bytes, id: id, host: host) else { return nil }
    self.id = id
    keyCheck = FixedBytes<32>(bytes.span.extracting(32..<64))!
    revision = bytes[64..<68].reduce(0) { $0 << 8 | UInt32($1) }
    let slots = bytes[68]
    guard (1...3).contains(slots) else { return nil }
    if slots & 1 != 0 {
      guard (3...100).contains(bytes[69]), let cost = ScryptCost(encoded: bytes[70..<73]) else { return nil }
      passcode = PasscodeSlot(
        attemptLimit: Int(bytes[69]), cost: cost, salt: FixedBytes(bytes.span.extracting(73..<105))!,
        wrapped: FixedBytes(bytes.span.extracting(105..<153))!)
    } else if bytes[69..<153].contains(where: { $0 != 0 }) {
      return nil
    }
    if slots & 2 != 0 {
      keyFile = KeyFileSlot(
        salt: FixedBytes(bytes.span.extracting(153..<185))!, wrapped: FixedBytes(bytes.span.extracting(185..<233))!)
    } else if bytes[153..<233].contains(where: { $0 != 0 }) {
      return nil
    }
  }

  init(id: VaultID, keyCheck: FixedBytes<32>) {
    (self.id, self.keyCheck, revision) = (id, keyCheck, 1)
  }
}

extension ScryptCost {
  fileprivate var encoded: [UInt8] { [UInt8(logarithm), UInt8(blockSize), UInt8(parallelization)] }

  fileprivate init?(encoded bytes: ArraySlice<UInt8>) {
    let numbers = bytes.map(Int.init)
    self.init(logarithm: numbers[0], blockSize: numbers[1], parallelization: numbers[2])
  }
}

/// The MAC at the end of a vault's files: HMAC-SHA-256 over all bytes before it.
///
/// The key is `HKDF-SHA-256(ikm: host secret, salt: id, info: "holdfast/1 vault files", 32 bytes)`.
package enum VaultMAC {
  /// Computes the MAC of a vault's file under the secret of its host, 32 bytes.
  package static func compute(
    over bytes: [UInt8], id: VaultID, host: borrowing Secret<32>
  ) throws(CryptographyFailure) -> FixedBytes<32> {
    let key = try host.withBytes { (host) throws(CryptographyFailure) in
      try derivedBytes(from: host, salt: id.bytes, info: Array("holdfast/1 vault files".utf8), count: 32)
    }
    var mac = FixedBytes<32>()
    var output = mac.mutableBytes
    try HMAC.sha256.authenticate(bytes.span, key: key.bytes, into: &output)
    return mac
  }

  /// Returns whether the last 32 bytes are the MAC of those before them.
  static func isRight(
    _ bytes: [UInt8], id: VaultID, host: borrowing Secret<32>
  ) throws(CryptographyFailure) -> Bool {
    let expected = try compute(over: Array(bytes.dropLast(32)), id: id, host: host)
    return constantTimeEqual(expected.bytes, bytes.span.extracting(last: 32))
  }
}

/// Derives secret bytes with HKDF-SHA-256. Source: RFC 5869 §2.
func derivedBytes(
  from inputKey: Span<UInt8>, salt: Span<UInt8>, info: [UInt8], count: Int
) throws(CryptographyFailure) -> SecretBytes {
  var output = SecretBytes(zeros: count)
  var bytes = output.mutableBytes
  try HKDF.derive(hash: .sha256, inputKey: inputKey, salt: salt, info: info.span, into: &bytes)
  return output
}
