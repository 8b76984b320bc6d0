import HoldfastCore

/// The findings about the kernel, by its own statements: taint, Secure Boot, lockdown, modules, tracing and core dumps.
struct KernelPosture {
  let observations: [Posture.Observation]

  init(_ files: PostureFiles) {
    let taint = Taint(files)
    let lockdown = Lockdown(files)
    observations = [
      taint.observation, Self.secureBoot(files), lockdown.observation, Self.unsignedModule(files, taint),
      Self.unsignedModulesAllowed(files, lockdown), Self.tracing(files), Self.coreDumps(files),
    ]
  }

  /// Source: UEFI Specification 2.10, section 3.3, and Linux, Documentation/filesystems/efivarfs.rst: four bytes of attributes
  /// precede the value.
  private static func secureBoot(_ files: PostureFiles) -> Posture.Observation {
    func observation(_ state: PostureState, _ details: String = "") -> Posture.Observation {
      Posture.Observation(.secureBootOff, state, details.utf8)
    }
    func value(of name: String) -> UInt8? {
      let vendor = "8be4df61-93ca-11d2-aa0d-00e098032b8c"
      guard case .text(let bytes) = files.read("/sys/firmware/efi/efivars/\(name)-\(vendor)"), bytes.count == 5,
        bytes[4] <= 1
      else { return nil }
      return bytes[4]
    }
    if files.isKernelFolder("/sys/firmware"), files.has("/sys/firmware/efi") == false {
      return observation(.found, "no UEFI")
    }
    guard let isOn = value(of: "SecureBoot") else { return observation(.unknown) }
    // In setup mode, anybody can enrol keys.
    if value(of: "SetupMode") == 1 { return observation(.found, "setup mode") }
    return observation(isOn == 1 ? .clear : .found)
  }

  private static func unsignedModule(_ files: PostureFiles, _ taint: Taint) -> Posture.Observation {
    let modules = files.read("/proc/modules", limit: 1 << 20)
    var unsigned: [ArraySlice<UInt8>] = []
    if case .text(let text) = modules {
      for line in text.lines {
        let fields = line.split(separator: 0x20)
        guard fields.count >= 6 else { return Posture.Observation(.unsignedModule, .unknown) }
        if let flags = fields.last, flags.first == 0x28, flags.contains(0x45) { unsigned.append(fields[0]) }
      }
    }
    if !unsigned.isEmpty {
      return Posture.Observation(.unsignedModule, .found, unsigned.joined(separator: [0x20]))
    }
    // The taint stays when the module is removed.
    guard let bits = taint.bits, modules != .unreadable else { return Posture.Observation(.unsignedModule, .unknown) }
    return Posture.Observation(.unsignedModule, bits & Taint.unsignedModule != 0 ? .found : .clear)
  }

  /// Source: Linux, Documentation/admin-guide/module-signing.rst, kernel_lockdown(7).
  private static func unsignedModulesAllowed(_ files: PostureFiles, _ lockdown: Lockdown) -> Posture.Observation {
    func observation(_ state: PostureState, _ details: String = "") -> Posture.Observation {
      Posture.Observation(.unsignedModulesAllowed, state, details.utf8)
    }
    if lockdown.isOn == true { return observation(.clear, "lockdown") }
    if files.read("/proc/sys/kernel/modules_disabled").trimmed?.decimal == 1 { return observation(.clear, "disabled") }
    switch files.read("/sys/module/module/parameters/sig_enforce") {
    case .text(let bytes) where bytes[...].trimmed.equals("Y"): return observation(.clear)
    case .text(let bytes) where bytes[...].trimmed.equals("N"): return observation(.found)
    case .absent where files.isKernelFolder("/sys/module"):
      guard let hasModules = files.has("/proc/modules") else { return observation(.unknown) }
      return hasModules ? observation(.found, "no signatures") : observation(.clear, "no modules")
    case .text, .absent, .unreadable: return observation(.unknown)
    }
  }

  /// Source: Linux, Documentation/admin-guide/LSM/Yama.rst.
  private static func tracing(_ files: PostureFiles) -> Posture.Observation {
    let scope = files.read("/proc/sys/kernel/yama/ptrace_scope")
    if scope == .absent, files.read("/proc/sys/kernel/ostype").trimmed?.equals("Linux") == true {
      return Posture.Observation(.ptraceUnrestricted, .found, "no Yama".utf8)
    }
    guard let value = scope.trimmed?.decimal, value <= 3 else {
      return Posture.Observation(.ptraceUnrestricted, .unknown)
    }
    return Posture.Observation(.ptraceUnrestricted, value == 0 ? .found : .clear, "\(value)".utf8)
  }

  /// Source: core(5).
  private static func coreDumps(_ files: PostureFiles) -> Posture.Observation {
    guard case .text(let pattern) = files.read("/proc/sys/kernel/core_pattern") else {
      return Posture.Observation(.coreDumpProgram, .unknown)
    }
    // `|` begins a program, and `@` a socket to which one listens.
    guard pattern.first == 0x7c || pattern.first == 0x40 else { return Posture.Observation(.coreDumpProgram, .clear) }
    var program = pattern[1...].trimmed
    return Posture.Observation(.coreDumpProgram, .found, program.take(until: 0x20))
  }
}

/// The taint of the kernel.
///
/// Source: Linux, Documentation/admin-guide/tainted-kernels.rst.
struct Taint {
  /// The bits; nil if they cannot be read.
  let bits: UInt64?

  /// The bit of a module without a valid signature, `E`.
  static let unsignedModule: UInt64 = 1 << 13

  /// The letter of each bit, from bit 0.
  private static let letters = Array("PFSRMBUDAWCIOELKXTNJ".utf8)

  init(_ files: PostureFiles) { bits = files.read("/proc/sys/kernel/tainted").trimmed?.decimal }

  var observation: Posture.Observation {
    guard let bits else { return Posture.Observation(.kernelTainted, .unknown) }
    var details: [UInt8] = []
    for bit in 0..<64 where bits & 1 << UInt64(bit) != 0 {
      // A later kernel may have more bits than letters are known for.
      details += bit < Self.letters.count ? [Self.letters[bit]] : Array(" bit \(bit)".utf8)
    }
    return Posture.Observation(.kernelTainted, bits == 0 ? .clear : .found, details)
  }
}

/// The lockdown of the kernel.
///
/// Source: kernel_lockdown(7); the file names all levels, with the present one in brackets.
struct Lockdown {
  private let level: StaticString?

  init(_ files: PostureFiles) {
    let words = files.read("/sys/kernel/security/lockdown").trimmed?.split(separator: 0x20) ?? []
    let present = words.filter { $0.first == 0x5b && $0.last == 0x5d }.map { $0.dropFirst().dropLast() }
    level = present.count == 1 ? Self.levels.first { present[0].equals($0) } : nil
  }

  private static let levels: [StaticString] = ["none", "integrity", "confidentiality"]

  /// Whether root is kept from changing the kernel; nil if it is not known.
  var isOn: Bool? { level.map { $0.utf8CodeUnitCount != 4 } }

  var observation: Posture.Observation {
    guard let isOn, let level else { return Posture.Observation(.lockdownOff, .unknown) }
    return Posture.Observation(.lockdownOff, isOn ? .clear : .found, isOn ? Array(level.description.utf8) : [])
  }
}
