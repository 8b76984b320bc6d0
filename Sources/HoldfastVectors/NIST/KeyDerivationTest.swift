import HoldfastCore
import HoldfastFormats
import HoldfastOpenSSL

/// A group of NIST's Automated Cryptographic Validation Protocol for key derivation (`KDA`): HKDF, and one-step derivation with
/// SHA-256, which JOSE calls Concat KDF. Input and result must be in one file, as they are in `internalProjection.json`.
///
/// Source: ACVP, "KDA", `draft-hammett-acvp-kas-kdf-hkdf` and `-onestep`, "Test Cases"; SP 800-56C §4 and §5.
struct KeyDerivationTest: ReplayableGroup {
  private let mode: String
  /// Whether the keys of the tests may be wrong, which each test says. A prompt does not say it.
  private let isValidation: Bool

  init(_ group: VectorNode, frame: VectorNode) throws(VectorFault) {
    mode = try frame.member("mode").text()
    isValidation = group.value["testType"]?.text == "VAL"
  }

  func replay(_ test: VectorTest) throws(VectorFault) -> Outcome {
    if isValidation, test.node.optional("testPassed") == nil { return .skipped("no testPassed") }
    if let parameters = test.node.optional("kdfMultiExpansionParameter") { return try expand(parameters, test) }
    guard let parameters = test.node.optional("kdfParameter") else { return .skipped("no kdfParameter") }
    guard let expected = try test.node.optional("dkm")?.bytes() else { return .skipped("no dkm") }
    let function: Function
    switch try self.function(parameters) {
    case .known(let known): function = known
    case .unknown(let reason): return .skipped(reason)
    }
    let bitCount = try parameters.member("l").number()
    let pattern = try parameters.member("fixedInfoPattern").text()
    guard let info = try fixedInfo(pattern, parameters, test, bitCount: bitCount) else {
      return .skipped("fixedInfoPattern")
    }
    var secret = try parameters.member("z").bytes()
    // In HKDF, a second secret follows the first, unless it is a part of the context. In one-step derivation, it is only that.
    if case .extractAndExpand = function, !parts(of: pattern).contains("t"), let second = parameters.optional("t") {
      secret += try second.bytes()
    }
    return compare(expected, function.derive(bitCount: bitCount, from: secret, info), test)
  }

  /// Compares several keys, which are derived from one secret with a context each.
  private func expand(_ parameters: VectorNode, _ test: VectorTest) throws(VectorFault) -> Outcome {
    guard let keys = try test.node.optional("dkms")?.elements() else { return .skipped("no dkms") }
    let function: Function
    switch try self.function(parameters) {
    case .known(let known): function = known
    case .unknown(let reason): return .skipped(reason)
    }
    let secret = try parameters.member("z").bytes()
    let iterations = try parameters.member("iterationParameters").elements()
    guard !keys.isEmpty, keys.count == iterations.count else {
      throw try parameters.member("iterationParameters").fault(.wrongValue)
    }
    for (iteration, key) in zip(iterations, keys) {
      let info = try iteration.member("fixedInfo").bytes()
      let derived = function.derive(bitCount: try iteration.member("l").number(), from: secret, info)
      let outcome = compare(try key.bytes(), derived, test)
      guard outcome == .accepted else { return outcome }
    }
    return .accepted
  }

  private func compare(_ expected: [UInt8], _ derivation: Derivation, _ test: VectorTest) -> Outcome {
    switch derivation {
    case .skipped(let reason): .skipped(reason)
    case .refused(let reason): .refused(reason)
    case .derived(expected): .accepted
    case .derived: test.result == .invalid ? .refused("dkm differs") : .differs("dkm")
    }
  }

  /// Returns the function of a test's parameters, or what it is if Holdfast does not have it.
  private func function(_ parameters: VectorNode) throws(VectorFault) -> Known {
    switch mode {
    case "HKDF":
      let name = try parameters.member("hmacAlg").text()
      guard let hash = HMAC(acvpName: name) else { return .unknown("hmacAlg \(name)") }
      return .known(.extractAndExpand(hash, salt: try parameters.member("salt").bytes()))
    case "OneStep", "OneStepNoCounter":
      let name = try parameters.member("auxFunction").text()
      guard mode == "OneStep", name == "SHA2-256" else { return .unknown("\(mode) with \(name)") }
      return .known(.oneStep)
    default: return .unknown("mode \(mode)")
    }
  }

  /// The function of a test, or the reason to skip the test.
  private enum Known {
    case known(Function)
    case unknown(String)
  }

  private func parts(of pattern: String) -> [String] {
    // A separator of several characters would link the library for regular expressions, 1.2 MB.
    let separator: Character = "|"
    return pattern.split(separator: separator).map(String.init)
  }

  /// Returns the parts of the context one after the other, in the order of the pattern; nil if it names one that is not known here.
  private func fixedInfo(
    _ pattern: String, _ parameters: VectorNode, _ test: VectorTest, bitCount: UInt64
  ) throws(VectorFault) -> [UInt8]? {
    guard parameters.optional("fixedInputEncoding")?.value.text ?? "concatenation" == "concatenation" else {
      return nil
    }
    var info: [UInt8] = []
    for part in parts(of: pattern) {
      switch part {
      case "uPartyInfo": info += try party(test.node.member("fixedInfoPartyU"))
      case "vPartyInfo": info += try party(test.node.member("fixedInfoPartyV"))
      case "l": info += (0..<4).map { UInt8(truncatingIfNeeded: bitCount >> (24 - 8 * $0)) }
      case "algorithmId", "label", "context", "t", "iv", "salt": info += try parameters.member(part).bytes()
      default:
        guard part.hasPrefix("literal["), part.hasSuffix("]"),
          let literal = hexadecimalBytes(String(part.dropFirst(8).dropLast()))
        else { return nil }
        info += literal
      }
    }
    return info
  }

  private func party(_ node: VectorNode) throws(VectorFault) -> [UInt8] {
    try node.member("partyId").bytes() + (node.optional("ephemeralData")?.bytes() ?? [])
  }

  /// A function that derives keys.
  private enum Function {
    case extractAndExpand(HMAC, salt: [UInt8])
    case oneStep

    /// Returns the derived key, of whole bytes.
    func derive(bitCount: UInt64, from secret: [UInt8], _ info: [UInt8]) -> Derivation {
      guard bitCount.isMultiple(of: 8), bitCount <= 1 << 23 else { return .skipped("\(bitCount) bits") }
      var derived = [UInt8](repeating: 0, count: Int(bitCount / 8))
      var output = derived.mutableSpan
      do throws(CryptographyFailure) {
        switch self {
        case .extractAndExpand(let hash, let salt):
          try HKDF.derive(hash: hash, inputKey: secret.span, salt: salt.span, info: info.span, into: &output)
        case .oneStep: try ConcatenationKDF.derive(secret: secret.span, otherInfo: info.span, into: &output)
        }
      } catch { return .refused("\(bitCount) bits") }
      return .derived(derived)
    }
  }

  /// A derived key, or the reason that there is none.
  private enum Derivation {
    case derived([UInt8])
    /// The function cannot derive a key of that length.
    case refused(String)
    case skipped(String)
  }
}

extension HMAC {
  fileprivate init?(acvpName name: String) {
    switch name {
    case "SHA-1": self = .sha1
    case "SHA2-256": self = .sha256
    case "SHA2-384": self = .sha384
    case "SHA2-512": self = .sha512
    default: return nil
    }
  }
}
