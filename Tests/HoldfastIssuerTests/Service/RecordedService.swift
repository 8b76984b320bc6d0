import Foundation
import HoldfastCore
import HoldfastFormats
import HoldfastOpenSSL
import PowerCut
import TestSupport

import HoldfastIssuer

/// The things that a service is asked to remember; each is named by one byte.
enum ServiceStep {
  case make
  /// The work of a new process.
  case open
  case take(UInt8)
  /// A baseline for a device.
  case claim(UInt8, UInt8)
  case raise(UInt8)
  case register(UInt8)
  /// A device by the owner.
  case add(UInt8)
  case block(UInt8)

  static let life: [ServiceStep] = [
    .make, .open, .take(1), .claim(1, 1), .raise(1), .raise(1), .open, .take(2), .claim(2, 2), .raise(2), .register(1),
    .raise(1), .add(1), .block(1), .open, .add(2),
  ]
}

/// The things that a service has said that it remembers.
struct ServiceMemory {
  var salts: Set<UInt8> = []
  var owners: [UInt8: UInt8] = [:]
  /// How often each device's generation was raised.
  var raises: [UInt8: UInt64] = [:]
  var proofKeyCount = 1
  var listed: Set<UInt8> = []
  var blocked: Set<UInt8> = []

  mutating func note(_ step: ServiceStep) {
    switch step {
    case .make, .open: break
    case .take(let salt): salts.insert(salt)
    case .claim(let baseline, let device): owners[baseline] = device
    case .raise(let device): raises[device, default: 0] += 1
    case .register: proofKeyCount += 1
    case .add(let device): listed.insert(device)
    case .block(let device): blocked.insert(device)
    }
  }
}

/// A service in a folder, and what it answered for.
struct RecordedService {
  let path: String
  let releaseKeys: [UInt8]
  let policy: ServicePolicy
  var memory = ServiceMemory()
  /// The same with what it could not do, or did not say that it did.
  private(set) var attempted = ServiceMemory()
  private var seen: SeenConfigurationsDatabase?
  private var issued: IssuedBaselinesDatabase?

  init(path: String, releaseKeys: [UInt8], policy: ServicePolicy) {
    (self.path, self.releaseKeys, self.policy) = (path, releaseKeys, policy)
  }

  private var folder: ServiceFolder { ServiceFolder(path: path) }

  /// Whether it says that it did.
  mutating func does(_ step: ServiceStep) -> Bool {
    attempted.note(step)
    do {
      guard try perform(step) else { return false }
    } catch { return false }
    memory.note(step)
    return true
  }

  /// Returns whether the service did the step.
  mutating func perform(_ step: ServiceStep) throws -> Bool {
    switch step {
    case .make: _ = try ServiceFolder.create(at: path, releaseKeys: releaseKeys.span, policy: policy)
    case .open: try open()
    case .take(let salt):
      if seen == nil { try open() }
      return try seen!.take(TypedBytes(filledWith: salt), created: 1)
    case .claim(let baseline, let device):
      if issued == nil { try open() }
      return try issued!.claim(TypedBytes(filledWith: baseline), for: TypedBytes(filledWith: device))
    case .raise(let device):
      if issued == nil { try open() }
      return try issued!.raiseGeneration(of: TypedBytes(filledWith: device)) > 1
    case .register(let key):
      let bytes = [UInt8](repeating: key, count: 48)
      try folder.register(
        MeasurementProofKey(copying: bytes.span.extracting(first: 16))!,
        EvidenceKey(copying: bytes.span.extracting(last: 32))!)
    case .add(let device):
      if issued == nil { try open() }
      return try issued!.register(Self.descriptor(device), label: nil, now: 1) != .anotherKey
    case .block(let device):
      if issued == nil { try open() }
      _ = try issued!.block(TypedBytes(filledWith: device), now: 1)
    }
    return true
  }

  private static func descriptor(_ device: UInt8) throws -> DeviceDescriptor {
    let scalar = [UInt8](repeating: 1, count: 32)
    return try DeviceDescriptor(
      deviceID: TypedBytes(filledWith: device),
      publicPoint: P256PrivateKey(scalar: Secret<32>(copying: scalar.span)!).publicPoint)
  }

  /// Closes the files, as the end of a process does.
  mutating func close() { (seen, issued) = (nil, nil) }

  private mutating func open() throws {
    (seen, issued) = (nil, nil)
    // As when a token is asked for, with every key and the policy.
    _ = try folder.attestationService()
    _ = try folder.backend()
    seen = try SeenConfigurationsDatabase(path: folder.path(of: .attestationLedger), creating: false)
    issued = try IssuedBaselinesDatabase(path: folder.path(of: .issuerLedger), creating: false)
  }

  /// The fault of the service of `image`; nil if there is none. Nothing of `known` may be forgotten, and nothing beyond
  /// `most` may be there. Nil `known`: it need not have been made, and then refuses everything.
  mutating func fault(_ image: DiskImage, knows known: ServiceMemory?, atMost most: ServiceMemory) throws -> String? {
    defer {
      (seen, issued) = (nil, nil)
      try? FileManager.default.removeItem(atPath: path)
    }
    try image.write(to: String(path.dropLast(2)))
    do {
      try open()
    } catch {
      guard known != nil else {
        let isRefused = (try? folder.attestationService()) == nil || (try? folder.backend()) == nil
        return isRefused ? nil : "is half-made"
      }
      return "cannot be opened: \(error)"
    }
    return try faultOfMemory(known ?? ServiceMemory(), most)
  }

  private mutating func faultOfMemory(_ known: ServiceMemory, _ most: ServiceMemory) throws -> String? {
    for salt in known.salts where does(.take(salt)) { return "approves a baseline again" }
    for (baseline, device) in known.owners {
      if does(.claim(baseline, device &+ 100)) { return "gives a baseline to another device" }
      if !does(.claim(baseline, device)) { return "gives a baseline no longer to its device" }
    }
    for (device, count) in most.raises {
      let generation = try issued!.generation(of: TypedBytes(filledWith: device))
      guard generation > known.raises[device] ?? 0, generation <= count + 1 else {
        return "has generation \(generation) of device \(device)"
      }
    }
    for device in try issued!.registeredDevices() {
      let id = device.deviceID[0]
      guard device.publicPoint == nil || most.listed.contains(id), device.blocked == nil || most.blocked.contains(id)
      else {
        return "has a device that nobody registered or blocked"
      }
    }
    for device in known.listed where try issued!.registration(of: TypedBytes(filledWith: device))?.publicPoint == nil {
      return "forgets a registered device"
    }
    for device in known.blocked where try issued!.registration(of: TypedBytes(filledWith: device))?.blocked == nil {
      return "forgets a blocked device"
    }
    let proofKeyCount = try folder.proofKeyIDs().count
    guard proofKeyCount >= known.proofKeyCount, proofKeyCount <= most.proofKeyCount else {
      return "has \(proofKeyCount) proof keys"
    }
    return does(.take(99)) && does(.claim(99, 1)) && does(.raise(1)) ? nil : "does not go on"
  }
}
