import HoldfastCore
import HoldfastFormats

/// The result of a fetch of any kind.
///
/// Source: Approov, "Fetch Result", `TokenFetchResult`.
public struct FetchResult: Sendable {
  /// The outcome.
  public let status: FetchStatus
  /// The token, or the custom JWT; empty if there is none. Do not keep it: fetch again before each request.
  public internal(set) var token = ""
  /// The text that was asked for; nil if there is none. Do not keep it. The document's `getSecureString`.
  public internal(set) var secureString: String?
  /// The attestation response code, which only the service can read, so that it may be logged; empty if there is none.
  public internal(set) var arc = ""
  /// The identifiers of the reasons of a refusal, which never change; none otherwise. The document has them in one text.
  public internal(set) var rejectionReasons: [String] = []
  /// The text in which the service tells people whom to ask for help, from a refusal, at most 256 bytes; nil if there
  /// is none. Operators write it; show it as plain text only.
  public internal(set) var help: String?
  /// Whether there is a new configuration that ``HoldfastClient/fetchConfig()`` has not returned yet.
  public internal(set) var isConfigChanged = false
  /// Whether the pins that the app read last are older than the account demands; reading them again clears it.
  public internal(set) var isForceApplyPins = false
  /// Whether the client has the account's newest configuration, with its pins: ``FetchStatus/success``, or the reason
  /// why it could not be fetched; nil if no service was asked since the client was made.
  ///
  /// ``FetchStatus/noService`` stands also for a configuration that the account's key did not sign, or that is older
  /// than announced. Without success, the client goes on with the configuration and the pins that it has, and the next
  /// fetch that asks a service tries again.
  public internal(set) var configurationStatus: FetchStatus?
  /// The measurement configuration, if the fetch measured; nil otherwise. It also waits in the prover's state folder.
  public internal(set) var measurementConfig: [UInt8]?

  init(_ status: FetchStatus) { self.status = status }

  /// A form of the token that may be logged, always valid JSON: its claims, and the first six characters of its signature as
  /// `sip`. It cannot be made into a token again.
  ///
  /// After an error, the member `error` has the status. An encrypted token has no claims that could be shown: the object then has
  /// only `arc`.
  public var loggableToken: String {
    var members: [(String, JSONValue)] = []
    if status != .success {
      members = [("error", .string(status.rawValue))]
    } else if let token = CompactJWT(token) {
      members = (token.claims.members ?? []).filter { $0.0 != "sip" }
      let signature = token.text.utf8.split(separator: UInt8(ascii: "."))[2].prefix(6)
      members.append(("sip", .string(String(decoding: signature, as: UTF8.self))))
    }
    if !arc.isEmpty, !members.contains(where: { $0.0 == "arc" }) { members.append(("arc", .string(arc))) }
    return String(decoding: JSONValue.object(members).compact(), as: UTF8.self)
  }
}

extension FetchResult: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
  /// The status, and the form that may be logged: neither the token nor the secure string.
  public var description: String { "\(status.rawValue) \(loggableToken)" }
  /// The same.
  public var debugDescription: String { description }
  /// A mirror without the token and the secure string.
  public var customMirror: Mirror { Mirror(self, children: ["status": status, "loggableToken": loggableToken]) }
}
