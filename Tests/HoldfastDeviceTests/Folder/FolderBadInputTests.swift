import HoldfastCore
import HoldfastFormats
import HoldfastLinux
import PowerCut
import TestSupport
import Testing

import HoldfastDevice

@Suite struct FolderBadInputTests {
  @Test(arguments: [DiskFault.Kind.full, .halfFull, .readOnly])
  func `a policy that the disk refuses leaves the old one or the new one`(kind: DiskFault.Kind) throws {
    let made = try TemporaryFolder(in: memoryFolder)
    let making = try DiskRecorder(folder: made.path)
    try making.recording { _ = try DeviceScript.make(at: made.file("device")) }
    let disk = Disk(making.changes)
    for operation in 0..<100 {
      let place = try TemporaryFolder(in: memoryFolder)
      let recorder = try DiskRecorder(folder: place.path, continuing: disk)
      let folder = try DeviceFolder.open(at: place.file("device"))
      let file = try folder.policyFile()
      let before = file.read().policy
      recorder.fault = DiskFault(operation: operation, kind: kind, lasts: true)
      let path = DeviceFile.policy.path(in: folder.path)
      let fault = recorder.recording { () -> DeviceFolderFault? in
        do throws(DeviceFolderFault) { try folder.write(.denyAll) } catch { return error }
        return nil
      }
      let now = file.read().policy
      guard recorder.operationCount > operation else {
        #expect(fault == nil && now == .denyAll)
        #expect(operation > 3)
        return
      }
      let refusal = FileError(kind == .readOnly ? .readOnly : .diskFull, at: path)
      #expect(fault == nil || fault == .file(.policy, .file(refusal)), "\(operation)")
      #expect(fault == nil ? now == .denyAll : now == before || now == .denyAll, "\(operation)")
      recorder.fault = nil
      try folder.write(.denyAll)
      #expect(file.read().policy == .denyAll)
    }
    Issue.record("there is no end")
  }

  @Test func `an issuer's key that is none is refused, and a key is trusted once`() throws {
    let device = try TestDevice()
    let before = try device.ledger.issuers().count
    let key = try TestIssuer().point
    let json = PublicKeyJWK(point: key).json.compact()
    for bytes in [[], Array("{}".utf8), Array(json.dropLast()), json + [0], [UInt8](repeating: 0x20, count: 1 << 16)] {
      #expect(throws: KeyFault.self) { try device.folder.trust(issuer: bytes) }
    }
    #expect(try device.ledger.issuers().count == before)
    #expect(try device.folder.trust(issuer: json))
    #expect(try !device.folder.trust(issuer: key))
    #expect(try device.ledger.issuers().count == before + 1)
  }
}
