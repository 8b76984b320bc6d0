import HoldfastCore
import HoldfastFormats
import HoldfastOpenSSL

/// A group of NIST's Automated Cryptographic Validation Protocol for key derivation (`KDA`): HKDF, and one-step derivation with
/// SHA-256, which JOSE calls Concat KDF. Input and result must be in one file, as they are in `internalProjection.json`.
///
/// Source: ACVP, "KDA", `draft-hammett-acvp-kas-kdf-hkdf` and `-onestep`, "Test Cases"; SP 800-56C §4 and §5.
struct KeyDerivationTest: ReplayableGroup {
  private let mode: String

  init(_ group: VectorNode, frame: VectorNode) throws(VectorFault) {
    mode = try frame.member("mode").text()
  }

  func replay(_ test: VectorTest) throws(VectorFault) -> Outcome {
    guard let parameters = test.node.optional("kdfParameter") else { return .skipped("no kdfParameter") }
    guard let expected = try test.node.optional("dkm")?.bytes() else { return .skipped("no dkm") }
    let function: Function
    switch mode {
    case "HKDF":
      let name = try parameters.member("hmacAlg").text()
      guard let hash = HMAC(acvpName: name) else { return .skipped("hmacAlg \(name)") }
      function = .extractAndExpand(hash, salt: try parameters.member("salt").bytes())
    case "OneStep", "OneStepNoCounter":
      let name = try parameters.member("auxFunction").text()
      guard mode == "OneStep", name == "SHA2-256" else { return .skipped("\(mode) with \(name)") }
      function = .oneStep
    default: return .skipped("mode \(mode)")
    }
    let bitCount = try parameters.member("l").number()
    guard bitCount.isMultiple(of: 8), bitCount <= 1 << 23 else { return .skipped("\(bitCount) bits") }
    guard let info = try fixedInfo(parameters, test, bitCount: bitCount) else { return .skipped("fixedInfoPattern") }
    let secret = try parameters.member("z").bytes() + (parameters.optional("t")?.bytes() ?? [])
    guard let derived = function.derive(Int(bitCount / 8), from: secret, info) else {
      return .refused("\(bitCount) bits")
    }
    if derived == expected { return .accepted }
    return test.result == .invalid ? .refused("dkm differs") : .differs("dkm")
  }

  /// Returns the parts of the context one after the other, in the order of the pattern; nil if it names one that is not known here.
  private func fixedInfo(
    _ parameters: VectorNode, _ test: VectorTest, bitCount: UInt64
  ) throws(VectorFault) -> [UInt8]? {
    guard parameters.optional("fixedInputEncoding")?.value.text ?? "concatenation" == "concatenation" else {
      return nil
    }
    var info: [UInt8] = []
    // A separator of several characters would link the library for regular expressions, 1.2 MB.
    let separator: Character = "|"
    for part in try parameters.member("fixedInfoPattern").text().split(separator: separator).map(String.init) {
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

    /// Returns the derived key; nil if the function cannot give so many bytes.
    func derive(_ byteCount: Int, from secret: [UInt8], _ info: [UInt8]) -> [UInt8]? {
      var derived = [UInt8](repeating: 0, count: byteCount)
      var output = derived.mutableSpan
      do throws(CryptographyFailure) {
        switch self {
        case .extractAndExpand(let hash, let salt):
          try HKDF.derive(hash: hash, inputKey: secret.span, salt: salt.span, info: info.span, into: &output)
        case .oneStep: try ConcatenationKDF.derive(secret: secret.span, otherInfo: info.span, into: &output)
        }
      } catch { return nil }
      return derived
    }
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
