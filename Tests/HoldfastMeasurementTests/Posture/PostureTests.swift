import Foundation
import HoldfastCore
import Testing

import HoldfastMeasurement

@Suite struct PostureTests {
  let host: HostFolder

  init() throws {
    host = try HostFolder()
    for (path, text) in Self.clean { try host.write(path, text) }
    try host.write(Self.efi("SecureBoot"), bytes: [6, 0, 0, 0, 1])
    for (name, number) in Self.firstNamespaces { try link(name, to: "\(name):[\(number)]") }
  }

  private static let firstNamespaces = [("pid", 4_026_531_836), ("cgroup", 4_026_531_835), ("user", 4_026_531_837)]

  private func link(_ namespace: String, to target: String) throws {
    let folder = host.root + "/proc/self/ns"
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
    try? FileManager.default.removeItem(atPath: "\(folder)/\(namespace)")
    try FileManager.default.createSymbolicLink(atPath: "\(folder)/\(namespace)", withDestinationPath: target)
  }

  /// A host without any finding.
  private static let clean = [
    ("/proc/sys/kernel/tainted", "0\n"), ("/sys/kernel/security/lockdown", "none [integrity] confidentiality\n"),
    ("/proc/modules", "loop 40960 0 - Live 0x0000000000000000\n"), ("/proc/sys/kernel/yama/ptrace_scope", "1\n"),
    ("/proc/sys/kernel/ostype", "Linux\n"), ("/proc/sys/kernel/core_pattern", "core\n"),
    ("/proc/self/cgroup", "0::/user.slice\n"), ("/sys/class/dmi/id/sys_vendor", "LENOVO\n"),
    ("/sys/module/module/parameters/sig_enforce", "Y\n"),
  ]

  private static func efi(_ name: String) -> String {
    "/sys/firmware/efi/efivars/\(name)-8be4df61-93ca-11d2-aa0d-00e098032b8c"
  }

  private func observation(_ finding: PostureFinding) -> Posture.Observation { Posture(reading: host.files)[finding] }

  @Test func `a host whose sources are all well has no finding, and nothing is unknown`() {
    let posture = Posture(reading: host.files)
    #expect(posture.observations.map(\.finding) == PostureFinding.allCases)
    #expect(posture.observations.filter { $0.state != .clear } == [])
    #expect(posture.properties == [])
  }

  private static let taints: [(String, PostureState, String)] = [
    ("4096\n", .found, "O"), ("12289\n", .found, "POE"), ("0\n", .clear, ""),
    ("1048576\n", .found, " bit 20"), ("", .unknown, ""), ("-1\n", .unknown, ""), ("0x1\n", .unknown, ""),
    ("1 1\n", .unknown, ""), ("99999999999999999999\n", .unknown, ""),
  ]

  @Test func `a taint is named by the letters of the kernel's documentation`() throws {
    for (text, state, details) in Self.taints {
      try host.write("/proc/sys/kernel/tainted", text)
      #expect(observation(.kernelTainted) == Posture.Observation(.kernelTainted, state, details.utf8))
    }
  }

  private static let bootValues: [([UInt8], PostureState)] = [
    ([6, 0, 0, 0, 1], .clear), ([6, 0, 0, 0, 0], .found), ([6, 0, 0, 0, 2], .unknown),
    ([6, 0, 0, 0], .unknown), ([1], .unknown), ([6, 0, 0, 0, 1, 1], .unknown), ([], .unknown),
  ]

  @Test func `Secure Boot is the fifth byte of five`() throws {
    for (bytes, state) in Self.bootValues {
      try host.write(Self.efi("SecureBoot"), bytes: bytes)
      #expect(observation(.secureBootOff).state == state)
    }
  }

