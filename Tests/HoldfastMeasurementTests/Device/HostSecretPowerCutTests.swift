import Foundation
import PowerCut
import Testing

import HoldfastMeasurement

@Suite struct HostSecretPowerCutTests {
  @Test func `a power cut while the secret is made leaves it whole or none, and one that was made stays`() throws {
    let manager = FileManager.default
    let place = memoryFolder + "/holdfast-" + UUID().uuidString
    try manager.createDirectory(atPath: place, withIntermediateDirectories: false)
    defer { try? manager.removeItem(atPath: place) }
    let name = "data/holdfast/device.secret"
    let secret = try HostSecret(HostFiles(deviceSecretPath: place + "/" + name))
    let recorder = try DiskRecorder(folder: place)
    try recorder.recording { _ = try secret.readOrCreate() }
    let made = Array(try #require(manager.contents(atPath: place + "/" + name)))
    var wrong: [String] = []
    let count = recorder.changes.count
    let stage = { (changeCount: Int) in changeCount == count ? 1 : 0 }
    PowerCuts(recorder.changes).forEach(stage: stage) { cut in
      let found = cut.image.files[name]
      if found == made || found == nil && cut.changeCount < count { return }
      wrong.append("\(cut)")
    }
    #expect(wrong.isEmpty)
  }
}
