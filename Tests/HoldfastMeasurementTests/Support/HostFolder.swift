import Foundation
import HoldfastCore
import HoldfastOpenSSL
import TestSupport

import HoldfastMeasurement

/// A folder that is laid out like a running system with one clean process; removed at the end.
final class HostFolder {
  let root: String
  /// Where the loader says that code is.
  var loaded: [Range<UInt64>] = [0x2000..<0x4000, 0x8000..<0x9000]
  /// The files from which code is mapped, by path; otherwise the program and its library, both without fs-verity.
  var code: [String: MappedFile] = [:]
  /// Whether nothing lies there.
  var withoutFiles = false
  var program: String { root + "/usr/bin/program" }
  var deviceSecretPath: String { root + "/home/holdfast/device.secret" }

  var files: HostFiles {
    var files = [Array(program.utf8): Self.file(inode: 11), Array(Self.library.utf8): Self.file(inode: 22)]
    for (path, file) in code { files[Array(path.utf8)] = file }
    return HostFiles(
      root: root, loader: .fixed(loaded), code: .fixed(withoutFiles ? [:] : files), deviceSecretPath: deviceSecretPath)
  }

  static let library = "/usr/lib/libone.so.1"

  /// A file on the device of the map's.
  static func file(inode: UInt64, verity: [UInt8]? = nil) -> MappedFile {
    MappedFile(identity: FileIdentity(deviceMajor: 0xfe, deviceMinor: 0, inode: inode), verity: verity)
  }

  init() throws {
    root = NSTemporaryDirectory() + "holdfast-" + UUID().uuidString
    try write("/usr/bin/program", "the program")
    try write("/etc/os-release", "ID=debian\n")
    try write("/etc/machine-id", "0123456789abcdef0123456789abcdef\n")
    try write(
      "/proc/cpuinfo", "processor\t: 0\nvendor_id\t: Some\nmodel\t\t: 17\ncpu MHz\t\t: 1000.1\n\nprocessor\t: 1\n")
    try write("/proc/self/environ", "HOME=/root\0LANG=C\0")
    try write("/proc/self/task/100/status", "Name:\tprogram\nTracerPid:\t0\n")
    try FileManager.default.createSymbolicLink(atPath: root + "/proc/self/exe", withDestinationPath: program)
    try write("/proc/self/maps", cleanMap)
    try writePages(dirty: [])
    try write("/proc/net/tcp", "  sl  local_address rem_address   st\n")
    try write("/proc/self/mem", String(decoding: memory, as: UTF8.self))
    try writeDeviceSecret()
  }

  deinit { try? FileManager.default.removeItem(atPath: root) }

  /// A program of two pages of code from offset 0x1000, a library of one, and what is not code.
  var cleanMap: String {
    """
    00001000-00002000 r--p 00000000 fe:00 11 \(program)
    00002000-00004000 r-xp 00001000 fe:00 11 \(program)
    00006000-00007000 rw-p 00000000 00:00 0 [heap]
    00008000-00009000 r-xp 00002000 fe:00 22 \(Self.library)
    0000a000-0000b000 r--p 00000000 00:00 0 [vvar]
    0000c000-0000d000 r-xp 00000000 00:00 0 [vdso]
    ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0 [vsyscall]

    """
  }

  /// The contents of memory: each page is full of its own letter.
  var memory: [UInt8] { (0..<16).flatMap { [UInt8](repeating: 0x61 + $0, count: 0x1000) } }

  func write(_ path: String, _ text: String) throws {
    let file = URL(filePath: root + path)
    try FileManager.default.createDirectory(at: file.deletingLastPathComponent(), withIntermediateDirectories: true)
    try Data(text.utf8).write(to: file)
  }

  func remove(_ path: String) throws { try FileManager.default.removeItem(atPath: root + path) }

  func writeDeviceSecret(_ bytes: [UInt8] = [UInt8](repeating: 5, count: 32), mode: Int = 0o600) throws {
    let folder = root + "/home/holdfast"
    try FileManager.default.createDirectory(
      atPath: folder, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
    try FileManager.default.setAttributes([.posixPermissions: 0o700], ofItemAtPath: folder)
    try? FileManager.default.removeItem(atPath: deviceSecretPath)
    try Data(bytes).write(to: URL(filePath: deviceSecretPath))
    try FileManager.default.setAttributes([.posixPermissions: mode], ofItemAtPath: deviceSecretPath)
  }

  /// Appends a line to the memory map.
  func addMapping(_ line: String) throws { try write("/proc/self/maps", cleanMap + line + "\n") }

  /// The digest of a component as things are.
  func digest(_ id: ComponentID) throws -> Digest {
    var measurer = Measurer(keys: .default, files: files)
    let measurement = try measurer.measure()
    return (measurement.app + measurement.device).first { $0.id == id }!.digest
  }

  func measurement() throws -> LiveMeasurement {
    var measurer = Measurer(keys: .default, files: files)
    return try measurer.measure()
  }
}

/// SHA-256 of `bytes`.
func sha256(_ bytes: [UInt8]) throws -> Digest {
  var cryptography = OpenSSLCryptography()
  var hash = cryptography.sha256()
  hash.append(bytes.span)
  return try hash.finish()
}

/// SHA-256 of nothing, the digest of what is absent.
func absence() throws -> Digest { try sha256([]) }