  @Test func `setup mode, and firmware without UEFI, are no Secure Boot; a variable that is missing is unknown`() throws
  {
    try host.write(Self.efi("SetupMode"), bytes: [6, 0, 0, 0, 1])
    #expect(observation(.secureBootOff).details == "setup mode")
    try host.remove("/sys/firmware/efi/efivars")
    #expect(observation(.secureBootOff).state == .unknown)
    try host.remove("/sys/firmware/efi")
    #expect(observation(.secureBootOff) == Posture.Observation(.secureBootOff, .found, "no UEFI".utf8))
    try host.remove("/sys/firmware")
    #expect(observation(.secureBootOff).state == .unknown)
  }

  private static let lockdowns: [(String, PostureState)] = [
    ("[none] integrity confidentiality\n", .found), ("none integrity [confidentiality]\n", .clear),
    ("none integrity confidentiality\n", .unknown), ("[none] [integrity] confidentiality\n", .unknown),
    ("[strange]\n", .unknown), ("", .unknown),
  ]

  @Test func `the lockdown is the level in brackets`() throws {
    for (text, state) in Self.lockdowns {
      try host.write("/sys/kernel/security/lockdown", text)
      #expect(observation(.lockdownOff).state == state)
    }
  }

  @Test func `an unsigned module shows by its flag, and by the taint after it is gone`() throws {
    try host.write("/proc/modules", "loop 1 0 - Live 0x0\nevil 1 0 - Live 0x0 (OE)\nother 1 0 - Live 0x0 (O)\n")
    #expect(observation(.unsignedModule) == Posture.Observation(.unsignedModule, .found, "evil".utf8))
    try host.write("/proc/modules", "")
    #expect(observation(.unsignedModule).state == .clear)
    try host.write("/proc/sys/kernel/tainted", "8192\n")
    #expect(observation(.unsignedModule).state == .found)
    try host.write("/proc/modules", "half a line\n")
    #expect(observation(.unsignedModule).state == .unknown)
    try host.remove("/proc/sys/kernel/tainted")
    #expect(observation(.unsignedModule).state == .unknown)
  }

  @Test func `unsigned modules are allowed unless lockdown, the switch or the parameter forbids them`() throws {
    try host.write("/sys/kernel/security/lockdown", "[none] integrity confidentiality\n")
    #expect(observation(.unsignedModulesAllowed).state == .clear)
    try host.write("/sys/module/module/parameters/sig_enforce", "N\n")
    #expect(observation(.unsignedModulesAllowed).state == .found)
    try host.write("/proc/sys/kernel/modules_disabled", "1\n")
    #expect(observation(.unsignedModulesAllowed).state == .clear)
    try host.write("/proc/sys/kernel/modules_disabled", "0\n")
    try host.write("/sys/module/module/parameters/sig_enforce", "perhaps\n")
    #expect(observation(.unsignedModulesAllowed).state == .unknown)
    try host.remove("/sys/module/module")
    #expect(observation(.unsignedModulesAllowed).state == .found)
    try host.remove("/proc/modules")
    #expect(observation(.unsignedModulesAllowed).state == .clear)
    try host.remove("/sys/module")
    #expect(observation(.unsignedModulesAllowed).state == .unknown)
  }

  @Test func `tracing is unrestricted with scope 0 and without Yama`() throws {
    try host.write("/proc/sys/kernel/yama/ptrace_scope", "0\n")
    #expect(observation(.ptraceUnrestricted).state == .found)
    for text in ["4\n", "", "one\n"] {
      try host.write("/proc/sys/kernel/yama/ptrace_scope", text)
      #expect(observation(.ptraceUnrestricted).state == .unknown)
    }
    try host.remove("/proc/sys/kernel/yama")
    #expect(observation(.ptraceUnrestricted).details == "no Yama")
    try host.remove("/proc/sys/kernel/ostype")
    #expect(observation(.ptraceUnrestricted).state == .unknown)
  }

  @Test func `a program that gets core dumps is named, without bytes that a terminal would obey`() throws {
    try host.write("/proc/sys/kernel/core_pattern", "|/usr/lib/dump %P %u\n")
    #expect(observation(.coreDumpProgram).details == "/usr/lib/dump")
    try host.write("/proc/sys/kernel/core_pattern", bytes: [0x7c, 0x1b, 0x5b, 0x41, 0xff])
    #expect(observation(.coreDumpProgram).details == "?[A?")
    try host.remove("/proc/sys/kernel/core_pattern")
    #expect(observation(.coreDumpProgram).state == .unknown)
  }

