extension VectorFile {
  /// Replays every test of the file.
  ///
  /// Groups of a type that Holdfast has no use for are skipped, and the report says so.
  ///
  /// - Returns: what came of it: ``testCount`` tests passed, failed or skipped.
  /// - Throws: a fault when a group or a test of a known type lacks something it needs; nothing is then reported.
  public func replay() throws(VectorFault) -> Report {
    var report = Report()
    for group in groups { try replay(group, into: &report) }
    return report
  }

  private func replay(_ group: VectorGroup, into report: inout Report) throws(VectorFault) {
    switch group.type {
    case "MacTest": try replay(group, as: MacTest.self, into: &report)
    case "AeadTest": try replay(group, as: AeadTest.self, into: &report)
    case "HkdfTest": try replay(group, as: HkdfTest.self, into: &report)
    case "EcdhEcpointTest": try replay(group, as: EcdhEcpointTest.self, into: &report)
    case "EcdsaP1363Verify": try replay(group, as: EcdsaP1363Verify.self, into: &report)
    case "Measurement": try replay(group, as: MeasurementVectors.self, into: &report)
    case "MeasurementConfiguration": try replay(group, as: ConfigurationVectors.self, into: &report)
    case "ReleaseKeys": try replay(group, as: ReleaseKeyVectors.self, into: &report)
    case "Evidence": try replay(group, as: EvidenceVectors.self, into: &report)
    case "Proof": try replay(group, as: ProofVectors.self, into: &report)
    case "MeasurementTokenCOSE": try replay(group, as: TokenVectors<COSEToken>.self, into: &report)
    case "MeasurementTokenJOSE": try replay(group, as: TokenVectors<JOSEToken>.self, into: &report)
    case "SessionRound": try replay(group, as: RoundVectors.self, into: &report)
    case "SessionM1": try replay(group, as: ChallengeVectors.self, into: &report)
    case "SessionM2": try replay(group, as: AnswerVectors.self, into: &report)
    case "SessionM3": try replay(group, as: VerdictVectors.self, into: &report)
    case "SessionRequest": try replay(group, as: RequestVectors.self, into: &report)
    case "SessionReply": try replay(group, as: ReplyVectors.self, into: &report)
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
    for test in group.tests { report.add(try replayable.replay(test), of: test) }
  }
}
