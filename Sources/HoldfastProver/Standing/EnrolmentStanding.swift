import HoldfastCore
import HoldfastFormats

/// A prover's question about one of its tokens, or its notice that it leaves, for the service that issued the token.
public struct EnrolmentQuestion: Sendable {
  /// The device that the token is for.
  public let device: DeviceID
  /// SHA-256 of the token, 32 bytes, by which the service finds it: no prover knows the id of a token.
  public let tokenDigest: Digest
  /// Fresh evidence of the app and its host, at most 65,536 bytes, in the form of the device's enrolment.
  public let evidence: [UInt8]

  /// The body of `POST /v1/enrolment` or `POST /v1/leave` at an online service: a JSON object with the members
  /// `evidence` (padded base64), `device` (32 hexadecimal digits) and `token` (the 64 digits of ``tokenDigest``).
  public var body: [UInt8] { json.compact() }

  package var json: JSONValue {
    .object([
      ("evidence", .string(paddedBase64(evidence))), ("device", .string(hexadecimal(device))),
      ("token", .string(hexadecimal(tokenDigest))),
    ])
  }
}

/// The state of a device's token, as the service that issued it knows it.
public struct EnrolmentStanding: Sendable, Equatable {
  /// The states of a token. Only ``valid`` is good.
  public enum Status: Sendable, Equatable {
    /// The service would give the token out again.
    case valid
    /// The token has expired.
    case expired
    /// An operator revoked it.
    case revoked
    /// The prover has left.
    case left
    /// The device's generation was raised, or the issuer's key ended there.
    case superseded
    /// The device is blocked: it gets no more tokens.
    case blocked
    /// A state that this version does not know, with the name that the service has for it.
    case other(BoundedText<32>)

    private static let known: [(name: String, status: Status)] = [
      ("valid", .valid), ("expired", .expired), ("revoked", .revoked), ("left", .left), ("superseded", .superseded),
      ("blocked", .blocked),
    ]

    /// Reads the name of a state, 1 to 32 bytes; nil for another length.
    init?(_ name: String) {
      if let known = Self.known.first(where: { $0.name == name }) {
        self = known.status
        return
      }
      guard !name.isEmpty, let text = BoundedText<32>(name) else { return nil }
      self = .other(text)
    }

    /// The name that the service has for the state, 1 to 32 bytes.
    public var name: String {
      if case .other(let name) = self { return name.description }
      return Self.known.first { $0.status == self }?.name ?? ""
    }
  }

  /// The state.
  public let status: Status
  /// The end of the token's validity, in Unix seconds.
  public let expires: UInt64
  /// Whether the answer brought other settings for the app; see ``EnrolmentState/settings``.
  public internal(set) var changesSettings = false
}

/// The answer of a service to a prover's question about its token.
package struct EnrolmentAnswer: Sendable, Equatable {
  /// The state of the token.
  package let standing: EnrolmentStanding
  /// The terms of the present policy, a compact JWS whose signature nothing has checked yet; nil if none came.
  package let terms: [UInt8]?

  /// Reads the answer. Members that it does not know are ignored.
  ///
  /// - Parameters:
  ///   - answer: the answer, a JSON object.
  ///   - tokenDigest: SHA-256 of the token that the question was about.
  /// - Throws: ``ProverError/malformedAnswer``, also for an answer about another token.
  package init(_ answer: [UInt8], about tokenDigest: Digest) throws(ProverError) {
    let value = try? JSONValue(
      parsing: answer, byteLimit: MeasurementToken.maximumAnswerByteCount, otherNumbers: .asText)
    guard let value, value["token"]?.text == hexadecimal(tokenDigest),
      let status = value["status"]?.text.flatMap({ EnrolmentStanding.Status($0) }),
      let expires = value["expires"]?.number, value["terms"].map({ $0.text != nil }) ?? true
    else { throw .malformedAnswer }
    standing = EnrolmentStanding(status: status, expires: expires)
    terms = value["terms"]?.text.map { Array($0.utf8) }
  }
}
