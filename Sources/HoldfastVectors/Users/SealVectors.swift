import HoldfastAuthenticator
import HoldfastCore
import HoldfastFormats
import HoldfastOpenSSL

/// The vectors `SealFields`: the texts of a command, in the form in which an authenticator seals them.
///
/// Source: docs/authenticator.md, Seals and host codes; UAX #15.
struct SealFieldVectors: ReplayableGroup {
  init(_ group: VectorNode, frame: VectorNode) {}

  func replay(_ test: VectorTest) throws(VectorFault) -> Outcome {
    let (command, parameters) = (try test.node.member("command").text(), try test.node.member("parameters").texts())
    let limit = try test.node.member("fieldByteLimit")
    let byteLimit = limit.isNull ? nil : Int(clamping: try limit.number())
    let expected = test.result == .invalid ? nil : try test.node.member("sealed").texts()
    do throws(SealFault) {
      let sealed = try SealRequest(command: command, parameters: parameters, fieldByteLimit: byteLimit)
      let texts = [sealed.command] + sealed.parameters
      // The comparison of strings does not tell one normalisation form from another.
      return expected == nil || texts.map({ Array($0.utf8) }) == expected?.map({ Array($0.utf8) })
        ? .accepted : .differs("sealed")
    } catch { return .refused("\(error)") }
  }
}

/// The vectors `SealQuestion`: the questions of a seal and of a refusal. Source: docs/protocol.md, Codes and Seal requests.
struct SealQuestionVectors: ReplayableGroup {
  init(_ group: VectorNode, frame: VectorNode) {}

  func replay(_ test: VectorTest) throws(VectorFault) -> Outcome {
    let command = try SealedTexts(test)
    let (question, refusal) = (try test.bytes("question"), try test.bytes("refusalQuestion"))
    do throws(CryptographyFailure) {
      if try command.question(isRefusal: false) != hexadecimal(question.span) { return .refused("question differs") }
      if try command.question(isRefusal: true) != hexadecimal(refusal.span) {
        return .refused("refusalQuestion differs")
      }
      return .accepted
    } catch { return .refused("no question") }
  }
}

/// The vectors `Seal`: the seal over a command, by a suite with which a device verifies seals.
///
/// Source: docs/protocol.md, Codes; RFC 6287.
struct SealVectors: ReplayableGroup {
  init(_ group: VectorNode, frame: VectorNode) {}

  func replay(_ test: VectorTest) throws(VectorFault) -> Outcome {
    let command = try SealedTexts(test)
    let (suiteText, key) = (try test.node.member("suite").text(), try test.bytes("secret"))
    let challenge = try test.node.optional("challenge")?.text() ?? ""
    let counter = try test.node.optional("counter")?.bigEndian()
    let timeStep = try test.node.optional("timeStep")?.bigEndian()
    let seal = try test.node.member("seal").text()
    guard let suite = OCRASuite(suiteText) else { return .refused("suite") }
    guard CodeAccount.canVerify(.ocra(suite), for: .seal) else { return .refused("no suite of seals") }
    guard (!suite.hasCounter && suite.timeStepSeconds == nil) == !challenge.isEmpty else {
      return .refused("challenge")
    }
    do throws(CryptographyFailure) {
      let text = Array((challenge + (try command.question(isRefusal: false))).utf8)
      guard let question = OCRAQuestion(text.span, for: suite) else { return .refused("question") }
      var cryptography = OpenSSLCryptography()
      do throws(OCRAFault) {
        let code = try OCRA.code(
          suite: suite, key: key.span, input: OCRAInput(counter: counter, question: question, timeStep: timeStep),
          using: &cryptography)
        return code.description == seal ? .accepted : .refused("seal differs")
      } catch { return .refused("\(error)") }
    } catch { return .refused("no question") }
  }
}

/// A command and its parameters in a vector.
private struct SealedTexts {
  private let command: BoundedText<32>
  private let parameters: [BoundedText<64>]

  init(_ test: VectorTest) throws(VectorFault) {
    let name = try test.node.member("command")
    guard let command = BoundedText<32>(try name.text()) else { throw name.fault(.wrongValue) }
    self.command = command
    parameters = try test.node.member("parameters").elements().map { (node) throws(VectorFault) in
      guard let parameter = BoundedText<64>(try node.text()) else { throw node.fault(.wrongValue) }
      return parameter
    }
  }

  /// Returns the question of the seal or of the refusal, 64 hexadecimal digits.
  func question(isRefusal: Bool) throws(CryptographyFailure) -> String {
    var cryptography = OpenSSLCryptography()
    let digits =
      isRefusal
      ? try refusalQuestion(
        command: command, parameterCount: parameters.count, parameter: { parameters[$0] }, using: &cryptography)
      : try sealQuestion(
        command: command, parameterCount: parameters.count, parameter: { parameters[$0] }, using: &cryptography)
    return String(decoding: array(digits.bytes), as: UTF8.self)
  }
}

/// The vectors `SealRequest`: a device's request for a seal as text, under the user's host secret.
///
/// Source: docs/protocol.md, Seal requests.
struct SealRequestVectors: ReplayableGroup {
  init(_ group: VectorNode, frame: VectorNode) {}

  func replay(_ test: VectorTest) throws(VectorFault) -> Outcome {
    let (key, bytes) = (try test.bytes("secret"), try test.bytes("request"))
    let expected = test.result == .invalid ? nil : try SealRequestContents(test.node)
    let request: UncheckedSealRequest
    do throws(SealRequestTextFault) { request = try UncheckedSealRequest(bytes) } catch { return .refused("\(error)") }
    do throws(CryptographyFailure) {
      guard try request.isAuthentic(under: key.span) else { return .refused("code differs") }
      guard let expected else { return .accepted }
      guard request.contents == expected else { return .differs("a field") }
      return try expected.text(under: key.span) == bytes ? .accepted : .differs("request, written again,")
    } catch { return .refused("no code") }
  }
}

extension SealRequestContents {
  /// Reads the contents that a valid test expects.
  fileprivate init(_ node: VectorNode) throws(VectorFault) {
    let digits = try node.member("challenge")
    guard let challenge = hexadecimalBytes(try digits.text()).flatMap({ FixedBytes<8>($0.span) }) else {
      throw digits.fault(.wrongValue)
    }
    let (expires, text) = (try node.member("expires"), try node.member("text"))
    self.init(
      device: try node.member("device").fixed(), user: try node.member("user").text(),
      command: try node.member("command").text(), parameters: try node.member("parameters").texts(),
      challenge: challenge, expires: expires.isNull ? nil : try expires.number(),
      text: text.isNull ? nil : try text.text())
  }
}

extension VectorNode {
  /// Returns an array of texts.
  func texts() throws(VectorFault) -> [String] {
    try elements().map { (node) throws(VectorFault) in try node.text() }
  }
}
