import HoldfastOpenSSL
import TestSupport
import Testing

import HoldfastCore

@Suite struct OneUseCodeTests {
  private let alphabet = Array("0123456789ABCDEFGHJKMNPQRSTVWXYZ")

  private func key(_ text: String, _ purpose: OneUseCode.Purpose = .activation) throws -> [UInt8]? {
    guard let code = OneUseCode(Array(text.utf8).span) else { return nil }
    var cryptography = OpenSSLCryptography()
    return try code.key(for: purpose, using: &cryptography).withBytes { [UInt8]($0) }
  }

  private func drawn(_ seed: UInt64) throws -> String {
    var random = TestRandom(state: seed)
    return try OneUseCode.random(using: &random).text
  }

  private func plain(_ text: String) -> [Character] { text.filter { $0 != "-" } }

  @Test func `a code is written in groups of four, and read again`() throws {
    for seed: UInt64 in 0..<200 {
      let text = try drawn(seed)
      #expect(text.utf8.count == OneUseCode.textByteCount)
      #expect(text.split(separator: "-").map(\.count) == [4, 4, 4, 4, 4, 1])
      #expect(plain(text).allSatisfy { alphabet.contains($0) })
      #expect(try key(text) != nil)
    }
    #expect(Set(try (0..<200).map { try drawn($0) }).count == 200)
  }

  @Test func `the check character is the number modulo 37`() throws {
    #expect(try key("0000-0000-0000-0000-0000-0") != nil)
    #expect(try key("0000-0000-0000-0000-000Z-Z") != nil)
    #expect(try key("0000-0000-0000-0000-0010-Z") == nil)
    // 32 · 32 = 1024 = 27 · 37 + 25.
    #expect(try key("0000-0000-0000-0000-0100-S") != nil)
  }

  @Test func `lower case, letters that look like digits, hyphens and spaces do not matter`() throws {
    let text = "0000-0000-0000-0000-0011-X"
    // 33 modulo 37 has no letter: the next that has one.
    #expect(try key(text) == nil)
    let one = try #require(try key("0000-0000-0000-0000-0001-1"))
    for typed in [
      "oooo-oooo-oooo-oooo-oooi-l", "OOOOOOOOOOOOOOOOOOOLI", " 0000 0000 0000 0000 0001 1 ",
      "-0-0-0000000000000000011-",
      "0O0o-0000-0000-0000-000L-1",
    ] {
      #expect(try key(typed) == one, "\(typed)")
    }
    for seed: UInt64 in 0..<20 {
      let text = try drawn(seed)
      #expect(try key(text.lowercased()) == key(text))
    }
  }

  @Test func `every single wrong character is noticed`() throws {
    for seed: UInt64 in 0..<10 {
      let right = plain(try drawn(seed))
      for place in right.indices {
        for other in alphabet where other != right[place] {
          var wrong = right
          wrong[place] = other
          #expect(try key(String(wrong)) == nil)
        }
      }
    }
  }

  @Test func `every swap of neighbours is noticed`() throws {
    for seed: UInt64 in 0..<50 {
      let right = plain(try drawn(seed))
      for place in 0..<20 where right[place] != right[place + 1] {
        var wrong = right
        wrong.swapAt(place, place + 1)
        #expect(try key(String(wrong)) == nil)
      }
    }
  }

  @Test func `what has other characters, or not twenty-one, is none`() throws {
    let right = String(plain(try drawn(1)))
    let (head, tail) = (String(right.dropLast()), String(right.dropFirst()))
    let wrongs: [String] = [
      "", "-", " ", head, tail, right + "0", right + right, "U" + tail, "*" + tail, right + "\n", "\u{e9}" + right,
      head + "*", head + "U", "0" + right, right + "\0",
    ]
    for wrong in wrongs {
      #expect(try key(wrong) == nil, "\(wrong.count) characters")
    }
  }

  @Test func `another character is refused with every check character`() throws {
    for place in 0..<20 {
      for check in alphabet {
        let text = String(repeating: "0", count: place) + "*" + String(repeating: "0", count: 19 - place)
        #expect(try key(text + String(check)) == nil)
      }
    }
  }

  @Test func `the same code has another key for each purpose`() throws {
    let text = try drawn(3)
    #expect(try key(text, .activation) != key(text, .unlock))
  }

  @Test func `a random source that is stuck where there is no check character gives no code, and ends`() {
    let stuck = (UInt8(0)..<32).filter { byte in
      var random = RepeatingRandom([byte])
      do throws(RandomFailure) {
        _ = try OneUseCode.random(using: &random)
        return false
      } catch { return true }
    }
    // Those whose twenty-fold repetition is 32 or more modulo 37.
    #expect(stuck == [5, 14, 19, 28])
  }

  @Test func `the 128th draw counts, and there is no other`() throws {
    // Draws with a check character after some without.
    struct LateRandom: RandomSource {
      var drawsLeft: Int
      mutating func fill(_ span: inout MutableSpan<UInt8>) {
        for index in span.indices { span[index] = drawsLeft > 0 ? 5 : 0 }
        drawsLeft -= 1
      }
    }
    var late = LateRandom(drawsLeft: 127)
    #expect(try OneUseCode.random(using: &late).text == "0000-0000-0000-0000-0000-0")
    #expect(throws: RandomFailure.self) {
      var tooLate = LateRandom(drawsLeft: 128)
      _ = try OneUseCode.random(using: &tooLate)
    }
  }

  @Test func `a random source that fails gives no code`() {
    struct BrokenRandom: RandomSource {
      func fill(_ span: inout MutableSpan<UInt8>) throws(RandomFailure) { throw RandomFailure() }
    }
    #expect(throws: RandomFailure.self) {
      var random = BrokenRandom()
      _ = try OneUseCode.random(using: &random)
    }
  }
}
