import HoldfastCore

/// The identifiers of this machine from the operating system and the board.
///
/// DMI is omitted: only root can read most of it, so DM would depend on the user.
package struct MachineIdentity {
  /// The content of `/etc/machine-id`; nil if it does not exist or is not set yet.
  let machineID: [UInt8]?
  /// The device tree's serial number; nil if there is none.
  let serialNumber: [UInt8]?

  package init(_ files: HostFiles) throws(MeasurementError) {
    let id = try files.contentsIfPresent(of: "/etc/machine-id", as: .machineID).map { Array($0[...].trimmed) } ?? []
    machineID = id.isEmpty || id[...].equals("uninitialized") ? nil : id
    let serial = try files.contentsIfPresent(of: "/proc/device-tree/serial-number", as: .serialNumber) ?? []
    serialNumber = serial.allSatisfy { $0 == 0 } ? nil : serial
  }

  var isAbsent: Bool { machineID == nil && serialNumber == nil }

  /// The deterministic CBOR array of both, null for an absent one; empty if both are absent.
  package var encoded: [UInt8] {
    guard !isAbsent else { return [] }
    var bytes: [UInt8] = []
    bytes.appendCBOR(array: 2)
    for part in [machineID, serialNumber] {
      if let part { bytes.appendCBOR(bytes: part.span) } else { bytes.appendCBORNull() }
    }
    return bytes
  }
}

/// The model of the machine's processor, independent of frequency, number of processors and microcode.
struct ProcessorModel {
  /// The labels of the lines that are used, for x86-64, Arm, RISC-V, POWER and IBM Z.
  private static let labels: [StaticString] = [
    "vendor_id", "cpu family", "model", "model name", "stepping",
    "CPU implementer", "CPU architecture", "CPU variant", "CPU part", "CPU revision",
    "isa", "uarch", "mvendorid", "marchid", "mimpid", "cpu", "revision", "machine",
  ]

  /// The deterministic CBOR array of `[label, value]` for the first processor, in the order of the list above; empty if the
  /// kernel gives none of them.
  let encoded: [UInt8]

  init(_ files: HostFiles) throws(MeasurementError) {
    let lines = try files.firstParagraph(of: "/proc/cpuinfo", as: .processor).lines.map { line in
      var value = line
      return (label: value.take(until: 0x3a).trimmed, value: value.trimmed)
    }
    var facts: [[UInt8]] = []
    for label in Self.labels {
      guard let value = lines.first(where: { $0.label.equals(label) })?.value else { continue }
      var fact: [UInt8] = []
      fact.appendCBOR(array: 2)
      fact.appendCBOR(text: label)
      fact.appendCBOR(bytes: Array(value).span)
      facts.append(fact)
    }
    guard !facts.isEmpty else {
      encoded = []
      return
    }
    var bytes: [UInt8] = []
    bytes.appendCBOR(array: facts.count)
    encoded = bytes + facts.joined()
  }
}
