import HoldfastCore
import Testing

import HoldfastMeasurement

@Suite struct DebugFindingsTests {
  let host: HostFolder

  init() throws { host = try HostFolder() }

  @Test func `a process that nobody watches has the digest of absence`() throws {
    #expect(try host.digest("app.debug") == absence())
  }

  @Test func `a tracer of any thread shows, and which process it is does not`() throws {
    try host.write("/proc/self/task/101/status", "Name:\tworker\nTracerPid:\t77\n")
    let first = try host.digest("app.debug")
    #expect(try host.measurement().properties == ["debugger"])
    #expect(try host.measurement().findings == [.tracer])
    try host.write("/proc/self/task/101/status", "Name:\tworker\nTracerPid:\t78\n")
    #expect(try host.digest("app.debug") == first)
    #expect(try first != absence())
  }

  @Test(arguments: ["gum-js-loop", "pool-frida", "linjector", "frida-server"])
  func `an agent's thread shows`(name: String) throws {
    try host.write("/proc/self/task/101/status", "Name:\t\(name)\nTracerPid:\t0\n")
    #expect(try host.measurement().properties == ["agent"])
    #expect(try host.digest("app.debug") != absence())
  }

  @Test(arguments: ["gmain", "gdbus", "pool-spawner", "worker"])
  func `threads that ordinary programs have do not`(name: String) throws {
    try host.write("/proc/self/task/101/status", "Name:\t\(name)\nTracerPid:\t0\n")
    #expect(try host.digest("app.debug") == absence())
  }

  @Test(arguments: [
    "/tmp/frida-agent-64.so", "/opt/frida-gadget.so", "/data/libgadget.so", "/memfd:frida-agent-64.so",
    "/tmp/linjector-1.so",
  ])
  func `an agent's file shows, executable or not`(path: String) throws {
    try host.addMapping("0000e000-0000f000 r--p 00000000 fe:00 33 \(path)")
    #expect(try host.measurement().properties == ["agent"])
  }

  @Test(arguments: ["/proc/net/tcp", "/proc/net/tcp6"])
  func `a listener on the agent's port shows`(path: String) throws {
    try host.write(
      path, "  sl  local_address rem_address   st\n   0: 0100007F:69A2 00000000:0000 0A 00000000:0 00:0 0\n")
    #expect(try host.measurement().properties == ["agent"])
  }

  @Test func `a seccomp filter of any thread shows, and how many there are`() throws {
    func filtered(_ lines: String) throws -> Digest {
      try host.write("/proc/self/task/101/status", "Name:\tworker\nTracerPid:\t0\n\(lines)")
      return try host.digest("app.debug")
    }
    #expect(try filtered("Seccomp:\t0\nSeccomp_filters:\t0\n") == absence())
    let one = try filtered("Seccomp:\t2\nSeccomp_filters:\t1\n")
    #expect(try host.measurement().findings == [.seccompFilter])
    #expect(try host.measurement().properties == [])
    #expect(try one != absence())
    #expect(try filtered("Seccomp:\t2\n") == one)
    #expect(try filtered("Seccomp:\t2\nSeccomp_filters:\t2\n") != one)
    #expect(throws: MeasurementError.malformed(.threads)) { try filtered("Seccomp:\t\n") }
    #expect(throws: MeasurementError.malformed(.threads)) { try filtered("Seccomp:\t2\nSeccomp_filters:\tx\n") }
  }

  @Test func `a thread's status that says nothing of a tracer is an error`() throws {
    try host.write("/proc/self/task/101/status", "Name:\tworker\n")
    #expect(throws: MeasurementError.malformed(.threads)) { try host.measurement() }
  }

  @Test func `a thread that is there and has no status is an error`() throws {
    try host.write("/proc/self/task/101/other", "")
    #expect(throws: MeasurementError.malformed(.threads)) { try host.measurement() }
  }

  @Test func `without the kernel's table of sockets nobody can say who listens; without one for IPv6, somebody can`()
    throws
  {
    #expect(try host.digest("app.debug") == absence())
    try host.remove("/proc/net/tcp")
    #expect(throws: MeasurementError.unreadable(.sockets, code: 2)) { try host.measurement() }
    try host.write("/proc/net/tcp6", "  sl  local_address\n")
    #expect(throws: MeasurementError.unreadable(.sockets, code: 2)) { try host.measurement() }
  }

  @Test func `a process without threads is an error`() throws {
    try host.remove("/proc/self/task/100")
    #expect(throws: MeasurementError.malformed(.threads)) { try host.measurement() }
  }
}
