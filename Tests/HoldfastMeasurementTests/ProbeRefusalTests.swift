import Foundation
import HoldfastLinux
import Testing

import HoldfastMeasurement

/// A real process that is kept from measuring itself. It must fail, and never leave out what it could not read.
@Suite final class ProbeRefusalTests {
  let probe: ProbeFolder

  init() throws { probe = try ProbeFolder() }

  @Test(arguments: [
    ("/proc/self/maps", "unreadable(HoldfastMeasurement.MeasuredSource.memoryMap, code: 13)"),
    ("/proc/self/mem", "unreadable(HoldfastMeasurement.MeasuredSource.memory, code: 13)"),
    ("/proc/self/pagemap", "unreadable(HoldfastMeasurement.MeasuredSource.pageMap, code: 13)"),
    ("/proc/self/exe", "unreadable(HoldfastMeasurement.MeasuredSource.executable, code: 13)"),
    ("/proc/self/environ", "unreadable(HoldfastMeasurement.MeasuredSource.environment, code: 13)"),
    ("/proc/self/task", "unreadable(HoldfastMeasurement.MeasuredSource.threads, code: 13)"),
    ("/proc/self/task/", "unreadable(HoldfastMeasurement.MeasuredSource.threads, code: 13)"),
    ("/etc/ld.so.preload", "unreadable(HoldfastMeasurement.MeasuredSource.preloadFile, code: 13)"),
    ("/etc/os-release", "unreadable(HoldfastMeasurement.MeasuredSource.operatingSystem, code: 13)"),
    ("/etc/machine-id", "unreadable(HoldfastMeasurement.MeasuredSource.machineID, code: 13)"),
    ("/proc/device-tree", "unreadable(HoldfastMeasurement.MeasuredSource.serialNumber, code: 13)"),
    ("/proc/cpuinfo", "unreadable(HoldfastMeasurement.MeasuredSource.processor, code: 13)"),
    ("/lib/x86_64-linux-gnu/libc.so", "unreadable(HoldfastMeasurement.MeasuredSource.mappedFile, code: 13)"),
    ("device.secret", "deviceSecret(HoldfastMeasurement.HostSecretFault.system(13))"),
  ])
  func `a source that a filter of system calls refuses ends the measurement`(path: String, error: String) throws {
    let path = path.hasPrefix("/lib/") ? try Programs.loaded("libc.so.6") : path
    #expect(try refusal("refuse-path,\(path),13") == error)
  }

  @Test(arguments: [
    ("/proc/self/maps", "unreadable(HoldfastMeasurement.MeasuredSource.memoryMap, code: 2)"),
    ("/proc/self/mem", "unreadable(HoldfastMeasurement.MeasuredSource.memory, code: 2)"),
    ("/proc/self/environ", "unreadable(HoldfastMeasurement.MeasuredSource.environment, code: 2)"),
    ("/proc/self/pagemap", "unreadable(HoldfastMeasurement.MeasuredSource.pageMap, code: 2)"),
    // The folder opens, its threads do not.
    ("/proc/self/task/", "malformed(HoldfastMeasurement.MeasuredSource.threads)"),
    ("/proc/cpuinfo", "unreadable(HoldfastMeasurement.MeasuredSource.processor, code: 2)"),
    ("device.secret", "deviceSecret(HoldfastMeasurement.HostSecretFault.missing)"),
  ])
  func `a source that is said not to be there ends it as well`(path: String, error: String) throws {
    #expect(try refusal("refuse-path,\(path),2") == error)
  }

