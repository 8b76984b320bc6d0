import HoldfastCore
import Testing

import HoldfastMeasurement

@Suite struct ProcessorModelTests {
  let host: HostFolder

  init() throws { host = try HostFolder() }

  @Test func `vendor, family and model count, in a fixed order`() throws {
    try write("model\t\t: 17\nvendor_id\t: AuthenticAMD\nstepping\t: 1\n")
    let before = try host.digest("device.cpu")
    try write("vendor_id\t: AuthenticAMD\nstepping\t: 1\nmodel\t\t: 17\n")
    #expect(try host.digest("device.cpu") == before)
    try write("vendor_id\t: AuthenticAMD\nstepping\t: 2\nmodel\t\t: 17\n")
    #expect(try host.digest("device.cpu") != before)
  }

  @Test func `frequency, flags, microcode and number of processors do not`() throws {
    let stable = "processor\t: 0\nvendor_id\t: AuthenticAMD\nmodel name\t: AMD EPYC\n"
    try write(stable + "cpu MHz\t\t: 2596.1\nmicrocode\t: 0x1\nflags\t\t: fpu vme\nbogomips\t: 1.0\n\nprocessor\t: 1\n")
    let before = try host.digest("device.cpu")
    try write(stable + "cpu MHz\t\t: 1111.1\nmicrocode\t: 0x2\nflags\t\t: vme fpu\nbogomips\t: 2.0\n")
    #expect(try host.digest("device.cpu") == before)
  }

  @Test func `only the first processor counts, however long its text`() throws {
    let first =
      "CPU implementer\t: 0x41\nFeatures\t: " + String(repeating: "fp ", count: 1000) + "\nCPU part\t: 0xd03\n"
    try write(first + "\nCPU variant\t: 0x1\n")
    let before = try host.digest("device.cpu")
    try write(first + "\nCPU variant\t: 0x2\nvendor_id\t: other\n")
    #expect(try host.digest("device.cpu") == before)
    try write(first.replacing("0xd03", with: "0xd04"))
    #expect(try host.digest("device.cpu") != before)
  }

  @Test func `a system without this file cannot be measured`() throws {
    try host.remove("/proc/cpuinfo")
    #expect(throws: MeasurementError.unreadable(.processor, code: 2)) { try host.measurement() }
  }

  private func write(_ text: String) throws { try host.write("/proc/cpuinfo", text) }
}
