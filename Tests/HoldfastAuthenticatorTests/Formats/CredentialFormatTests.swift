import HoldfastAuthenticator
import Testing

struct CredentialFormatTests {
  @Test(
    "a file's format is told by how it begins",
    arguments: [
      ("otpauth://totp/a?secret=AA", CredentialFormat.otpauth), ("\r\n  otpauth://hotp/a", .otpauth),
      ("otpauth-migration://offline?data=", .migration), ("<?xml version=\"1.0\"?>", .pskc),
      ("\u{FEFF}<KeyContainer", .pskc), ("\u{FEFF}otpauth://totp/a", .otpauth),
    ])
  func told(text: String, format: CredentialFormat) {
    let detected = CredentialFormat.detect(Array(text.utf8).span)
    #expect(detected == format)
  }

  @Test(
    "bare secrets are never guessed",
    arguments: ["", " ", "JBSWY3DPEHPK3PXP", "31323334", "otpauth:", "OTPAUTH://totp/a", "otpauth"])
  func unknown(text: String) {
    let detected = CredentialFormat.detect(Array(text.utf8).span)
    #expect(detected == nil)
  }

  @Test("a file of more than a mebibyte is refused before it is read")
  func tooLarge() {
    #expect(fault(String(repeating: "\n", count: 1 << 20 + 1), .otpauth) == .tooLarge)
    #expect(fault(String(repeating: "\n", count: 1 << 20), .otpauth) == .noAccount)
  }
}
