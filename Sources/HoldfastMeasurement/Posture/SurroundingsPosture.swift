/// The findings about the surroundings of the process: a container, a virtual machine, or neither.
///
/// It looks where systemd-detect-virt(1) does, and is as easy to deceive.
struct SurroundingsPosture {
  let observations: [Posture.Observation]

  init(_ files: PostureFiles) { observations = [Self.container(files), Self.virtualMachine(files)] }

  /// The files that container engines create.
  private static let markers: [(path: String, name: String)] = [
    ("/run/.containerenv", "podman"), ("/.dockerenv", "docker"), ("/run/host/container-manager", "container"),
    ("/run/systemd/container", "container"),
  ]

  /// Parts of control groups that container engines make, and the engine.
  private static let groups: [(part: StaticString, name: String)] = [
    ("/docker/", "docker"), ("/docker-", "docker"), ("/kubepods", "kubernetes"), ("/libpod", "podman"),
    ("/lxc/", "lxc"), ("/lxc.payload", "lxc"), ("/crio-", "cri-o"), ("/buildkit/", "docker"),
  ]

  private static func container(_ files: PostureFiles) -> Posture.Observation {
    func found(_ name: String) -> Posture.Observation { Posture.Observation(.container, .found, name.utf8) }
    var isKnown = true
    for marker in markers {
      switch files.has(marker.path) {
      case true: return found(marker.name)
      case false: break
      case nil: isKnown = false
      }
    }
    if files.has("/proc/vz") == true, files.has("/proc/bc") == false { return found("openvz") }
    if let release = files.read("/proc/sys/kernel/osrelease").trimmed {
      if release.contains("Microsoft") || release.contains("WSL") { return found("wsl") }
    }
    // Only root can read it, and only the manager of the container says something there.
    if case .text(let environment) = files.read("/proc/1/environ", limit: 1 << 16) {
      for entry in environment.split(separator: 0) where entry.hasPrefix("container=") && entry.count > 10 {
        return Posture.Observation(.container, .found, entry.dropFirst(10))
      }
    }
    guard case .text(let group) = files.read("/proc/self/cgroup", limit: 1 << 16) else {
      return Posture.Observation(.container, .unknown)
    }
    if let engine = groups.first(where: { group[...].contains($0.part) }) { return found(engine.name) }
    // In namespaces of its own, a process sees neither the host's control groups nor its first process, so that all of this would
    // be missing in a container too.
    for namespace in [PostureFiles.Namespace.process, .controlGroup, .user] where files.isInFirst(namespace) != true {
      isKnown = false
    }
    return Posture.Observation(.container, isKnown ? .clear : .unknown)
  }

  /// The beginnings of names that firmware of virtual machines has, and the product.
  private static let firmware: [(prefix: StaticString, name: String)] = [
    ("KVM", "kvm"), ("OpenStack", "kvm"), ("KubeVirt", "kvm"), ("Amazon EC2", "amazon"), ("QEMU", "qemu"),
    ("VMware", "vmware"), ("VMW", "vmware"), ("innotek GmbH", "virtualbox"), ("VirtualBox", "virtualbox"),
    ("Xen", "xen"), ("Bochs", "bochs"), ("Parallels", "parallels"), ("BHYVE", "bhyve"), ("Hyper-V", "hyper-v"),
    ("Virtual Machine", "hyper-v"), ("Apple Virtualization", "apple"), ("Google Compute Engine", "google"),
  ]

  private static func virtualMachine(_ files: PostureFiles) -> Posture.Observation {
    func found(_ name: String) -> Posture.Observation { Posture.Observation(.virtualMachine, .found, name.utf8) }
    var isKnown = false
    var isHidden = false
    for file in ["product_name", "sys_vendor", "board_vendor", "bios_vendor", "product_version"] {
      let reading = files.read("/sys/class/dmi/id/\(file)")
      if reading == .unreadable { isHidden = true }
      guard let text = reading.trimmed else { continue }
      isKnown = true
      if let product = firmware.first(where: { text.hasPrefix($0.prefix) }) { return found(product.name) }
    }
    if let type = files.read("/sys/hypervisor/type").trimmed, !type.isEmpty {
      return Posture.Observation(.virtualMachine, .found, type)
    }
    switch files.has("/proc/device-tree/hypervisor") {
    case true: return found("device tree")
    case false: if files.has("/proc/device-tree/compatible") == true { isKnown = true }
    case nil: break
    }
    // On x86, a hypervisor sets a flag of the processor that no real one has. Other processors have no line `flags`.
    let processors = files.read("/proc/cpuinfo", limit: 1 << 22)
    if processors == .unreadable { isKnown = false }
    if case .text(let processors) = processors {
      for line in processors.lines {
        var value = line
        guard value.take(until: 0x3a).trimmed.equals("flags") else { continue }
        isKnown = true
        if value.split(separator: 0x20).contains(where: { $0.trimmed.equals("hypervisor") }) {
          return found("cpu flag")
        }
        break
      }
    }
    // Something lies over the names that the firmware gives, as in many containers.
    return Posture.Observation(.virtualMachine, isKnown && !isHidden ? .clear : .unknown)
  }
}

/// The findings about the process itself, the same as those of a measurement.
struct ProcessPosture {
  let observations: [Posture.Observation]

  init(_ files: HostFiles) {
    var injection: Set<Finding>?
    var watchers: Set<Finding>?
    if let code = try? LiveCode(files) {
      injection = (try? Findings(injectionIn: code, files: files))?.kinds
      watchers = (try? Findings(watchersIn: code.map, files: files))?.kinds
    }
    let preload: Set<Finding> = [.preloadVariable, .auditVariable, .preloadFile, .startedByLoader]
    observations = [
      Self.observation(.debugger, [.tracer, .dumpable], in: watchers),
      Self.observation(.instrumentation, [.agentThread, .agentMapping, .agentListener], in: watchers),
      Self.observation(.preload, preload, in: injection),
      Self.observation(
        .injection,
        [
          .anonymousCode, .writableCode, .unknownToLoader, .unknownToKernel, .replacedFile, .patchedKernelCode,
        ], in: injection),
    ]
  }

  private static func observation(
    _ finding: PostureFinding, _ signs: Set<Finding>, in found: Set<Finding>?
  ) -> Posture.Observation {
    guard let found else { return Posture.Observation(finding, .unknown) }
    let names = signs.intersection(found).map(\.name.description).sorted()
    return Posture.Observation(finding, names.isEmpty ? .clear : .found, names.joined(separator: ", ").utf8)
  }
}
