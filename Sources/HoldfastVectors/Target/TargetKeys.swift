import HoldfastCore
import HoldfastLinux

/// The keys of the device that the vectors of a file are for, with which a device under test is made.
///
/// They are published, so nothing that matters may depend on such a device.
package struct TargetKeys {
  /// The device's id.
  package let deviceID: DeviceID
  /// The public key of the issuer that the device trusts.
  package let issuer: P256Point
  /// The key that another issuer shares with the device; nil if the file has none.
  package let macKey: FixedBytes<32>?
  fileprivate let scalar: FixedBytes<32>

  /// The same key, to be trusted.
  package var issuerMACKey: IssuerKey? {
    guard let macKey else { return nil }
    return .mac(secret(macKey))
  }
}

/// The tokens that a device under test accepts in addition to signed ones, by its policy.
package enum TargetPolicy: String, CaseIterable, Sendable {
  /// None.
  case signed
  /// Unsigned tokens.
  case unsigned
  /// Tokens under a MAC.
  case mac

  /// Whether the policy takes unsigned tokens.
  package var acceptsUnsigned: Bool { self == .unsigned }
  /// Whether the policy takes tokens under a MAC.
  package var acceptsMAC: Bool { self == .mac }
}

extension VectorFile {
  /// Returns the keys in the first group that has any; nil if there are none.
  package func targetKeys() throws(VectorFault) -> TargetKeys? {
    if let fault = faults.first { throw fault }
    for group in groups {
      guard let scalar = group.node.optional("devicePrivateKey") else { continue }
      let parties = try Parties(group.node)
      var macKey: FixedBytes<32>?
      for other in groups where other.node.value["deviceId"] == group.node.value["deviceId"] {
        if macKey == nil { macKey = try other.node.optional("macKey")?.fixed() }
      }
      return TargetKeys(
        deviceID: parties.deviceID, issuer: parties.trust.publicKey, macKey: macKey, scalar: try scalar.fixed())
    }
    return nil
  }
}

/// A random source from which the making of a device draws these keys: the first 32 bytes are the private key, and the first 16
/// bytes the id. Everything after them is random.
package struct TargetRandom: RandomSource {
  private var scalar: FixedBytes<32>?
  private var deviceID: DeviceID?
  private var system = SystemRandom()

  package init(_ keys: TargetKeys) {
    (scalar, deviceID) = (keys.scalar, keys.deviceID)
  }

  package mutating func fill(_ output: inout MutableSpan<UInt8>) throws(RandomFailure) {
    if output.count == 32, let given = scalar {
      for index in output.indices { output[index] = given[index] }
      scalar = nil
    } else if output.count == 16, let given = deviceID {
      for index in output.indices { output[index] = given[index] }
      deviceID = nil
    } else {
      try system.fill(&output)
    }
  }
}
