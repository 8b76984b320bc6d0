import HoldfastCore
import HoldfastOpenSSL
import TestSupport
import Testing

import HoldfastFirmware

/// The parts that a device reads from its flash at each start.
@Suite struct FirmwarePartsTests {
  private typealias Parts = FirmwareParts<SimulatedFlash, P256PrivateKey, TestRandom>

  /// The secret and the number that a random source gets at a start with this flash.
  private func seed(from flash: TestFlash) throws -> (secret: String, bootCount: UInt64) {
    var cryptography = OpenSSLCryptography()
    var given = (secret: "", bootCount: UInt64(0))
    _ = try Parts.read(
      flash.powered(), using: &cryptography,
      key: { (scalar) throws(CryptographyFailure) in try P256PrivateKey(scalar: scalar) },
      random: { (secret, bootCount) in
        given = (secret.withBytes { hex($0) }, bootCount)
        return TestRandom(state: bootCount)
      })
    return given
  }

  @Test func `the random source gets a secret of this device only, and a number that no start had before`() throws {
    let firmware = try TestFirmware()
    for start: UInt64 in 1...3 {
      let (secret, bootCount) = try seed(from: firmware.flash)
      // HKDF-SHA-256 of 32 bytes of 0x42, without salt, with the label "holdfast/1 random seed".
      #expect(secret == "9ed1bbd19fe93ff65f61aff957cc0d1a9e1ce1028479ec301d3279dd3f91ff53")
      #expect(bootCount == start)
      var store = try firmware.open()
      let counted = try store.start(realClock: nil)
      #expect(counted == start)
    }
    var store = try firmware.open()
    try store.compact()
    #expect(try seed(from: firmware.flash).bootCount == 4)
  }
}
