import Foundation
import HoldfastLinux
import Testing

import HoldfastMeasurement

@Suite final class MappedFileTests {
  let folder = NSTemporaryDirectory() + "holdfast-mapped-" + UUID().uuidString

  init() throws { try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true) }

  deinit { try? FileManager.default.removeItem(atPath: folder) }

  @Test(arguments: [
    (device: UInt64(0xfe01), major: UInt64(0xfe), minor: UInt64(1)), (0x0001_2000_56f7_8989, 0x1_2789, 0x5_6f89),
    (0xffff_ffff_fff0_0000, 0xffff_f000, 0xffff_ff00), (0x2d, 0, 0x2d),
  ])
  func `major and minor number of a device are apart in the map and together in a file's status`(
    device: UInt64, major: UInt64, minor: UInt64
  ) {
    var status = stat()
    status.st_dev = dev_t(device)
    status.st_ino = 77
    #expect(FileIdentity(status) == FileIdentity(deviceMajor: major, deviceMinor: minor, inode: 77))
  }

  @Test func `a file is found with its inode, and a link leads to it`() throws {
    let path = folder + "/file"
    try Data([1]).write(to: URL(filePath: path))
    try FileManager.default.createSymbolicLink(atPath: folder + "/link", withDestinationPath: path)
    let inode = try #require(FileManager.default.attributesOfItem(atPath: path)[.systemFileNumber] as? UInt64)
    for name in ["/file", "/link"] {
      let found = try #require(try MappedFile(at: Array((folder + name).utf8)))
      #expect(found.identity.inode == inode)
      #expect(found.verity == nil)
    }
  }

  @Test func `a name need not be UTF-8`() throws {
    let path = Array(folder.utf8) + [0x2f, 0xff, 0x80]
    let descriptor = unsafe open(path.map { CChar(bitPattern: $0) } + [0], O_CREAT | O_WRONLY, 0o600)
    #expect(descriptor >= 0)
    Glibc.close(descriptor)
    #expect(try MappedFile(at: path) != nil)
  }

  @Test(arguments: ["/nothing", "/nothing/below"])
  func `what is not there is nothing`(name: String) throws {
    #expect(try MappedFile(at: Array((folder + name).utf8)) == nil)
  }

  @Test func `a link to itself is an error, and a pipe in place of the file keeps nobody waiting`() throws {
    try FileManager.default.createSymbolicLink(atPath: folder + "/loop", withDestinationPath: folder + "/loop")
    #expect(throws: SystemError.self) { try MappedFile(at: Array((self.folder + "/loop").utf8)) }
    let made = unsafe mkfifo(folder + "/pipe", 0o600)
    #expect(made == 0)
    #expect(try MappedFile(at: Array((folder + "/pipe").utf8))?.verity == nil)
  }
}
