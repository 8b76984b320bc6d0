import HoldfastCore

/// A weakness of the host or the process that an attacker could use, or that makes a measurement worth less.
///
/// The raw value is its name in rules, in results and as a property of evidence. A name is never used for anything else later.
public enum PostureFinding: String, Sendable, Hashable, CaseIterable {
  /// The kernel is tainted, for example by a module from elsewhere. The details are the letters of the kernel's documentation.
  case kernelTainted = "kernel-tainted"
  /// UEFI Secure Boot does not check what is started.
  case secureBootOff = "secure-boot-off"
  /// The kernel's lockdown does not keep root from changing the running kernel.
  case lockdownOff = "lockdown-off"
  /// A module without a valid signature was loaded.
  case unsignedModule = "unsigned-module"
  /// The kernel would load a module without a valid signature.
  case unsignedModulesAllowed = "unsigned-modules-allowed"
  /// A process may trace any other process of its user, because Yama is absent or off.
  case ptraceUnrestricted = "ptrace-unrestricted"
  /// The memory of a crashed process is handed to a program.
  case coreDumpProgram = "core-dump-program"
  /// The executable, or a folder on its path, can be written by a group or by everybody.
  case executableWritable = "executable-writable"
  /// The executable, or a folder on its path, belongs to a user other than root and the one that runs it.
  case executableForeign = "executable-foreign"
  /// The executable is setuid or setgid, or has capabilities.
  case executablePrivileged = "executable-privileged"
  /// The process runs in a container.
  case container
  /// The host is a virtual machine.
  case virtualMachine = "virtual-machine"
  /// A debugger is attached, or the process is readable although it asked for protection.
  case debugger
  /// A library was preloaded, or the program was started through the dynamic loader.
  case preload
  /// There is code that did not come with the app.
  case injection
  /// An instrumentation agent was found.
  case instrumentation

  /// Whether the finding stays as it is over restarts and reboots, unless somebody changes the system. Only such findings are
  /// part of the component `host.posture`.
  public var isStable: Bool {
    switch self {
    case .secureBootOff, .lockdownOff, .unsignedModulesAllowed, .ptraceUnrestricted, .coreDumpProgram: true
    case .executableWritable, .executableForeign, .executablePrivileged, .container, .virtualMachine: true
    case .kernelTainted, .unsignedModule, .debugger, .preload, .injection, .instrumentation: false
    }
  }

  /// Whether the finding is about the process. Evidence has such properties already: `debugger`, `injection` and `agent`.
  var isOfProcess: Bool {
    switch self {
    case .debugger, .preload, .injection, .instrumentation: true
    default: false
    }
  }
}

/// The result of looking for one finding.
public enum PostureState: String, Sendable, Hashable {
  /// The source was read, and shows nothing.
  case clear
  /// The weakness is there.
  case found
  /// The source is absent, cannot be read, or does not have the kernel's format, so nothing is known.
  case unknown
}

/// The posture of the host and the process at one moment: one observation for each finding.
///
/// It is what the kernel tells this process. Root, or code that runs as the same user, can make it lie.
public struct Posture: Sendable, Equatable {
  /// The result of looking for one finding.
  public struct Observation: Sendable, Equatable {
    /// The finding that was looked for.
    public let finding: PostureFinding
    /// Whether it was found.
    public let state: PostureState
    /// A few words about it, such as the letters of a taint: at most 128 bytes of printable ASCII, or empty.
    public let details: String

    /// Creates an observation; bytes of `details` that are not printable ASCII become question marks.
    package init(_ finding: PostureFinding, _ state: PostureState, _ details: some Sequence<UInt8> = []) {
      let shown = details.prefix(Self.maximumDetailByteCount).map { (0x20...0x7e).contains($0) ? $0 : 0x3f }
      (self.finding, self.state, self.details) = (finding, state, String(decoding: shown, as: UTF8.self))
    }

    private static let maximumDetailByteCount = 128
  }

  /// The observations, one for each finding, in the order of `PostureFinding.allCases`.
  public let observations: [Observation]

  /// Creates a posture from observations in any order. A finding without one is unknown; of several, the worst counts.
  package init(_ observations: [Observation]) {
    self.observations = PostureFinding.allCases.map { finding in
      let own = observations.filter { $0.finding == finding }
      return own.first { $0.state == .found } ?? own.first { $0.state == .unknown } ?? own.first
        ?? Observation(finding, .unknown)
    }
  }

  /// Looks at the running system. It takes about as long as a measurement without its hashes.
  public static func ofThisHost() -> Posture { Posture(reading: HostFiles()) }

  /// Looks at the running system, or for a test at a folder that is laid out like one.
  package init(reading files: HostFiles) {
    let source = PostureFiles(files)
    self.init(
      KernelPosture(source).observations + ExecutablePosture(files).observations
        + SurroundingsPosture(source).observations + ProcessPosture(files).observations)
  }

  /// Returns the observation of a finding.
  public subscript(finding: PostureFinding) -> Observation {
    observations.first { $0.finding == finding } ?? Observation(finding, .unknown)
  }
}

extension Posture {
  /// The properties of evidence that follow: the name of each finding about the host that was found, and the name with `-unknown`
  /// of each that could not be looked for; sorted. There are at most 12, so that they fit in next to the usual ones.
  package var properties: [BoundedText<32>] {
    let names = observations.compactMap { observation -> String? in
      guard !observation.finding.isOfProcess else { return nil }
      return switch observation.state {
      case .clear: nil
      case .found: observation.finding.rawValue
      case .unknown: observation.finding.rawValue + "-unknown"
      }
    }
    return names.compactMap { BoundedText<32>($0) }.sorted { $0.precedes($1) }
  }

  /// The deterministic CBOR array of `[name, state, details (bytes)]` of the stable findings, in the order of their names. It is
  /// what the component `host.posture` hashes.
  package var encodedStablePart: [UInt8] {
    let stable = observations.filter(\.finding.isStable).sorted { $0.finding.rawValue < $1.finding.rawValue }
    var bytes: [UInt8] = []
    bytes.appendCBOR(array: stable.count)
    for observation in stable {
      bytes.appendCBOR(array: 3)
      for text in [observation.finding.rawValue, observation.state.rawValue] {
        let utf8 = Array(text.utf8)
        bytes.appendCBOR(text: utf8.span)
      }
      let details = Array(observation.details.utf8)
      bytes.appendCBOR(bytes: details.span)
    }
    return bytes
  }
}
