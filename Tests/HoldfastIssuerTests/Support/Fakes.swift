import Glibc
import HoldfastCore
import HoldfastOpenSSL

@testable import HoldfastIssuer

/// A clock that stands still; nil is no clock.
struct FixedClock: Clock {
  var seconds: UInt64?
  func unixSeconds() -> UInt64? { seconds }
  func monotonicMilliseconds() -> UInt64 { 0 }
}

/// Salts in memory; it can be told to forget, and to fail.
struct MemorySeen: SeenConfigurations {
  var salts: Set<FixedBytes<32>> = []
  var forgets = false
  var fails = false

  mutating func take(_ salt: FixedBytes<32>, created: UInt64) throws(LedgerFault) -> Bool {
    if fails { throw LedgerFault() }
    return salts.insert(salt).inserted || forgets
  }
}

/// Baselines in memory; it can be told to fail.
struct MemoryIssued: IssuedBaselines {
  var devices: [Digest: DeviceID] = [:]
  var bindings: [DeviceID: Digest] = [:]
  var generations: [DeviceID: UInt64] = [:]
  var fails = false

  mutating func bind(_ device: DeviceID, to binding: Digest) throws(LedgerFault) -> Bool {
    if fails { throw LedgerFault() }
    let bound = bindings[device] ?? binding
    bindings[device] = bound
    return bound == binding
  }

  mutating func claim(_ baseline: Digest, for device: DeviceID) throws(LedgerFault) -> Bool {
    if fails { throw LedgerFault() }
    let owner = devices[baseline] ?? device
    devices[baseline] = owner
    return owner == device
  }

  mutating func generation(of device: DeviceID) throws(LedgerFault) -> UInt64 {
    generations[device] ?? 1
  }

  mutating func raiseGeneration(of device: DeviceID) throws(LedgerFault) -> UInt64 {
    generations[device] = (generations[device] ?? 1) + 1
    return generations[device] ?? 0
  }
}

/// A folder of its own for one test, removed with it.
final class TemporaryFolder {
  let path: String

  init(in directory: String = "/tmp") throws {
    var template = Array("\(directory)/holdfast-issuer-XXXXXX".utf8CString)
    guard unsafe mkdtemp(&template) != nil else { throw UnreadableFile() }
    path = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
  }

  deinit {
    removeTree(path)
  }
}

/// Removes a file, or a folder and what it holds.
func removeTree(_ path: String) {
  if let folder = unsafe opendir(path) {
    while let entry = unsafe readdir(folder) {
      let name = unsafe withUnsafePointer(to: &entry.pointee.d_name) {
        unsafe String(cString: UnsafeRawPointer($0).assumingMemoryBound(to: CChar.self))
      }
      if name != "." && name != ".." { removeTree("\(path)/\(name)") }
    }
    unsafe closedir(folder)
  }
  _ = unsafe remove(path)
}

/// The permission bits of a file.
func mode(of path: String) -> UInt32 {
  var status = stat()
  return unsafe stat(path, &status) == 0 ? status.st_mode & 0o7777 : 0
}
