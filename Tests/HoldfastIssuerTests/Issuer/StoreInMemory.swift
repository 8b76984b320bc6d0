import HoldfastCore
import HoldfastFormats
import Synchronization
import TestSupport

import HoldfastIssuer

/// The calls of an issuer to its store.
enum StoreCall: String, CaseIterable {
  case approval, standing, generation, insert
}

struct StoreFailure: Error, Equatable {
  let call: StoreCall
}

/// A store in memory, which fails at the calls that it is told to, and remembers the calls.
final class StoreInMemory: IssuerStore {
  struct State {
    /// The names and versions of the approved images.
    var images: [Digest: (subject: BoundedText<64>, version: AppVersion)] = [:]
    var devices: [DeviceID: DeviceStanding] = [:]
    var generations: [DeviceID: UInt64] = [:]
    var records: [IssuanceRecord] = []
    var calls: [StoreCall] = []
    var failing: Set<StoreCall> = []
    /// The keys of the only release: 48 bytes, as a service's file has them.
    var keys: [UInt8] = []
  }

  private let state: Mutex<State>

  init(_ state: sending State) { self.state = Mutex(state) }

  var records: [IssuanceRecord] { state.withLock { $0.records } }
  var calls: [StoreCall] { state.withLock { $0.calls } }

  func change(_ body: (inout sending State) -> Void) { state.withLock { body(&$0) } }

  private func note(_ call: StoreCall) throws(StoreFailure) {
    let isFailing = state.withLock { state in
      state.calls.append(call)
      return state.failing.contains(call)
    }
    if isFailing { throw StoreFailure(call: call) }
  }

  func approval(of image: Digest) throws(StoreFailure) -> ImageApproval? {
    try note(.approval)
    guard let (known, keys) = state.withLock({ state in state.images[image].map { ($0, state.keys) } }),
      let release = try? Self.release(keys)
    else { return nil }
    return ImageApproval(subject: known.subject, version: known.version, keys: release)
  }

  func standing(of device: DeviceID) throws(StoreFailure) -> DeviceStanding {
    try note(.standing)
    return state.withLock { $0.devices[device] ?? .unknown }
  }

  func generation(of device: DeviceID) throws(StoreFailure) -> UInt64 {
    try note(.generation)
    return state.withLock { $0.generations[device] ?? 1 }
  }

  func insert(_ record: IssuanceRecord) throws(StoreFailure) -> Bool {
    try note(.insert)
    return state.withLock { state in
      guard !state.records.contains(where: { $0.baseline == record.baseline }) else { return false }
      state.records.append(record)
      return true
    }
  }

  static func release(_ keys: [UInt8]) throws -> ReleaseKeys {
    try ReleaseKeys(proof: secret(Array(keys.prefix(16))), evidence: secret(Array(keys.suffix(32))))
  }
}

/// A key that cannot sign, as a security module that is out of reach.
struct UnreachableKey: SigningKey, Sendable {
  let publicPoint: P256Point
  func sign(_ digest: Digest) throws(CryptographyFailure) -> FixedBytes<64> { throw CryptographyFailure() }
}
