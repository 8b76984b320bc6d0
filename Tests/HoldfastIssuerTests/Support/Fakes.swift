import HoldfastCore
import HoldfastOpenSSL

import HoldfastIssuer

/// Salts in memory; it can be told to forget, and to fail.
struct MemorySeen: SeenConfigurations {
  var salts: Set<ConfigurationSalt> = []
  var forgets = false
  var fails = false

  mutating func take(_ salt: ConfigurationSalt, created: UInt64) throws(ServiceLedgerFault) -> Bool {
    if fails { throw ServiceLedgerFault() }
    return salts.insert(salt).inserted || forgets
  }
}

/// Baselines in memory; it can be told to fail.
struct MemoryIssued: IssuedBaselines {
  var devices: [Digest: DeviceID] = [:]
  var bindings: [DeviceID: Digest] = [:]
  var generations: [DeviceID: UInt64] = [:]
  var registered: [DeviceID: RegisteredDevice] = [:]
  var tokens: [IssuanceRecord] = []
  var fails = false

  func registration(of device: DeviceID) throws(ServiceLedgerFault) -> RegisteredDevice? { registered[device] }

  mutating func bind(_ device: DeviceID, to binding: Digest) throws(ServiceLedgerFault) -> Bool {
    if fails { throw ServiceLedgerFault() }
    let bound = bindings[device] ?? binding
    bindings[device] = bound
    return bound == binding
  }

  mutating func claim(_ baseline: Digest, for device: DeviceID) throws(ServiceLedgerFault) -> Bool {
    if fails { throw ServiceLedgerFault() }
    let owner = devices[baseline] ?? device
    devices[baseline] = owner
    return owner == device
  }

  mutating func record(_ token: IssuanceRecord) throws(ServiceLedgerFault) {
    if fails { throw ServiceLedgerFault() }
    tokens.append(token)
  }

  mutating func generation(of device: DeviceID) throws(ServiceLedgerFault) -> UInt64 {
    generations[device] ?? 1
  }

  mutating func raiseGeneration(of device: DeviceID) throws(ServiceLedgerFault) -> UInt64 {
    generations[device] = (generations[device] ?? 1) + 1
    return generations[device] ?? 0
  }
}
