import HoldfastDevice

/// A report on replayed files: the counts, each failure, and the reasons for skipped tests.
package struct Report: Sendable, Equatable {
  /// A test that did not give the expected result.
  package struct Failure: Sendable, Equatable {
    /// The file's name, as the caller gave it.
    package let file: String
    /// The test's `tcId`.
    package let testID: UInt64
    /// The test's comment, from the file.
    package let comment: String
    /// The expected result.
    package let expected: ExpectedResult
    /// The actual outcome in a few words, such as `accepted` or `refused: th differs`.
    package let happened: String
  }

  /// The tests of one file that were skipped for one reason.
  package struct Skip: Sendable, Equatable {
    /// The file's name, as the caller gave it.
    package let file: String
    /// The reason, such as `IV of 8 bytes` or `type KeywrapTest is not replayed`.
    package let reason: String
    /// The number of tests.
    package internal(set) var count: Int
  }

  /// The number of tests that gave the expected result.
  package private(set) var passed = 0
  /// The tests that failed, in the order of the files.
  package private(set) var failures: [Failure] = []
  /// The reasons for skipped tests, in the order in which they first occurred.
  package private(set) var skips: [Skip] = []

  /// The faults in files, groups and tests; the latter two were not replayed. They are in the order of the files.
  package private(set) var faults: [VectorFault] = []

  /// Creates an empty report.
  package init() {}

  /// Creates a report on a file of which no test was replayed yet.
  init(on file: VectorFile) { faults = file.faults }

  /// The number of tests that failed or that a fault left out, and of the other faults.
  package var failed: Int { faults.reduce(failures.count) { $0 + $1.testCount } }

  /// The number of tests that were skipped.
  package var skipped: Int { skips.reduce(0) { $0 + $1.count } }

  /// The last line of a replay: `N passed, N failed, N skipped`.
  package var summary: String { "\(passed) passed, \(failed) failed, \(skipped) skipped" }

  /// Adds the report on another file.
  package mutating func merge(_ other: Report) {
    passed += other.passed
    failures += other.failures
    faults += other.faults
    for skip in other.skips { add(skip) }
  }

  /// Records the outcome of a test.
  mutating func add(_ outcome: Outcome, of test: VectorTest) {
    switch (outcome, test.result) {
    case (.skipped(let reason), _):
      add(Skip(file: test.node.file, reason: reason, count: 1))
    case (.accepted, .valid), (.accepted, .acceptable), (.refused, .invalid), (.refused, .acceptable):
      passed += 1
    case (.accepted, .invalid): fail(test, "accepted")
    case (.differs(let output), _): fail(test, "accepted, but \(output) differs")
    case (.refused(let reason), .valid): fail(test, "refused: \(reason)")
    case (.failed(let happened), _): fail(test, happened)
    }
  }

  /// Records a fault in a group or a test.
  mutating func add(_ fault: VectorFault) {
    faults.append(fault)
  }

  private mutating func fail(_ test: VectorTest, _ happened: String) {
    failures.append(
      Failure(
        file: test.node.file, testID: test.id, comment: test.comment, expected: test.result, happened: happened))
  }

  private mutating func add(_ skip: Skip) {
    if let index = skips.firstIndex(where: { $0.file == skip.file && $0.reason == skip.reason }) {
      skips[index].count += skip.count
    } else {
      skips.append(skip)
    }
  }
}

/// The outcome of one test.
enum Outcome: Equatable {
  /// The input was accepted, and every output that the test names is right.
  case accepted
  /// The input was refused, for a reason in a few words.
  case refused(String)
  /// The input was accepted, but this output differs from that in the test.
  case differs(String)
  /// The test was not replayed, for this reason.
  case skipped(String)
  /// Neither an acceptance nor a refusal: what a device did instead.
  case failed(String)
}

/// The error with which a test of several steps ends when the input is refused.
struct Refusal: Error {
  let reason: String

  /// Throws unless both byte strings are equal.
  static func unless(_ left: [UInt8], _ right: [UInt8], _ name: String) throws(Refusal) {
    guard left == right else { throw Refusal(reason: "\(name) differs") }
  }
}

/// A group whose tests can be replayed. It is created from the members that the tests share.
protocol ReplayableGroup {
  /// Reads the members that the tests share. `frame` is the file, whose members apply to all groups.
  init(_ group: VectorNode, frame: VectorNode) throws(VectorFault)

