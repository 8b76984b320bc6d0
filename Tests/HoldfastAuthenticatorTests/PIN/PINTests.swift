import HoldfastAuthenticator
import Testing

@Suite struct PINTests {
  private func fault(_ digits: String) -> PINFault? {
    do throws(PINFault) { return try PIN(digits).ruleFault } catch { return error }
  }

  @Test(
    arguments: [
      ("1357", nil), ("246801", nil), ("90210", nil), ("4711", nil), ("119233", nil), ("112211", nil), ("100200", nil),
      ("123", .length), ("1234567", .length), ("", .length), ("12a4", .notDigits), ("12 4", .notDigits),
      ("/135", .notDigits), (":135", .notDigits), ("135é", .notDigits),
      ("1234", .run), ("9876", .run), ("8901", .run), ("2109", .run), ("345678", .run), ("43210", .run),
      ("1111", .repetition), ("000000", .repetition), ("1212", .repetition), ("123123", .repetition),
      ("121212", .repetition), ("47474", .repetition),
      ("1985", .year), ("2031", .year), ("198507", .year), ("071985", .year), ("522019", .year), ("52013", .year),
      ("200000", .year),
    ] as [(String, PINFault?)])
  func `a new PIN meets the rules or breaks one of them`(digits: String, expected: PINFault?) {
    #expect(fault(digits) == expected)
  }

  /// The rules once more, as one would say them.
  private func breaksRules(_ text: String) -> PINFault? {
    let digits = text.utf8.map { Int($0) - 48 }
    let steps = zip(digits, digits.dropFirst()).map { ($1 - $0 + 10) % 10 }
    if steps.allSatisfy({ $0 == 1 }) || steps.allSatisfy({ $0 == 9 }) { return .run }
    let isRepeated = (1...digits.count / 2).contains { period in
      digits.indices.allSatisfy { digits[$0] == digits[$0 % period] }
    }
    if isRepeated { return .repetition }
    let begins = text.hasPrefix("19") || text.hasPrefix("20")
    let ends = text.suffix(4).hasPrefix("19") || text.suffix(4).hasPrefix("20")
    return begins || ends ? .year : nil
  }

  @Test(arguments: [4, 5, 6]) func `every PIN is judged as the rules say`(count: Int) {
    var power = 1
    for _ in 0..<count { power *= 10 }
    let wrong = stride(from: 0, to: power, by: count == 6 ? 7 : 1).filter { number in
      let digits = String(String(power + number).dropFirst())
      return fault(digits) != breaksRules(digits)
    }
    #expect(wrong.isEmpty)
  }

  @Test func `two PINs are the same or not`() throws {
    let pin = try PIN("1357")
    #expect(pin.isSame(as: try PIN("1357")))
    #expect(!pin.isSame(as: try PIN("1358")))
    #expect(!pin.isSame(as: try PIN("13570")))
  }
}
