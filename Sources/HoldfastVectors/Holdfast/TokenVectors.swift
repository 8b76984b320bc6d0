import HoldfastCore

/// `MeasurementTokenCOSE` and `MeasurementTokenJOSE`: tokens that a device opens or refuses, and what they say.
///
/// Source: docs/protocol.md, Measurement token. Time, generation floor and command are not looked at.
struct TokenVectors<Form: TokenForm>: ReplayableGroup {
  private let parties: Parties
  private let acceptsUnsigned: Bool
  private let acceptsMAC: Bool

  init(_ group: VectorNode, frame: VectorNode) throws(VectorFault) {
    parties = try Parties(group)
    acceptsUnsigned = try group.member("acceptUnsigned").flag()
    acceptsMAC = try group.optional("acceptMac")?.flag() ?? false
  }

  func replay(_ test: VectorTest) throws(VectorFault) -> Outcome {
    let token = try test.bytes("token")
    let claims = test.result == .valid ? try test.node.member("claims") : test.node.optional("claims")
    let expected: ExpectedClaims?
    if let claims { expected = try ExpectedClaims(claims) } else { expected = nil }
    do throws(Refusal) {
      let verified = try parties.open(
        token, encoding: Form.encoding, acceptsUnsigned: acceptsUnsigned, acceptsMAC: acceptsMAC)
      guard let expected, let name = expected.difference(from: verified.claims) else { return .accepted }
      return .differs("claims.\(name)")
    } catch { return .refused(error.reason) }
  }
}

/// Which of the two encodings a group's tokens have.
protocol TokenForm {
  static var encoding: TokenEncoding { get }
}

enum COSEToken: TokenForm {
  static var encoding: TokenEncoding { .cose }
}

enum JOSEToken: TokenForm {
  static var encoding: TokenEncoding { .jose }
}
