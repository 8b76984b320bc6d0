import HoldfastCore
import HoldfastFirmware
import HoldfastKeys
import HoldfastOpenSSL

/// Whom the device trusts, its floors, and what it says of itself.
extension FirmwareImage {
  public func summary() throws(LedgerFault) -> LedgerSummary {
    try look { (store, _) throws(LedgerFault) in
      LedgerSummary(
        clockFloor: try store.attempt { (store) throws(StoreFailure) in try store.clockFloor() },
        bootCount: store.bootCount, keptCount: UInt64(store.keptCount), userCount: UInt64(store.userCount),
        audit: store.audit)
    }
  }

  /// Which half of the journal is in force, 1 or 2, and how many of its bytes are used.
  public func slotUse() throws(LedgerFault) -> (number: Int, usedByteCount: Int, byteCount: Int) {
    try look { (store, _) in store.slotUse }
  }

  public func issuers() throws(LedgerFault) -> [TrustedIssuer] {
    try look { (store, provision) throws(LedgerFault) in
      var issuers: [TrustedIssuer] = []
      for index in 0..<provision.issuers.count {
        let keyID = provision.issuers.keyID(index)
        guard let key = provision.issuers[keyID] else { throw .damaged }
        issuers.append(
          TrustedIssuer(
            keyID: keyID, algorithm: IssuerAlgorithm(of: key), generationFloor: try store.floor(of: keyID)))
      }
      return issuers.sorted { hexadecimal($0.keyID) < hexadecimal($1.keyID) }
    }
  }

  /// Throws `tooManyIssuers` beyond 8, or where there is no room for the generation floors of more keys.
  public func trust(_ issuer: borrowing IssuerKey, realClock: UInt64?) throws(LedgerFault) -> Bool {
    try change { (store, provision) throws(LedgerFault) in
      try Self.trust(issuer, in: &store, &provision, realClock: realClock)
    }
  }

  static func trust(
    _ issuer: borrowing IssuerKey, in store: inout Store, _ provision: inout Provision, realClock: UInt64?
  ) throws(LedgerFault) -> Bool {
    let keyID: KeyID
    var cryptography = OpenSSLCryptography()
    do throws(CryptographyFailure) {
      keyID = try HoldfastCore.keyID(of: issuer, using: &cryptography)
    } catch { throw .failed }
    if let known = provision.issuers[keyID] {
      guard known.isSame(as: issuer) else { throw .keyIDTaken }
      return false
    }
    guard provision.issuers.append(keyID, issuer) else { throw .tooManyIssuers }
    guard try store.attempt({ (store) throws(StoreFailure) in try store.canKeepFloors(of: provision.issuers) }) else {
      throw .tooManyIssuers
    }
    try store.attempt { (store) throws(StoreFailure) in try store.note(.issuerTrusted(keyID), realClock: realClock) }
    return true
  }

  public func removeTrust(_ keyID: KeyID, realClock: UInt64?) throws(LedgerFault) -> Bool {
    try change { (store, provision) throws(LedgerFault) in
      guard provision.issuers[keyID] != nil else { return false }
      var others = IssuerTable()
      for index in 0..<provision.issuers.count {
        let other = provision.issuers.keyID(index)
        guard other != keyID else { continue }
        guard let key = provision.issuers[other], others.append(other, key) else { throw .failed }
      }
      provision.issuers = others
      try store.attempt { (store) throws(StoreFailure) in try store.note(.issuerRemoved(keyID), realClock: realClock) }
      return true
    }
  }

  /// Only ahead: throws `floorOnlyRises` otherwise.
  public func moveClockFloor(to floor: UInt64, realClock: UInt64?) throws(LedgerFault) -> UInt64 {
    guard floor <= maximumInteger else { throw .floorOutOfRange }
    return try change { (store, _) throws(LedgerFault) in
      let from = try store.attempt { (store) throws(StoreFailure) in try store.clockFloor() }
      guard floor != from else { return from }
      guard floor > from else { throw .floorOnlyRises }
      try store.attempt { (store) throws(StoreFailure) in
        try store.raiseClockFloor(to: floor, realClock: realClock)
      }
      return from
    }
  }

  /// Only ahead: throws `floorOnlyRises` otherwise.
  public func moveGenerationFloor(
    of keyID: KeyID, to floor: UInt64, realClock: UInt64?
  ) throws(LedgerFault) -> UInt64 {
    guard floor <= maximumInteger else { throw .floorOutOfRange }
    return try change { (store, provision) throws(LedgerFault) in
      let from = try store.floor(of: keyID)
      guard provision.issuers[keyID] != nil || from > 0 else { throw .unknownIssuer }
      guard floor != from else { return from }
      guard floor > from else { throw .floorOnlyRises }
      try store.attempt { (store) throws(StoreFailure) in
        try store.raiseGenerationFloor(of: keyID, to: floor, realClock: realClock)
      }
      return from
    }
  }
}

extension FlashStore where Flash: ~Copyable, Crypto: ~Copyable {
  /// Runs a step of the store. It works in memory, so that it fails only over what was never written there.
  mutating func attempt<Result: ~Copyable>(
    _ step: (inout Self) throws(StoreFailure) -> Result
  ) throws(LedgerFault) -> Result {
    do throws(StoreFailure) { return try step(&self) } catch { throw .damaged }
  }

  fileprivate func floor(of keyID: KeyID) throws(LedgerFault) -> UInt64 {
    do throws(EncodingFault) { return try generationFloor(of: keyID) } catch { throw .damaged }
  }
}