  @Test func `an executable that others can write, own or use with more rights is found`() throws {
    let manager = FileManager.default
    #expect(observation(.executableWritable).state == .clear)
    try manager.setAttributes([.posixPermissions: 0o4755], ofItemAtPath: host.program)
    #expect(observation(.executablePrivileged).details == "setuid or setgid")
    try manager.setAttributes([.posixPermissions: 0o757], ofItemAtPath: host.program)
    #expect(observation(.executableWritable).details == String(host.program.prefix(128)))
    try manager.setAttributes([.posixPermissions: 0o755], ofItemAtPath: host.program)
    try manager.setAttributes([.posixPermissions: 0o775], ofItemAtPath: host.root + "/usr")
    #expect(observation(.executableWritable).state == .found)
    // Sticky: nobody else can replace what belongs to this user.
    try manager.setAttributes([.posixPermissions: 0o1777], ofItemAtPath: host.root + "/usr")
    #expect(observation(.executableWritable).state == .clear)
    if geteuid() == 0 {
      #expect(unsafe chown(host.program, 12345, 12345) == 0)
      #expect(observation(.executableForeign).state == .found)
      #expect(unsafe chown(host.root + "/usr/bin", 12345, 12345) == 0)
      #expect(observation(.executableWritable).state == .found)
    }
  }

  @Test func `an executable path that is gone, or a loop of links, is unknown`() throws {
    try host.remove("/usr/bin/program")
    #expect(observation(.executableWritable).state == .unknown)
    #expect(observation(.executablePrivileged).state == .unknown)
    try host.remove("/usr/bin")
    try FileManager.default.createSymbolicLink(atPath: host.root + "/usr/bin", withDestinationPath: "bin")
    #expect(observation(.executableForeign).state == .unknown)
  }

  private static let containers: [(path: String, text: String, name: String)] = [
    ("/.dockerenv", "", "docker"), ("/run/.containerenv", "engine", "podman"),
    ("/proc/self/cgroup", "0::/system.slice/docker-0123.scope\n", "docker"),
    ("/proc/self/cgroup", "1:name=systemd:/kubepods/burstable\n", "kubernetes"),
    ("/proc/sys/kernel/osrelease", "5.15.90.1-microsoft-standard-WSL2\n", "wsl"),
    ("/proc/1/environ", "A=b\0container=lxc\0", "lxc"),
  ]

  @Test func `a container shows as systemd-detect-virt sees it`() throws {
    for sign in Self.containers {
      let before = FileManager.default.contents(atPath: host.root + sign.path)
      try host.write(sign.path, sign.text)
      #expect(observation(.container) == Posture.Observation(.container, .found, sign.name.utf8))
      try host.remove(sign.path)
      if sign.path.hasPrefix("/proc/device-tree") { try host.remove("/proc/device-tree") }
      if let before { try host.write(sign.path, bytes: Array(before)) }
    }
  }

  @Test func `the daemon's own group is no container, and without a group nothing is known`() throws {
    try host.write("/proc/self/cgroup", "0::/system.slice/docker.service\n")
    #expect(observation(.container).state == .clear)
    try host.remove("/proc/self/cgroup")
    #expect(observation(.container).state == .unknown)
  }

  @Test func `in a namespace that is not the host's, and without namespaces, nothing is known about a container`()
    throws
  {
    for (name, number) in Self.firstNamespaces {
      for target in ["\(name):[4026532001]", "\(name):[\(number)", "", "other:[\(number)]"] {
        if target.isEmpty { try host.remove("/proc/self/ns/\(name)") } else { try link(name, to: target) }
        #expect(observation(.container).state == .unknown, "\(name) \(target)")
      }
      try link(name, to: "\(name):[\(number)]")
      #expect(observation(.container).state == .clear)
    }
    try host.write("/.dockerenv", "")
    try link("pid", to: "pid:[4026532001]")
    #expect(observation(.container).state == .found)
  }

