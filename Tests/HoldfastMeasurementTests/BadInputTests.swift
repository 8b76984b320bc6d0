import Glibc
import HoldfastCore
import PowerCut
import TestSupport
import Testing

import HoldfastMeasurement

@Suite struct BadInputTests {
  private let host: HostFolder

  init() throws { host = try HostFolder() }

  @Test(arguments: [DiskFault.Kind.full, .halfFull, .readOnly])
  func `a device secret that the disk refuses is an error, and made later`(
    kind: DiskFault.Kind
  ) throws {
    for operation in 0..<100 {
      let place = try TemporaryFolder(in: memoryFolder)
      let recorder = try DiskRecorder(folder: place.path)
      recorder.fault = DiskFault(operation: operation, kind: kind, lasts: true)
      var files = host.files
      files.deviceSecretPath = place.file("data/holdfast/device.secret")
      var measurer = Measurer(keys: .default, files: files)
      var fault: MeasurementError?
      recorder.recording {
        do throws(MeasurementError) { _ = try measurer.measure(makingDeviceSecret: true) } catch { fault = error }
      }
      guard recorder.operationCount > operation else {
        #expect(fault == nil)
        #expect(operation > 3)
        return
      }
      #expect(fault == nil || fault == .deviceSecret(.system(kind == .readOnly ? EROFS : ENOSPC)), "\(operation)")
      recorder.fault = nil
      let made = try measurer.measure(makingDeviceSecret: true)
      #expect(try measurer.measure().device == made.device)
    }
    Issue.record("there is no end")
  }

  @Test func `a measurement lacks what was not measured, and is not used for more`() throws {
    var measurer = Measurer(keys: .default, files: host.files)
    var random = RepeatingRandom()
    let baseline = try measurer.takeBaseline(clock: TestClock(), random: &random)
    let small = try MeasurementConfiguration(
      salt: baseline.configuration.salt, mpkID: baseline.configuration.mpkID, appIDs: ["os.release"],
      deviceIDs: ["device.cpu"], created: 0)
    let measurement = try measurer.measure(for: small)
    #expect(throws: MeasurementError.unknownComponent) {
      _ = try measurer.provableMeasurements(of: measurement, for: baseline.configuration)
    }
    #expect(throws: MeasurementError.unknownComponent) {
      _ = try measurer.changedComponentCount(
        of: measurement, since: baseline.fingerprints, for: baseline.configuration)
    }
  }
}
