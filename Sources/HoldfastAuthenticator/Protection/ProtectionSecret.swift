import HoldfastCore
import HoldfastOpenSSL

/// The input with which a user blinds a record's secret or uses it: a PIN, a key, the host's secret, or several of them.
/// All inputs that a record requires must be given together.
public struct ProtectionSecret: ~Copyable, Sendable {
  private let pin: PIN?
  private let key: ExternalKey?
  private let host: ExternalKey?
  /// The kinds of input in it.
  public let inputs: ProtectionInputs

  /// Combines inputs; nil for those that the record does not require.
  ///
  /// - Parameters:
  ///   - pin: The PIN.
  ///   - key: A key from another authenticator.
  ///   - host: The secret of the host: the 32 bytes of the file `device.secret`.
  public init(pin: consuming PIN? = nil, key: consuming ExternalKey? = nil, host: consuming ExternalKey? = nil) {
    var inputs: ProtectionInputs = []
    if pin != nil { inputs.insert(.pin) }
    if key != nil { inputs.insert(.key) }
    if host != nil { inputs.insert(.host) }
    self.inputs = inputs
    self.pin = pin
    self.key = key
    self.host = host
  }

  /// No input: the secret is stored unprotected.
  public static var none: ProtectionSecret { ProtectionSecret() }
  /// A PIN only.
  public static func pin(_ pin: consuming PIN) -> ProtectionSecret { ProtectionSecret(pin: pin) }
  /// A key from another authenticator only.
  public static func key(_ key: consuming ExternalKey) -> ProtectionSecret { ProtectionSecret(key: key) }

  /// Returns a copy of the key; nil without one.
  package borrowing func copyOfKey() -> ExternalKey? {
    switch key {
    case .some(let key): key.copy()
    case .none: nil
    }
  }

  /// Returns a copy of the host's secret; nil without one.
  package borrowing func copyOfHost() -> ExternalKey? {
    switch host {
    case .some(let host): host.copy()
    case .none: nil
    }
  }

  /// The rule for new PINs that the input breaks; nil if it breaks none.
  var ruleFault: PINFault? {
    switch pin {
    case .some(let pin): pin.ruleFault
    case .none: nil
    }
  }

  /// The number of digits of the PIN; nil without one.
  var pinLength: Int? {
    switch pin {
    case .some(let pin): pin.digits.count
    case .none: nil
    }
  }

  /// Lends the digits of the PIN to `body`, which is not called without one.
  borrowing func withPIN(
    _ body: (Span<UInt8>) throws(CryptographyFailure) -> Void
  ) throws(CryptographyFailure) {
    switch pin {
    case .some(let pin): try body(pin.digits.bytes)
    case .none: throw CryptographyFailure()
    }
  }

  /// Lends the bytes of the key to `body`, which is not called without one.
  borrowing func withKey(
    _ body: (Span<UInt8>) throws(CryptographyFailure) -> Void
  ) throws(CryptographyFailure) {
    switch key {
    case .some(let key): try body(key.bytes.bytes)
    case .none: throw CryptographyFailure()
    }
  }

  /// Lends the bytes of the host's secret to `body`, which is not called without one.
  borrowing func withHost(
    _ body: (Span<UInt8>) throws(CryptographyFailure) -> Void
  ) throws(CryptographyFailure) {
    switch host {
    case .some(let host): try body(host.bytes.bytes)
    case .none: throw CryptographyFailure()
    }
  }
}

extension ProtectionDemand {
  /// Returns whether secrets meet the demand if they need `inputs`. `pinLength` is that of a new PIN; nil for one that stays.
  func isMet(by inputs: ProtectionInputs, pinLength newLength: Int?) -> Bool {
    guard !needsKey || inputs.contains(.key) else { return false }
    guard let pinLength else { return true }
    return inputs.contains(.pin) && (newLength ?? pinLength) >= pinLength
  }
}

/// A key from another authenticator, such as a fingerprint reader, a smart card or a key ring, which replaces the PIN or
/// is needed in addition to it.
public struct ExternalKey: ~Copyable, Sendable {
  /// The permitted lengths of a key, in bytes. A shorter key could be guessed.
  public static let byteCounts = 16...1024

  let bytes: SecretBytes

  /// Copies `bytes`. Returns nil unless there are 16 to 1,024 of them.
  public init?(_ bytes: Span<UInt8>) {
    guard Self.byteCounts.contains(bytes.count) else { return nil }
    self.bytes = SecretBytes(copying: bytes)
  }

  private init(_ other: borrowing ExternalKey) { bytes = SecretBytes(copying: other.bytes.bytes) }

  /// Returns a copy of the key.
  fileprivate borrowing func copy() -> ExternalKey { ExternalKey(self) }
}
