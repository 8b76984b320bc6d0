import HoldfastCore
import HoldfastLinux

/// The keys of the device that the vectors of a file are for, with which a device under test is made.
///
/// They are published, so nothing that matters may depend on such a device.
package struct TargetKeys {
  /// The device's id.
  package let deviceID: DeviceID
  /// The public key of the only issuer that the device trusts.
  package let issuer: P256Point
  fileprivate let scalar: FixedBytes<32>
}

extension VectorFile {
  /// Returns the keys in the first group that has any; nil if there are none.
  package func targetKeys() throws(VectorFault) -> TargetKeys? {
    for group in groups {
      guard let scalar = group.node.optional("devicePrivateKey") else { continue }
      let parties = try Parties(group.node)
      return TargetKeys(deviceID: parties.deviceID, issuer: parties.trust.publicKey, scalar: try scalar.fixed())
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
