import HoldfastCore
import HoldfastOpenSSL

/// `OCRA`: the code that a suite makes of its inputs.
///
/// Source: RFC 6287.
struct OCRAVectors: ReplayableGroup {
  init(_ group: VectorNode, frame: VectorNode) {}

  func replay(_ test: VectorTest) throws(VectorFault) -> Outcome {
    let suiteText = try test.node.member("suite").text()
    let questionText = try test.node.member("question").text()
    let secret = try test.bytes("secret")
    let code = try test.node.member("code").text()
    let counter = try test.node.optional("counter")?.bigEndian()
    let pin = try test.node.optional("pin")?.bytes()
    let session = try test.node.optional("session")?.bytes()
    let timeStep = try test.node.optional("timeStep")?.bigEndian()
    guard !secret.isEmpty else { return .refused("no secret") }
    guard let suite = OCRASuite(suiteText) else { return .refused("suite") }
    guard let question = OCRAQuestion(questionText, for: suite) else { return .refused("question") }
    let input = OCRAInput(
      counter: counter, question: question, pin: pin?.span, session: session?.span, timeStep: timeStep)
    var cryptography = OpenSSLCryptography()
    do throws(OCRAFault) {
      let made: String
      if suite.length == nil {
        made = hexadecimal(
          try OCRA.untruncated(suite: suite, key: secret.span, input: input, using: &cryptography))
      } else {
        made = try OCRA.code(suite: suite, key: secret.span, input: input, using: &cryptography).description
      }
      return made == code ? .accepted : .refused("code differs")
    } catch { return .refused("\(error)") }
  }
}

/// `OCRASuite`: whether text is a suite.
///
/// Source: RFC 6287 §6.
struct OCRASuiteVectors: ReplayableGroup {
  init(_ group: VectorNode, frame: VectorNode) {}

  func replay(_ test: VectorTest) throws(VectorFault) -> Outcome {
    OCRASuite(try test.node.member("suite").text()) == nil ? .refused("suite") : .accepted
  }
}
