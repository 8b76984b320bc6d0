import Foundation
import HoldfastLinux
import Testing

import holdfast

@Suite struct FailureCodeTests {
  private let repository = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
    .deletingLastPathComponent()

  /// The numbers and identifiers that were published. Lines are only added; one that leaves the table moves to `retired`.
  private static let published: [UInt16: String] = [
    1: "denied", 2: "malformed", 3: "impostor", 64: "usage", 69: "unavailable", 70: "fault", 77: "no-permission",
    100: "file-not-found", 101: "file-no-permission", 102: "file-read-only", 103: "file-is-folder",
    104: "file-not-folder",
    105: "file-another-kind", 106: "file-not-regular", 107: "file-symbolic-link", 108: "file-too-large",
    109: "file-too-open", 110: "file-wrong-owner", 111: "file-exists", 112: "file-locked", 113: "disk-full",
    200: "state-incomplete", 201: "state-damaged", 202: "state-other-version", 203: "nothing-enrolled",
    204: "several-enrolled", 205: "not-enrolled", 300: "unknown-proof-key", 301: "unknown-component",
    302: "mounted-over", 303: "unreadable-source", 400: "posture-refused", 401: "posture-rules-malformed",
    402: "posture-rules-content", 403: "posture-rules-of-another-issuer", 404: "posture-rules-not-authentic",
    405: "posture-rules-not-newer", 406: "posture-rules-need-issuer", 410: "posture-statement-malformed",
    411: "posture-statement-of-another-key", 412: "posture-statement-not-authentic",
  ]

  @Test func `each code has its own line, and no number is ever reused`() {
    let codes = FailureCode.allCases
    #expect(Set(codes.map(\.row.identifier)).count == codes.count)
    for code in codes {
      #expect(Self.published[code.rawValue] == code.row.identifier, "add the new line to the published ones")
      #expect(!FailureCode.retired.contains(code.rawValue))
      #expect(code.row.identifier.utf8.allSatisfy { (0x61...0x7a).contains($0) || $0 == 0x2d })
      #expect(!code.row.reason.isEmpty && !code.row.advice.isEmpty && !code.row.reason.contains("|"))
    }
    let present = Set(codes.map(\.rawValue)).union(FailureCode.retired)
    #expect(Self.published.keys.allSatisfy(present.contains))
  }

  @Test func `a failure has the exit status of its code, and of the general code without one of its own`() {
    for code in FailureCode.allCases {
      #expect(Failure(code: code, "text").status == code.row.status)
      #expect(FailureCode(code.row.status).row.status == code.row.status)
    }
    for status in [ExitStatus.denied, .malformed, .impostor, .usage, .unavailable, .fault, .noPermission] {
      #expect(Failure(status, "text").code.rawValue == UInt16(status.rawValue))
    }
    #expect(Failure(FileError(.notFound, at: "x")).code == .fileNotFound)
    #expect(Failure(FileError(.diskFull, at: "x")).code == .diskFull)
  }

  @Test func `the output for programs has the identifier and the number in addition to what it always had`() {
    let json = Failure(FileError(.locked, at: "x")).json
    #expect(json.members?.map(\.0) == ["error", "exit", "code", "number"])
    #expect(json["code"]?.text == "file-locked")
    #expect(json["number"]?.number == 112)
    #expect(json["exit"]?.number == 69)
  }

  @Test(arguments: ["docs/errors.md", "Sources/HoldfastProver/HoldfastProver.docc/Errors.md"])
  func `the documents have the table`(path: String) throws {
    let page = try String(contentsOf: repository.appending(path: path), encoding: .utf8)
    #expect(page.contains("\n\n" + FailureTable.markdown))
  }
}
