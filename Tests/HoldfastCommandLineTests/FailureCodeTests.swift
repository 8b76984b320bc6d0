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
    407: "posture-wiped",
    206: "another-device",
    207: "another-key",
    208: "already-enrolled",
    209: "baseline-waits",
    210: "no-baseline",
    211: "not-a-token",
    212: "bad-terms",
    213: "used-baseline",
    214: "state-busy",
    215: "no-exchange",
    216: "offline-limit",
    217: "not-compliant",
    218: "enrolment-wiped", 219: "enrolment-replaced",
    304: "host-secret-missing",
    305: "host-secret-damaged",
    500: "service-refused",
    501: "request-refused",
    502: "request-expired",
    503: "request-waits",
    504: "service-unreachable",
    505: "no-tls",
    506: "service-not-now",
    507: "wrong-pin",
    508: "bad-certificate",
    509: "bad-authorities",
    510: "not-a-service",
    511: "other-pins",
    512: "carrier-missing", 513: "services-damaged",
    600: "seal-request-malformed", 601: "seal-request-not-authentic", 602: "seal-request-foreign",
    603: "seal-request-expired", 610: "refused-by-user", 611: "code-used", 612: "code-too-old", 613: "no-challenge",
    614: "challenge-expired",
    700: "policy-not-signed", 701: "policy-of-another-key", 702: "policy-not-authentic",
    703: "policy-for-another-device", 704: "policy-outdated", 705: "policy-unrecorded",
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

  /// The numbers and identifiers of warnings that were published.
  private static let publishedWarnings: [UInt16: String] = [
    900: "warning",
    901: "request-number-damaged",
    902: "request-number-unwritten",
    903: "request-number-unrecorded",
    904: "token-unrecorded",
    905: "posture-warned",
    906: "posture-rules-outdated",
    907: "offline-limit-near",
    908: "version-not-compliant",
    909: "clock-behind",
    910: "time-unrecorded",
    911: "another-issuer-key",
    912: "weak-host",
    913: "unauthenticated-answer",
    914: "not-synchronised",
    915: "nothing-to-wipe",
    916: "other-files-stay", 917: "posture-wipes",
  ]

  @Test func `each warning has its own line, which no failure has, and stays as it was published`() {
    let codes = WarningCode.allCases
    for code in codes {
      #expect(Self.publishedWarnings[code.rawValue] == code.row.identifier, "add the new line to the published ones")
      #expect(FailureCode(rawValue: code.rawValue) == nil)
      #expect(!FailureCode.allCases.contains { $0.row.identifier == code.row.identifier })
      #expect(!code.row.reason.isEmpty && !code.row.advice.isEmpty && !code.row.reason.contains("|"))
    }
    #expect(codes.count == Self.publishedWarnings.count)
    #expect(Set(codes.map(\.row.identifier)).count == codes.count)
    let json = WarningCode.clockBehind.json("text")
    #expect(json.members?.map(\.0) == ["warning", "code", "number"])
    #expect((json["code"]?.text, json["number"]?.number) == ("clock-behind", 909))
  }

  @Test(arguments: ["docs/errors.md", "Sources/HoldfastProver/HoldfastProver.docc/Errors.md"])
  func `the documents have the table`(path: String) throws {
    let page = try String(contentsOf: repository.appending(path: path), encoding: .utf8)
    #expect(page.contains("\n\n" + FailureTable.markdown))
    #expect(page.contains("\n\n" + WarningCode.markdown))
  }
}
