import HoldfastCore

/// Which model of processor the machine has: what neither frequency, number of processors nor microcode changes.
struct ProcessorModel {
  /// The lines that count, for x86-64, Arm, RISC-V, POWER and IBM Z.
  private static let labels: [StaticString] = [
    "vendor_id", "cpu family", "model", "model name", "stepping",
    "CPU implementer", "CPU architecture", "CPU variant", "CPU part", "CPU revision",
    "isa", "uarch", "mvendorid", "marchid", "mimpid", "cpu", "revision", "machine",
  ]

  /// The deterministic CBOR array of `[label, value]` for the first processor, in the order of the list above; no bytes
  /// when the kernel gives none of them.
  let encoded: [UInt8]

  init(_ files: HostFiles) throws(MeasurementError) {
    let lines = try files.firstParagraph(of: "/proc/cpuinfo", as: .processor).lines
    var facts: [[UInt8]] = []
    for label in Self.labels {
      guard let value = Self.value(of: label, in: lines) else { continue }
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

  private static func value(of label: StaticString, in lines: [ArraySlice<UInt8>]) -> ArraySlice<UInt8>? {
    for line in lines {
      var value = line
      if value.take(until: 0x3a).trimmed.equals(label) { return value.trimmed }
    }
    return nil
  }
}
