/// The visits in a file: comma-separated values with the header `seconds,prover,device`, and a line for each visit with three decimal
/// numbers, in the order of the times. Provers and devices are counted from 0.
package enum VisitPattern {
  /// The first line.
  package static let header = "seconds,prover,device"
  /// The most bytes of a file.
  package static let byteLimit = 256 << 20

  /// Reads the visits.
  ///
  /// - Parameters:
  ///   - bytes: the contents of the file. The last line may end with a line feed.
  ///   - proverCount: the number of provers.
  ///   - deviceCount: the number of devices.
  ///   - duration: the seconds of the simulation, in which all visits lie.
  /// - Throws: ``PatternMistake`` with the number of the line.
  package static func visits(
    in bytes: [UInt8], proverCount: Int, deviceCount: Int, duration: UInt64
  ) throws(PatternMistake) -> [SimulatedVisit] {
    var lines = bytes.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false)[...]
    if lines.last?.isEmpty == true { lines.removeLast() }
    guard let first = lines.popFirst(), first.elementsEqual(header.utf8) else {
      throw PatternMistake(line: 1, reason: .header)
    }
    guard !lines.isEmpty else { throw PatternMistake(line: 2, reason: .noVisits) }
    var visits: [SimulatedVisit] = []
    visits.reserveCapacity(lines.count)
    for (index, line) in lines.enumerated() {
      let reason = add(line, to: &visits, proverCount: proverCount, deviceCount: deviceCount, duration: duration)
      if let reason { throw PatternMistake(line: index + 2, reason: reason) }
    }
    return visits
  }

  /// Adds the visit of a line. Returns the mistake in it, if there is one.
  private static func add(
    _ line: ArraySlice<UInt8>, to visits: inout [SimulatedVisit], proverCount: Int, deviceCount: Int, duration: UInt64
  ) -> PatternMistake.Reason? {
    let fields = line.split(separator: UInt8(ascii: ","), omittingEmptySubsequences: false)
    guard fields.count == 3 else { return .fields }
    let numbers = fields.compactMap(number)
    guard numbers.count == 3 else { return .number }
    guard numbers[0] < duration else { return .afterEnd }
    guard numbers[0] >= visits.last?.second ?? 0 else { return .order }
    guard numbers[1] < UInt64(proverCount) else { return .prover }
    guard numbers[2] < UInt64(deviceCount) else { return .device }
    visits.append(SimulatedVisit(second: numbers[0], prover: Int(numbers[1]), device: Int(numbers[2])))
    return nil
  }

  /// Reads 1 to 15 decimal digits without zeros in front.
  private static func number(_ field: ArraySlice<UInt8>) -> UInt64? {
    guard (1...15).contains(field.count), field.count == 1 || field.first != UInt8(ascii: "0") else { return nil }
    var value: UInt64 = 0
    for digit in field {
      guard (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(digit) else { return nil }
      value = value * 10 + UInt64(digit - UInt8(ascii: "0"))
    }
    return value
  }
}

/// A mistake in a file of visits.
package struct PatternMistake: Error, Equatable {
  /// The number of the line, from 1.
  package let line: Int
  /// The mistake.
  package let reason: Reason

  /// The kinds of mistakes.
  package enum Reason: Sendable {
    /// The first line is not the header.
    case header
    /// There is no visit.
    case noVisits
    /// The line does not have three fields.
    case fields
    /// A field is not a decimal number of at most 15 digits, without zeros in front.
    case number
    /// The time is not before the end of the simulation.
    case afterEnd
    /// The time is before that of the line before.
    case order
    /// There is no such prover.
    case prover
    /// There is no such device.
    case device
  }
}
