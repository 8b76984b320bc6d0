import Glibc
import HoldfastCore
import HoldfastOpenSSL
import Synchronization

/// The keys of an app's releases, the current one first. It does not hold the keys but functions that assemble them.
///
/// A release has two keys, derived from its root in `mpk.key`. The measurement proof key (MPK) proves measurements, and every
/// token contains it. The evidence key authenticates evidence, and only the app and the attestation service know it.
///
/// The build plugin HoldfastProofKeys reads `mpk.key` at the root of an app's package, and gives the app's target the value
/// `ProofKeys.app`. ``default`` is for trying things out.
public struct ProofKeys: Sendable {
  /// A function that assembles the key of a release.
  ///
  /// It may be called from any thread, several times at once.
  ///
  /// - Parameters:
  ///   - index: the release, from 0 to the number of releases − 1.
  ///   - key: the bytes to set, all of them: 16 for a measurement proof key, 32 for an evidence key.
  public typealias Assembly = @Sendable (_ index: Int, _ key: inout MutableSpan<UInt8>) -> Void

  /// The largest number of releases.
  public static let maximumCount = 64

  /// The number of releases, 1 to 64.
  public let count: Int

  private let assembleMeasurementProofKey: Assembly
  private let assembleEvidenceKey: Assembly

  /// Creates the keys of an app. The plugin HoldfastProofKeys writes the call.
  ///
  /// - Parameters:
  ///   - count: the number of releases, 1 to 64; another number ends the program.
  ///   - measurementProofKey: assembles the MPK of a release, 16 bytes.
  ///   - evidenceKey: assembles the evidence key of a release, 32 bytes.
  public init(count: Int, measurementProofKey: @escaping Assembly, evidenceKey: @escaping Assembly) {
    precondition((1...Self.maximumCount).contains(count), "an app has the keys of 1 to 64 releases")
    self.count = count
    (assembleMeasurementProofKey, assembleEvidenceKey) = (measurementProofKey, evidenceKey)
  }

  /// Whether the current release has the default key, which everybody knows.
  public var isDefault: Bool { isDefault(at: 0) }

  /// Returns `value` in a way that hides it from the optimiser, for the functions that the plugin writes.
  public static func opaque(_ value: UInt8) -> UInt8 { HoldfastCore.opaque(value) }
}

extension ProofKeys {
  /// Returns the measurement proof key at `index`, which must be below ``count``: 16 bytes.
  package func measurementProofKey(at index: Int = 0) -> MeasurementProofKey {
    precondition(index >= 0 && index < count)
    var key = MeasurementProofKey()
    key.withMutableBytes { assembleMeasurementProofKey(index, &$0) }
    return key
  }

  /// Returns the evidence key at `index`, which must be below ``count``: 32 bytes.
  package func evidenceKey(at index: Int = 0) -> EvidenceKey {
    precondition(index >= 0 && index < count)
    var key = EvidenceKey()
    key.withMutableBytes { assembleEvidenceKey(index, &$0) }
    return key
  }

  /// Returns the id of the current measurement proof key, which a baseline names.
  ///
  /// - Throws: `cryptography` if the library fails.
  package func currentID() throws(MeasurementError) -> KeyID { try id(at: 0) }

  /// Returns the measurement proof key with that id; nil if it is not one of these.
  ///
  /// - Throws: `cryptography` if the library fails.
  package func measurementProofKey(named id: KeyID) throws(MeasurementError) -> MeasurementProofKey? {
    guard let index = try index(of: id) else { return nil }
    return measurementProofKey(at: index)
  }

  /// Returns the measurement proof key with that id, for a proof; nil if it is not one of these.
  ///
  /// Warns if it is the default key.
  func provingKey(named id: KeyID) throws(MeasurementError) -> MeasurementProofKey? {
    guard let index = try index(of: id) else { return nil }
    warnIfDefault(at: index)
    return measurementProofKey(at: index)
  }

  /// Warns on standard error, once per process, if a release has the default key. Baselines and proofs call it themselves.
  package func warnIfDefault(at index: Int = 0) {
    guard isDefault(at: index), !hasWarned.exchange(true, ordering: .relaxed) else { return }
    let text = """
      holdfast: warning: this program has the default key, which everybody knows: its proofs show nothing about who made \
      them. Build it with an mpk.key

      """
    _ = unsafe write(STDERR_FILENO, text, text.utf8.count)
  }

  private func isDefault(at index: Int) -> Bool {
    let key = measurementProofKey(at: index)
    let known = Self.default.measurementProofKey()
    return key.withBytes { key in known.withBytes { known in constantTimeEqual(key, known) } }
  }

  private func index(of id: KeyID) throws(MeasurementError) -> Int? {
    for index in 0..<count where try self.id(at: index) == id { return index }
    return nil
  }

  private func id(at index: Int) throws(MeasurementError) -> KeyID {
    var cryptography = OpenSSLCryptography()
    do throws(CryptographyFailure) {
      return try measurementProofKeyID(measurementProofKey(at: index), using: &cryptography)
    } catch {
      throw .cryptography
    }
  }
}

private let hasWarned = Atomic(false)

extension ProofKeys {
  /// The default key, which everybody knows, and which therefore protects nothing.
  ///
  /// Any program that enrols or proves with it warns about that once, on standard error. A service accepts it only from images
  /// that its owner approved without a key file.
  public static let `default` = ProofKeys(
    count: 1, measurementProofKey: { set(&$1, to: defaultMeasurementProofKey) },
    evidenceKey: { set(&$1, to: defaultEvidenceKey) })

  private static func set(_ key: inout MutableSpan<UInt8>, to bytes: [UInt8]) {
    for index in key.indices { key[index] = bytes[index] }
  }

  /// The keys that follow from the root in `ReleaseRoots.default()`.
  private static let defaultMeasurementProofKey: [UInt8] = [
    0x13, 0xed, 0x81, 0x6d, 0x0d, 0x27, 0x92, 0xab, 0xdc, 0x93, 0xa0, 0x4a, 0xd1, 0xa7, 0x59, 0xfc,
  ]
  private static let defaultEvidenceKey: [UInt8] = [
    0xef, 0x9c, 0xe3, 0xc4, 0x60, 0x25, 0x77, 0xf1, 0xa7, 0x8f, 0x35, 0x64, 0xa4, 0xf2, 0xf6, 0x20,
    0x9a, 0x8a, 0x5a, 0x25, 0x6f, 0x30, 0x61, 0x0d, 0xc9, 0x0f, 0xce, 0x61, 0xbb, 0xd0, 0xa2, 0x5f,
  ]
}
