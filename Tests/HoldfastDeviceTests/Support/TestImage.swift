import HoldfastCore
import HoldfastFirmware
import HoldfastFormats
import HoldfastOpenSSL
import HoldfastLinux
import TestSupport

import HoldfastDevice

extension OwnerLedger {
  func trust(_ issuer: PublicKeyJWK, realClock: UInt64?) throws(LedgerFault) -> Bool {
    try trust(.signing(issuer.point), realClock: realClock)
  }
}

/// The image of a device's flash in a folder of its own.
final class TestImage {
  let place: TemporaryFolder
  private(set) var image: FirmwareImage

  init(
    policy: DevicePolicy = .forSimulatedLock, trusting issuers: [PublicKeyJWK] = [],
    operations: FileOperations = .system
  ) throws {
    place = try TemporaryFolder()
    var random = TestRandom(state: 1)
    var table = IssuerTable()
    for issuer in issuers { _ = table.append(try issuer.computedKeyID(), .signing(issuer.point)) }
    image = try FirmwareImage.create(
      at: place.file("flash.img"), policy: policy, trusting: table, random: &random, clock: TestClock(),
      operations: operations)
  }

  var path: String { image.path }

  func contents() throws -> [UInt8] { try place.contents("flash.img") }

  /// The device that a new process would see after `change` of the file.
  func reopen(
    operations: FileOperations = .system, _ change: (inout [UInt8]) -> Void = { _ in }
  ) throws {
    var bytes = try contents()
    change(&bytes)
    try place.makeFile("other.img", bytes)
    image = try FirmwareImage.open(at: place.file("other.img"), operations: operations)
    try Files.writeFileAtomically(bytes, at: place.file("flash.img"), overwrite: true)
    image = try FirmwareImage.open(at: place.file("flash.img"), operations: operations)
    try Files.removeFile(at: place.file("other.img"))
  }

  /// Why a file with these bytes is not opened; nil for one that is.
  func fault(of bytes: [UInt8]) throws -> FirmwareImageFault? {
    let path = try place.makeFile("other.img", bytes)
    do throws(FirmwareImageFault) { _ = try FirmwareImage.open(at: path) } catch { return error }
    return nil
  }
}