  @Test(arguments: [2, 13])
  func `who listens is not known when the kernel answers neither of two questions`(code: Int) throws {
    // Either is answered by the other, and the filter that refuses it shows.
    probe.expectChangedApp(try probe.measure("refuse-call,socket,1"))
    probe.expectChangedApp(try probe.measure("refuse-path,/proc/net/tcp,\(code)"))
    #expect(
      try refusal("refuse-path,/proc/net/tcp,\(code)", "refuse-call,socket,1")
        == "unreadable(HoldfastMeasurement.MeasuredSource.sockets, code: \(code))")
  }

  @Test func `what may be absent is another component when it is said to be`() throws {
    #expect(try probe.measure("refuse-path,/etc/os-release,2") != probe.baseline)
    #expect(try probe.measure("refuse-path,/etc/machine-id,2").device != probe.baseline.device)
  }

  @Test(arguments: ["pread64", "getdents64", "fstatfs", "readlinkat", "openat2"])
  func `a system call that is refused ends the measurement`(name: String) throws {
    let text = try refusal("refuse-call,\(name),1")
    #expect(text.hasPrefix("unreadable("))
  }

  @Test func `a file system that can have fs-verity and does not say so ends the measurement`() throws {
    let file = try Descriptor(opening: Programs.probe, flags: O_RDONLY)
    if FileVerity.isKernels(fileSystem: try fileSystemType(of: file.number)) {
      #expect(try refusal("refuse-call,ioctl,13").hasPrefix("unreadable("))
    } else {
      probe.expectChangedApp(try probe.measure("refuse-call,ioctl,13"))
    }
  }

  @Test func `a file that is mounted over one of the kernel's is not believed`() throws {
    let text = try refusal("mount-over,/proc/self/environ")
    if text == "disturbance 1" { try Test.cancel("this user may not mount anything") }
    #expect(text == "unreadable(HoldfastMeasurement.MeasuredSource.environment, code: 18)")
  }

  @Test(arguments: [
    ("mount-process", "memoryMap"), ("mount-process,maps", "memoryMap"), ("mount-process,mem", "memory"),
    ("mount-process,pagemap", "pageMap"), ("mount-process,environ", "environment"), ("mount-process,task", "threads"),
    ("mount-link,/proc/self/exe", "executable"), ("mount-link,/proc/self", "memoryMap"),
  ])
  func `files of another process that are mounted over its own are not believed`(
    disturbance: String, source: String
  ) throws {
    let text = try refusal(disturbance)
    if text == "disturbance 1" { try Test.cancel("this user may not mount anything") }
    #expect(text == "unreadable(HoldfastMeasurement.MeasuredSource.\(source), code: 18)")
  }

  @Test func `threads that end while they are counted do not show`() throws {
    for _ in 0..<3 { #expect(try probe.measure("short-threads") == probe.baseline) }
  }

  @Test func `a process that is not dumpable any more measures what it did before`() throws {
    #expect(try probe.measure(before: ["hardened"]) == probe.baseline)
    probe.expectChangedApp(try probe.measure("text-patch", before: ["hardened"]))
    probe.expectChangedApp(try probe.measure("tracer", before: ["hardened"]))
  }

  @Test(arguments: ["lie-dumpable", "lie-dumpable-always", "lie-dumpable-supervised"])
  func `a filter that only says that the process is not dumpable shows`(lie: String) throws {
    let (status, output) = try probe.run("explain", [], before: [lie, "hardened"])
    #expect(status == 0)
    #expect(
      output == "changed app.debug\n" + (lie == "lie-dumpable-always" && geteuid() == 0 ? "" : "property debugger\n"))
    probe.expectChangedApp(try probe.measure(before: [lie, "hardened"]))
  }

  @Test func `the same filters at the baseline are part of it`() throws {
    let (status, output) = try probe.run("baseline", ["refuse-call,ioctl,13"])
    try #require(status == 0 || output.hasPrefix("error unreadable("))
    guard status == 0 else { return }
    let (_, again) = try probe.run("measure", ["refuse-call,ioctl,13"])
    #expect(output.contains(again))
    let (_, clean) = try probe.run("measure", [])
    #expect(!output.contains(clean))
  }

  @Test func `a child does not take its parent's memory for its own`() throws {
    let patched = try probe.run("measure", ["fork", "text-patch"], before: ["hardened"])
    #expect(!patched.output.contains(probe.baseline.integrity))
    #expect(try probe.measure("fork") == probe.baseline)
  }

  /// Has the probe measure under disturbances, which must end in an error; its text.
  private func refusal(_ disturbances: String...) throws -> String {
    let (status, output) = try probe.run("measure", disturbances)
    #expect(status == 2)
    #expect(!output.contains("im ") && !output.contains("dm "))
    return String(output.drop(while: { $0 != " " }).dropFirst().dropLast())
  }
}
