import HoldfastFormats

/// A reader of bytes from outside, as a function for the fuzzer.
///
/// The function reads the bytes with the product's own reader, and checks rules that must hold for every input. An error of the
/// reader is a good answer; a trap, an error of AddressSanitizer and a ``Violation`` are findings.
package struct FuzzTarget: Sendable {
  /// The name, which is also that of the corpus.
  package let name: String
  /// The files of the readers, below `Sources`. The fuzzer's dictionary is made of their string literals, and the coverage counts
  /// their lines.
  package let sources: [String]
  /// The length of the longest input that the fuzzer makes, in bytes.
  package let maximumByteCount: Int
  /// The number of variants of each kept input that differ in a byte, and the lowest number of those at limits: fewer for a slow target,
  /// of which there are fewer at limits, too.
  private let variantCount: Int
  private let body: @Sendable ([UInt8]) throws -> Void

  /// Creates a target.
  package init(
    _ name: String, _ sources: [String], maximumByteCount: Int = 4096, variantCount: Int = 64,
    _ body: @escaping @Sendable ([UInt8]) throws -> Void
  ) {
    (self.name, self.sources, self.maximumByteCount) = (name, sources, maximumByteCount)
    (self.variantCount, self.body) = (variantCount, body)
  }

  /// Gives the bytes to the reader.
  ///
  /// - Throws: ``Violation`` if a rule does not hold.
  package func run(_ bytes: [UInt8]) throws(Violation) {
    _ = try isTaken(bytes)
  }

  /// Gives the bytes to the reader, and returns what has become of them: `+` for bytes that it takes and `-` for others, and eight
  /// hexadecimal digits that depend on what it read, or on its reason.
  ///
  /// - Throws: ``Violation`` if a rule does not hold.
  package func verdict(on bytes: [UInt8]) throws(Violation) -> String {
    let notes = Notes()
    return try (judge(bytes, into: notes) ? "+" : "-") + notes.digits
  }

  /// Gives variants of the bytes to the reader, and returns eight hexadecimal digits that depend on what has become of all of them. Of
  /// an input that it refuses, no variants are at limits, because they would say little.
  ///
  /// - Parameters:
  ///   - bytes: The input.
  ///   - limits: Numbers at which the reader may have a limit.
  ///   - takenCount: The number of inputs of the corpus that the reader takes: with few, there are more variants of each at limits.
  /// - Throws: ``Violation`` if a rule does not hold.
  package func verdictOnVariants(
    of bytes: [UInt8], limits: [UInt64] = [], takenCount: Int = 1
  ) throws(Violation) -> String {
    let notes = Notes()
    var all = variants(of: bytes, count: variantCount)
    if try judge(bytes, into: notes) {
      let total = max(256 * variantCount, 16 * variantCount * variantCount)
      let count = max(variantCount, total / max(takenCount, 1)) / 2
      all += endVariants(of: bytes).prefix(variantCount)
      all += wordEndVariants(of: bytes, count: variantCount)
      all += characterVariants(of: bytes, limits: limits, count: count)
      all += wideVariants(of: bytes, count: variantCount, byteLimit: maximumByteCount)
      for limits in [limits, usualLimits] {
        all += edgeVariants(of: bytes, limits: limits, count: count, byteLimit: maximumByteCount)
      }
    }
    for variant in all {
      do throws(Violation) { notes.append(try judge(variant, into: notes) ? 1 : 0) } catch {
        throw Violation(description: "\(error.description), of the variant \(hexadecimal(variant.span))")
      }
    }
    return notes.digits
  }

  /// Gives the bytes to the reader, which notes what it reads, and returns whether it takes them.
  private func judge(_ bytes: [UInt8], into notes: Notes) throws(Violation) -> Bool {
    let result: Result<Bool, Violation> = Notes.$current.withValue(notes) {
      do throws(Violation) { return .success(try isTaken(bytes)) } catch { return .failure(error) }
    }
    return try result.get()
  }

  private func isTaken(_ bytes: [UInt8]) throws(Violation) -> Bool {
    do {
      try body(bytes)
      return true
    } catch let violation as Violation { throw violation } catch {
      note("\(error)")
      return false
    }
  }

  /// All targets, in the order in which they are fuzzed.
  package static let all: [FuzzTarget] = [
    encodingTargets, tokenTargets, sessionTargets, measurementTargets, keyTargets, formatTargets, authenticatorTargets,
    deviceTargets, issuerTargets, serviceTargets, onlineTargets, transportTargets, hostTargets,
    [tpmTarget, bulletinTarget, codeTarget, itemTarget, lineTarget, flashTarget],
  ].flatMap { $0 }
}

/// A rule that does not hold for an input.
package struct Violation: Error, CustomStringConvertible {
  /// The rule.
  package let description: String

  /// Creates the violation of a rule.
  package init(description: String) { self.description = description }
}

/// Checks a rule that must hold for every input.
func require(_ condition: Bool, _ rule: @autoclosure () -> String) throws(Violation) {
  if !condition { throw Violation(description: rule()) }
}

/// Runs a function that must not fail, because its input was accepted before.
func mustSucceed<Result: ~Copyable>(
  _ rule: @autoclosure () -> String, _ body: () throws -> Result
) throws(Violation) -> Result {
  do { return try body() } catch { throw Violation(description: "\(rule()): \(error)") }
}