  @Test func `firmware that something hides makes a virtual machine unknown, whatever the rest says`() throws {
    try host.write("/proc/cpuinfo", "flags : fpu\n")
    #expect(observation(.virtualMachine).state == .clear)
    try host.write("/sys/class/dmi/id/product_name/mounted", "")
    #expect(observation(.virtualMachine).state == .unknown)
    try host.write("/proc/cpuinfo", "flags : fpu hypervisor\n")
    #expect(observation(.virtualMachine).state == .found)
  }

  private static let machines: [(path: String, text: String, name: String)] = [
    ("/sys/class/dmi/id/sys_vendor", "QEMU\n", "qemu"), ("/sys/class/dmi/id/product_name", "VMware7,1\n", "vmware"),
    ("/sys/hypervisor/type", "xen\n", "xen"),
    ("/proc/cpuinfo", "processor : 0\nflags\t\t: fpu hypervisor sse\n", "cpu flag"),
    ("/proc/device-tree/hypervisor/compatible", "linux,kvm\0", "device tree"),
  ]

  @Test func `a virtual machine shows by its firmware or its processor`() throws {
    for sign in Self.machines {
      let before = FileManager.default.contents(atPath: host.root + sign.path)
      try host.write(sign.path, sign.text)
      #expect(observation(.virtualMachine) == Posture.Observation(.virtualMachine, .found, sign.name.utf8))
      try host.remove(sign.path)
      if sign.path.hasPrefix("/proc/device-tree") { try host.remove("/proc/device-tree") }
      if let before { try host.write(sign.path, bytes: Array(before)) }
    }
  }

  @Test func `a processor that says nothing, and no firmware, is unknown`() throws {
    try host.remove("/sys/class/dmi")
    #expect(observation(.virtualMachine).state == .unknown)
    try host.write("/proc/cpuinfo", "flags : fpu hypervisors\n")
    #expect(observation(.virtualMachine).state == .clear)
  }

  @Test func `debugger, preload, injection and agent are what a measurement finds`() throws {
    try host.write("/proc/self/task/100/status", "Name:\tgum-js-loop\nTracerPid:\t7\n")
    try host.write("/proc/self/environ", "LD_PRELOAD=/tmp/x.so\0")
    try host.addMapping("0000e000-0000f000 rwxp 00000000 00:00 0")
    #expect(observation(.debugger).details == "tracer")
    #expect(observation(.instrumentation).details == "agent thread")
    #expect(observation(.preload).details == "LD_PRELOAD")
    #expect(observation(.injection).details == "anonymous code")
    #expect(Posture(reading: host.files).properties == [])
    try host.remove("/proc/self/maps")
    for finding in [PostureFinding.debugger, .instrumentation, .preload, .injection] {
      #expect(observation(finding).state == .unknown)
    }
  }

  /// The finding about which nothing is known without a file, on the host without any finding.
  private static let dependent: [String: PostureFinding] = [
    "/proc/sys/kernel/tainted": .kernelTainted, "/sys/kernel/security/lockdown": .lockdownOff,
    "/proc/modules": .unsignedModule, "/proc/sys/kernel/yama/ptrace_scope": .ptraceUnrestricted,
    "/proc/sys/kernel/core_pattern": .coreDumpProgram, "/proc/self/cgroup": .container,
    "/sys/class/dmi/id/sys_vendor": .virtualMachine, efi("SecureBoot"): .secureBootOff,
  ]

