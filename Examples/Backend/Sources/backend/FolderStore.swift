import Foundation
import HoldfastCore
import HoldfastIssuer

/// A backend's memory in a folder: `images/DIGEST/app.json` and `mpk.key`, `devices/ID.json`, and `issued/BASELINE`.
struct FolderStore: IssuerStore {
  struct App: Codable { let subject: String, major: UInt64, minor: UInt64, patch: UInt64 }
  let folder: String

  func approval(of image: Digest) throws -> ImageApproval? {
    let name = "images/\(hex(image.bytes))"
    guard let text = try read("\(name)/app.json"), let keyFile = try read("\(name)/mpk.key") else { return nil }
    let app = try JSONDecoder().decode(App.self, from: Data(text))
    guard let subject = BoundedText<64>(app.subject) else { throw CocoaError(.fileReadCorruptFile) }
    let version = AppVersion(major: app.major, minor: app.minor, patch: app.patch)
    return ImageApproval(subject: subject, version: version, keys: try ReleaseKeys(newestInKeyFile: keyFile.span))
  }

  func standing(of device: DeviceID) throws -> DeviceStanding {
    guard let text = try read("devices/\(hex(device.bytes)).json") else { return .unknown }
    return .registered(try DeviceDescriptor(json: text).publicPoint)
  }

  func generation(of device: DeviceID) throws -> UInt64 { 1 }

  func insert(_ record: IssuanceRecord) throws -> Bool {
    let path = "\(folder)/issued/\(hex(record.baseline.bytes))"
    // Only one process creates the file. One that is empty after a crash counts as well: its baseline was used.
    let file = open(path, O_WRONLY | O_CREAT | O_EXCL, 0o600)
    if file < 0 && errno == EEXIST { return false }
    guard file >= 0 else { throw CocoaError(.fileWriteUnknown) }
    let handle = FileHandle(fileDescriptor: file, closeOnDealloc: true)
    try handle.write(contentsOf: Data("\(hex(record.tokenID.bytes)) \(record.expires) \(record.subject)\n".utf8))
    try handle.synchronize()
    try FileHandle(forReadingFrom: URL(filePath: "\(folder)/issued")).synchronize()
    return true
  }

  /// Returns the content of a file; nil if there is none.
  private func read(_ name: String) throws -> [UInt8]? {
    guard access("\(folder)/\(name)", F_OK) == 0 || errno != ENOENT else { return nil }
    return try Array(Data(contentsOf: URL(filePath: "\(folder)/\(name)")))
  }
}

func hex(_ bytes: Span<UInt8>) -> String { bytes.indices.map { String(format: "%02x", bytes[$0]) }.joined() }
