import Foundation
import HoldfastCore
import HoldfastLinux
import PowerCut
import TestSupport
import Testing

import HoldfastAuthenticator

/// Calls for the wrong record, for one that was changed meanwhile, and on a disk that is full or read-only.
@Suite struct WrongCallsTests {
  enum Call: CaseIterable {
    case code, seal, challenge, check

    var purpose: RecordPurpose {
      switch self {
      case .code: .otp
      case .seal: .seal
      case .challenge, .check: .host
      }
    }
  }

  private static let records = [
    NewRecord("alice", 1), NewRecord("alice", 2, .seal, .ocra("OCRA-1:HOTP-SHA256-8:C-QH64")),
    NewRecord("alice", 3, .host, .ocra("OCRA-1:HOTP-SHA256-8:QH16")),
  ]

  private func make(_ call: Call, for record: Record, of authenticator: Authenticator) throws {
    let clock = TestClock()
    switch call {
    case .code: _ = try authenticator.code(for: record, with: .none, clock: clock)
    case .seal:
      _ = try authenticator.seal(
        SealRequest(command: "open", parameters: []), for: record, with: .none, clock: clock)
    case .challenge:
      var random = TestRandom()
      _ = try authenticator.challengeDevice(record, random: &random)
    case .check:
      _ = try authenticator.checkHostCode(
        "12345678", deviceChallenge: DeviceChallenge("fedcba9876543210")!, of: record)
    }
  }

  @Test(arguments: Call.allCases)
  func `a record of another purpose is refused, and nothing changes`(call: Call) throws {
    let test = try TestAuthenticator()
    try test.add(Self.records, protection: .none)
    let before = try test.authenticator.records()
    for record in before where record.purpose != call.purpose {
      #expect(fault { try make(call, for: record, of: test.authenticator) } == .unsuitableMethod)
    }
    #expect(try test.authenticator.records() == before)
  }

  @Test(arguments: Call.allCases)
  func `a record that was removed or replaced meanwhile is not used by its old facts`(call: Call) throws {
    let test = try TestAuthenticator()
    try test.add(Self.records, protection: .none)
    let record = try test.authenticator.record(purpose: call.purpose)
    let other = try test.again()
    try other.remove(user: "alice", index: record.index)
    #expect(fault { try make(call, for: record, of: test.authenticator) } == .unknownRecord)
    let method: CodeMethod = call == .code ? .totp : call == .seal ? .usualSeal : .ocra("OCRA-1:HOTP-SHA256-6:QH16")
    try test.add(NewRecord("alice", record.index, call.purpose, method, secret: randomSecret))
    let before = try test.authenticator.records()
    #expect(fault { try make(call, for: record, of: test.authenticator) } == .busy)
    #expect(try test.authenticator.records() == before)
  }

  @Test func `a host's code before any challenge answers nothing`() throws {
    let test = try TestAuthenticator()
    try test.add(Self.records, protection: .none)
    let record = try test.authenticator.record(purpose: .host)
    #expect(fault { try make(.check, for: record, of: test.authenticator) } == .noChallenge)
  }

  private static let refusals: [(DiskFault.Kind, AuthenticatorFault)] = [(.full, .diskFull), (.readOnly, .readOnly)]

  @Test(arguments: Call.allCases, refusals)
  func `on a full or read-only disk nothing is shown and nothing used up`(
    call: Call, refusal: (kind: DiskFault.Kind, fault: AuthenticatorFault)
  ) throws {
    let place = try TemporaryFolder(in: memoryFolder)
    let recorder = try DiskRecorder(folder: place.path)
    try recorder.recording {
      let test = try TestAuthenticator(in: place)
      try test.add(Self.records, protection: .none)
      try make(.challenge, for: test.authenticator.record(purpose: .host), of: test.authenticator)
      let before = try test.authenticator.records().map(\.nextCounter)
      let record = try test.authenticator.record(purpose: call.purpose)
      recorder.fault = DiskFault(operation: recorder.operationCount, kind: refusal.kind, lasts: true)
      #expect(fault { try make(call, for: record, of: test.authenticator) } == refusal.fault)
      recorder.fault = nil
      #expect(try test.authenticator.records().map(\.nextCounter) == before)
      try make(call, for: record, of: test.authenticator)
    }
  }

  @Test(arguments: [(FolderKind.device, "device.json"), (.service, "issuer.key"), (.prover, "devices")])
  func `a folder of another kind is neither opened nor made an authenticator's`(kind: FolderKind, name: String) throws {
    let place = try TemporaryFolder()
    try place.makeFile(name)
    let refusal = AuthenticatorFault.folder(FileError(.anotherKind(kind), at: place.path))
    #expect(fault { _ = try AuthenticatorFolder.open(at: place.path) } == refusal)
    #expect(fault { _ = try AuthenticatorFolder.create(at: place.path) } == refusal)
    #expect(try place.names() == [name])
  }

  @Test(arguments: [0, -1, Int.min])
  func `a field limit of zero or less leaves no room for a parameter`(limit: Int) throws {
    #expect(throws: SealFault.parameter(1, .tooLong)) {
      _ = try SealRequest(command: "open", parameters: ["a"], fieldByteLimit: limit)
    }
    _ = try SealRequest(command: "open", parameters: [], fieldByteLimit: limit)
  }
}
