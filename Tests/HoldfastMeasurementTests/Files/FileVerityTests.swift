import HoldfastLinux
import Testing

import HoldfastMeasurement

@Suite struct FileVerityTests {
  @Test(arguments: [0xef53, 0x9123_683e, 0xf2f5_2010])
  func `ext4, Btrfs and F2FS have fs-verity of the kernel's`(type: UInt64) {
    #expect(FileVerity.isKernels(fileSystem: type))
  }

  @Test(arguments: [0x6573_5546, 0x0102_1994, 0x794c_7630, 0x0102_1997, 0x6969, 0])
  func `what FUSE, tmpfs, overlays and network file systems say does not count`(type: UInt64) {
    #expect(!FileVerity.isKernels(fileSystem: type))
  }

  @Test(arguments: [(1, 32, "sha256"), (2, 64, "sha512")])
  func `an fs-verity digest goes by the name of its algorithm`(algorithm: UInt16, count: Int, name: String) throws {
    let digest = [UInt8](repeating: 9, count: count)
    let bytes = try FileVerity.bytes(algorithm: algorithm, digest: digest.span)
    #expect(bytes == Array(name.utf8) + [0] + digest)
  }

  @Test(arguments: [(0, 32), (3, 32), (1, 64), (2, 32), (1, 0)])
  func `an fs-verity algorithm that is not known is an error`(algorithm: UInt16, count: Int) {
    let digest = [UInt8](repeating: 9, count: count)
    #expect(throws: SystemError.self) {
      try FileVerity.bytes(algorithm: algorithm, digest: digest.span)
    }
  }
}
