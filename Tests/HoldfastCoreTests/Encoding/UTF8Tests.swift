import TestSupport
import Testing

import HoldfastCore

/// UTF-8 as RFC 3629 has it, and bounded text.
@Suite struct UTF8Tests {
  private func isValid(_ text: String) -> Bool {
    let bytes = hex(text)
    return isValidUTF8(bytes.span)
  }

  private func bounded(_ text: String) -> BoundedText<16>? {
    let bytes = hex(text)
    return BoundedText(bytes.span)
  }

  @Test(
    arguments: ["", "24", "c280", "dfbf", "e0a080", "ed9fbf", "ee8080", "efbfbf", "f0908080", "f48fbfbf", "24e282ac24"])
  func `the first and last character of each length is valid`(text: String) {
    #expect(isValid(text))
    #expect(bounded(text) != nil)
  }

  @Test(
    arguments: [
      "80", "bf", "c0af", "c1bf", "c2", "c27f", "c2c0", "e09fbf", "e0a0", "e0a07f", "e28224", "e282c0", "eda080",
      "edbfbf", "f08fbfbf", "f0908024", "f0902480", "f090c080", "f4908080", "f5808080", "f8888080", "fe", "ff",
      "f09080",
    ])
  func `overlong, surrogate, truncated and other bytes are not`(text: String) {
    #expect(!isValid(text))
    #expect(bounded(text) == nil)
  }

  @Test func `text longer than its bound is none`() {
    #expect(BoundedText<4>("abcd" as String) != nil)
    #expect(BoundedText<4>("abcde" as String) == nil)
    #expect(BoundedText<4>("ab€" as String) == nil)
  }
}