  /// Reads and replays a test.
  ///
  /// - Throws: A fault only if the test is malformed.
  func replay(_ test: VectorTest) throws(VectorFault) -> Outcome
}

extension VectorFile {
  /// Replays every test in the file.
  ///
  /// Groups of a type that Holdfast does not use are skipped, and the report names them.
  ///
  /// A test of a known type that lacks a required member, or has one that is malformed, is a fault in the report, and so is
  /// such a group. The other tests and groups are replayed.
  ///
  /// - Returns: A report on ``testCount`` tests.
  package func replay() -> Report {
    var report = Report(on: self)
    for group in groups {
      do throws(VectorFault) { try replay(group, into: &report) } catch { report.add(error.inGroup(of: group.tests)) }
    }
    return report
  }

  private func replay(_ group: VectorGroup, into report: inout Report) throws(VectorFault) {
    switch group.type {
    case "MacTest": try replay(group, as: MacTest.self, into: &report)
    case "AeadTest": try replay(group, as: AeadTest.self, into: &report)
    case "HkdfTest": try replay(group, as: HkdfTest.self, into: &report)
    case "KeywrapTest": try replay(group, as: KeywrapTest.self, into: &report)
    case "RsaesOaepDecrypt": try replay(group, as: RsaesOaepDecrypt.self, into: &report)
    case "EcdhTest": try replay(group, as: EcdhTest.self, into: &report)
    case "EcdhWebcryptoTest": try replay(group, as: EcdhWebcryptoTest.self, into: &report)
    case "EcdhEcpointTest": try replay(group, as: EcdhEcpointTest.self, into: &report)
    case "JsonWebSignature", "JsonWebKey", "JsonWebEncryption", "JsonWebCrypto":
      try replay(group, as: JSONWebTest.self, into: &report)
    case "COSEExample": try replay(group, as: COSEExample.self, into: &report)
    case "JOSEExample": try replay(group, as: JOSEExample.self, into: &report)
    case "JWKExample": try replay(group, as: JWKExample.self, into: &report)
    case "KeyDerivationTest": try replay(group, as: KeyDerivationTest.self, into: &report)
    case "EcdsaVerify": try replay(group, as: EcdsaVerify<DERSignature>.self, into: &report)
    case "EcdsaP1363Verify": try replay(group, as: EcdsaVerify<PairSignature>.self, into: &report)
    case "Measurement": try replay(group, as: MeasurementVectors.self, into: &report)
    case "MeasurementConfiguration": try replay(group, as: ConfigurationVectors.self, into: &report)
    case "ReleaseKeys": try replay(group, as: ReleaseKeyVectors.self, into: &report)
    case "Evidence": try replay(group, as: EvidenceVectors.self, into: &report)
    case "Proof": try replay(group, as: ProofVectors.self, into: &report)
    case "MeasurementTokenCOSE": try replay(group, as: TokenVectors<COSEToken>.self, into: &report)
    case "MeasurementTokenJOSE": try replay(group, as: TokenVectors<JOSEToken>.self, into: &report)
    case "SessionRound": try replay(group, as: RoundVectors.self, into: &report)
    case "SessionM1": try replay(group, as: ChallengeVectors.self, into: &report)
    case "SessionCompatibility": try replay(group, as: AnswerVectors.self, into: &report)
    case "SessionM2": try replay(group, as: AnswerVectors.self, into: &report)
    case "SessionM3": try replay(group, as: VerdictVectors.self, into: &report)
    case "SessionRequest": try replay(group, as: RequestVectors.self, into: &report)
    case "SessionReply": try replay(group, as: ReplyVectors.self, into: &report)
    case "OneUseCode": try replay(group, as: OneUseCodeVectors.self, into: &report)
    case "ActivationMessage": try replay(group, as: ActivationMessageVectors.self, into: &report)
    case "ActivationReply": try replay(group, as: ActivationReplyVectors.self, into: &report)
    case "ActivationGrant": try replay(group, as: ActivationGrantVectors.self, into: &report)
    case "Activation": try replay(group, as: ActivationVectors.self, into: &report)
    case "ActivationAtDevice": try replay(group, as: DeviceActivationVectors.self, into: &report)
    case "Unlocking": try replay(group, as: UnlockingVectors.self, into: &report)
    case "UnlockingAtDevice": try replay(group, as: DeviceUnlockingVectors.self, into: &report)
    case "UserSyncResult": try replay(group, as: UserSyncVectors.self, into: &report)
    case "UserStateResult": try replay(group, as: UserStateVectors.self, into: &report)
    case "HostCodeResult": try replay(group, as: HostCodeVectors.self, into: &report)
    case "SealFields": try replay(group, as: SealFieldVectors.self, into: &report)
    case "SealQuestion": try replay(group, as: SealQuestionVectors.self, into: &report)
    case "Seal": try replay(group, as: SealVectors.self, into: &report)
    case "SealRequest": try replay(group, as: SealRequestVectors.self, into: &report)
    case "Bulletin": try replay(group, as: BulletinVectors.self, into: &report)
    case "BulletinMessage": try replay(group, as: MailMessageVectors.self, into: &report)
    case "BulletinAnswer": try replay(group, as: BulletinAnswerVectors.self, into: &report)
    case "BulletinState": try replay(group, as: BulletinStateVectors.self, into: &report)
    case "BulletinGroup": try replay(group, as: BulletinGroupVectors.self, into: &report)
    case "AuditPage": try replay(group, as: AuditPageVectors.self, into: &report)
    case "AuditReceipt": try replay(group, as: AuditReceiptVectors.self, into: &report)
    case "AuditMail": try replay(group, as: MailMessageVectors.self, into: &report)
    case "AuditPageAnswer": try replay(group, as: AuditPageAnswerVectors.self, into: &report)
    case "AuditEntry": try replay(group, as: AuditEntryVectors.self, into: &report)
    case "AuditFile": try replay(group, as: AuditFileVectors.self, into: &report)
    case "FirmwareImage": try replay(group, as: FirmwareImageVectors.self, into: &report)
    case "StateString": try replay(group, as: StateStringVectors.self, into: &report)
    case "StateRecords": try replay(group, as: StateRecordVectors.self, into: &report)
    case "StoreState": try replay(group, as: StoreStateVectors.self, into: &report)
    case "UndoCode": try replay(group, as: UndoCodeVectors.self, into: &report)
    case "UndoCopy": try replay(group, as: UndoCopyVectors.self, into: &report)
    case "AttestationToken": try replay(group, as: AttestationVectors.self, into: &report)
    case "ActuatorCommandsCBOR": try replay(group, as: ActuatorCommandsVectors<ActuatorCBOR>.self, into: &report)
    case "ActuatorCommandsJSON": try replay(group, as: ActuatorCommandsVectors<ActuatorJSON>.self, into: &report)
    case "ActuatorAnswerCBOR": try replay(group, as: ActuatorAnswerVectors<ActuatorCBOR>.self, into: &report)
    case "ActuatorAnswerJSON": try replay(group, as: ActuatorAnswerVectors<ActuatorJSON>.self, into: &report)
    case "ActuatorCommand": try replay(group, as: ActuatorCommandVectors.self, into: &report)
    case "ServiceRecord": try replay(group, as: ServiceRecordVectors.self, into: &report)
    case "ServiceAnswer": try replay(group, as: ServiceAnswerVectors.self, into: &report)
    case "Frames": try replay(group, as: FrameVectors.self, into: &report)
    case "RequestNumber": try replay(group, as: RequestNumberVectors.self, into: &report)
    case "HOTP": try replay(group, as: CodeVectors<CounterMoment>.self, into: &report)
    case "TOTP": try replay(group, as: CodeVectors<TimeMoment>.self, into: &report)
    case "OCRA": try replay(group, as: OCRAVectors.self, into: &report)
    case "OCRASuite": try replay(group, as: OCRASuiteVectors.self, into: &report)
    default:
      for test in group.tests { report.add(.skipped("type \(group.type) is not replayed"), of: test) }
    }
  }

  private func replay<Group: ReplayableGroup>(
    _ group: VectorGroup, as type: Group.Type, into report: inout Report
  ) throws(VectorFault) {
    let replayable = try Group(group.node, frame: frame)
    for test in group.tests {
      do throws(VectorFault) { report.add(try replayable.replay(test), of: test) } catch {
        report.add(error.inTest(test.id))
      }
    }
  }
}
