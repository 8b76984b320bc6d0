import HoldfastOnline
import Testing

@Suite struct InvitationTests {
  private let code = "ABCDE-FGHJK-MNPQR-23456"

  private func read(_ text: String) throws -> Invitation {
    let bytes = Array(text.utf8)
    return try Invitation(bytes.span)
  }

  @Test func `a printed code may be typed in either case, with hyphens and spaces anywhere`() throws {
    for text in [code, "abcdefghjkmnpqr23456", " ABCDE FGHJK MNPQR 23456\r\n"] {
      let invitation = try read(text)
      #expect(invitation.code == code)
      #expect(invitation.services.isEmpty)
    }
  }

  @Test func `the text of a QR code has the service too, with its members in any order`() throws {
    let service = "https%3A%2F%2Fa.example%3A8443"
    for text in ["code=\(code)&service=\(service)", "service=\(service)&code=\(code)"] {
      let invitation = try read("holdfast-invitation:1?\(text)\n")
      #expect(invitation.code == code)
      #expect(invitation.services.map(\.description) == ["https://a.example:8443"])
    }
    let several = try read("holdfast-invitation:1?code=\(code)&service=https://a,https://b")
    #expect(several.services.count == 2)
  }

  @Test(arguments: [
    "", "ABCDE", "ABCDE-FGHJK-MNPQR-2345", "ABCDE-FGHJK-MNPQR-234567", "ABCDE-FGHJK-MNPQR-2345_",
    "ABCDE-FGHJK-MNPQR-2345é", "holdfast-invitation:1", "holdfast-invitation:1?", "holdfast-invitation:1?code",
    "holdfast-invitation:1?code=ABCDE-FGHJK-MNPQR-23456", "holdfast-invitation:1?service=https://a",
    "holdfast-invitation:1?code=ABCDE-FGHJK-MNPQR-23456&service=https://a&service=https://b",
    "holdfast-invitation:1?code=ABCDE-FGHJK-MNPQR-23456&service=https://a&more=1",
    "holdfast-invitation:1?code=ABCDE-FGHJK-MNPQR-23456&service=https%3",
    "holdfast-invitation:1?code=ABCDE-FGHJK-MNPQR-23456&service=https%zz",
    "Holdfast-Invitation:1?code=ABCDE-FGHJK-MNPQR-23456&service=https://a",
  ])
  func `anything else is malformed`(text: String) {
    #expect(throws: InvitationFault.malformed) { try read(text) }
  }

  @Test func `other versions and services that cannot be used have reasons of their own`() {
    #expect(throws: InvitationFault.otherVersion) { try read("holdfast-invitation:2?code=\(code)") }
    #expect(throws: InvitationFault.service(.notEncrypted)) {
      try read("holdfast-invitation:1?code=\(code)&service=http://a.example")
    }
  }

  @Test func `a text that is too long is not read`() {
    #expect(throws: InvitationFault.malformed) { try read(code + String(repeating: " ", count: 5000)) }
  }

  @Test(arguments: [
    [], ["https://a.example"], ["https://a_b.example:8443", "https://[2001:db8::1]", "http://[::1]:80"],
  ])
  func `what is written is read again, and names no more than it has to`(services: [String]) throws {
    let addresses = try services.map { try ServiceAddress($0) }
    let written = try Invitation(code: "abcdefghjkmnpqr23456", services: addresses).text
    #expect(written.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7f })
    let again = try read(written)
    #expect(again.code == code)
    #expect(again.services == addresses)
    #expect(services.isEmpty == (written == code))
  }
}