  @Test func `a huge file, a folder, a pipe and a loop of links are never clear of anything, and never block`() throws {
    let before = Posture(reading: host.files)
    for (path, kind) in (Self.clean.map(\.0) + [Self.efi("SecureBoot")]).flatMap({ path in (0..<4).map { (path, $0) } })
    {
      let whole = host.root + path
      let content = try Data(contentsOf: URL(filePath: whole))
      try host.remove(path)
      switch kind {
      case 0:
        try Data(repeating: 0x5b, count: path == "/proc/modules" ? 1 << 20 | 1 : 1 << 16 | 1).write(
          to: URL(filePath: whole))
      case 1: try FileManager.default.createDirectory(atPath: whole, withIntermediateDirectories: false)
      case 2: #expect(unsafe mkfifo(whole, 0o600) == 0)
      default: try FileManager.default.createSymbolicLink(atPath: whole, withDestinationPath: whole)
      }
      let posture = Posture(reading: host.files)
      if let finding = Self.dependent[path] { #expect(posture[finding].state == .unknown, "\(path) \(kind)") }
      for (old, new) in zip(before.observations, posture.observations) where old != new {
        #expect(new.state != .clear || new.finding == .unsignedModulesAllowed, "\(new)")
      }
      try host.remove(path)
      try host.write(path, bytes: Array(content))
    }
  }

  @Test func `the longest properties fit into evidence next to the usual ones and the key`() throws {
    for path in ["/proc/sys", "/sys", "/proc/modules", "/proc/self/cgroup", "/proc/self/exe"] { try host.remove(path) }
    let properties = Posture(reading: host.files).properties
    #expect(properties.count == 12)
    #expect(properties.count + 3 + 1 <= Evidence.maximumPropertyCount)
    #expect(properties.contains { $0.description == "unsigned-modules-allowed-unknown" })
    #expect(properties == properties.sorted { $0.precedes($1) })
  }

  @Test func `host posture is measured only for a configuration that names it, and covers only stable findings`() throws
  {
    var measurer = Measurer(keys: .default, files: host.files)
    #expect(try !measurer.measure().app.contains { $0.id == "host.posture" })
    func digest() throws -> Digest? {
      try measurer.measureWithPosture().app.first { $0.id == "host.posture" }?.digest
    }
    let first = try #require(try digest())
    try host.write("/proc/sys/kernel/tainted", "1\n")
    #expect(try digest() == first)
    try host.write("/proc/sys/kernel/yama/ptrace_scope", "2\n")
    #expect(try digest() != first)
  }

  @Test func `a baseline with host posture is proved from a measurement without it, and fails when it changes`() throws
  {
    var measurer = Measurer(keys: .default, files: host.files)
    let whole = try measurer.measureWithPosture()
    let configuration = try MeasurementConfiguration(
      salt: ConfigurationSalt(), mpkID: ProofKeys.default.currentID(), appIDs: whole.app.map(\.id),
      deviceIDs: whole.device.map(\.id), created: 0)
    let baseline = try measurer.fingerprints(of: whole, for: configuration)
    #expect(try measurer.changedComponentCount(of: measurer.measure(), since: baseline, for: configuration) == 0)
    try host.write("/proc/sys/kernel/yama/ptrace_scope", "0\n")
    #expect(try measurer.changedComponentCount(of: measurer.measure(), since: baseline, for: configuration) == 1)
  }

  @Test func `this host has an observation for each finding`() {
    let posture = Posture.ofThisHost()
    #expect(posture.observations.count == PostureFinding.allCases.count)
    #expect(posture[.executablePrivileged].state != .unknown)
    #expect(posture[.kernelTainted].state != .unknown)
  }

  @Test func `the key of a host follows from its device secret alone`() throws {
    let first = try PostureKey.ofHost(host.files).publicPoint
    #expect(try PostureKey.ofHost(host.files).publicPoint == first)
    try host.writeDeviceSecret([UInt8](repeating: 6, count: 32))
    #expect(try PostureKey.ofHost(host.files).publicPoint != first)
    try host.writeDeviceSecret(mode: 0o644)
    #expect(throws: MeasurementError.deviceSecret(.wrongMode)) { _ = try PostureKey.ofHost(host.files) }
  }
}

extension HostFolder {
  fileprivate func write(_ path: String, bytes: [UInt8]) throws {
    try write(path, "")
    try Data(bytes).write(to: URL(filePath: root + path))
  }
}
