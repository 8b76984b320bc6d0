import HoldfastCore
import HoldfastFormats
import HoldfastIssuer

/// A reason why the service refuses a request: the identifier in its answer, its statistics and its log.
///
/// The identifiers are part of the service's interface, and never change.
package struct RefusalReason: Sendable, Hashable {
  /// The identifier, such as `unknownImage`.
  package let identifier: String
  /// A sentence for people.
  package let text: String

  private init(_ identifier: String, _ text: String) { (self.identifier, self.text) = (identifier, text) }
}

extension RefusalReason {
  /// The reason of an appraisal.
  init(_ refusal: AttestationRefusal) {
    switch refusal {
    case .unknownProofKey: self.init("unknownProofKey", "The keys of the app's release are not registered.")
    case .notAuthentic:
      self.init("notAuthentic", "The evidence was not made with the keys of the release that it names.")
    case .notFresh:
      self.init("notFresh", "The time of the baseline differs from the service's by more than five minutes.")
    case .incomplete: self.init("incomplete", "Components that every baseline must have are missing.")
    case .unknownImage: self.init("unknownImage", "The app's executable is not approved.")
    case .anotherRelease: self.init("anotherRelease", "The executable is approved as one of another release.")
    case .subject: self.init("subject", "The app claims another name than the approved one.")
    case .version: self.init("version", "The app claims another version than the approved one.")
    case .property(let property): self.init(property.description, "The app reports the property \(property).")
    case .knownCode: self.init("knownCode", "The baseline permits known code, and the policy does not.")
    case .repeated:
      self.init("repeated", "The baseline was appraised before, with other evidence or for another device.")
    }
  }

  /// The reason of the backend.
  init(_ refusal: IssuanceRefusal) {
    switch refusal {
    case .attestation: self.init("attestation", "The attestation token is not one of this service.")
    case .issuer: self.init("issuer", "The attestation token comes from another service.")
    case .audience: self.init("audience", "The attestation token is for another backend.")
    case .notYetValid: self.init("notYetValid", "The attestation token is not valid yet.")
    case .expired: self.init("expired", "The attestation token has expired.")
    case .anotherDevice: self = .anotherDevice
    case .unnamedApp: self.init("unnamedApp", "The attestation token names no app.")
    case .unknownDevice: self = .unknownDevice
    case .anotherKey: self = .anotherKey
    case .blockedDevice: self = .blockedDevice
    case .baselineOfAnotherDevice: self = .baselineOfAnotherDevice
    }
  }

  static let developmentKey = RefusalReason(
    "developmentKey", "The development code does not belong to this evidence and the present development key.")
  static let notEvidence = RefusalReason("notEvidence", "These bytes are not evidence of an app.")
  static let unknownToken = RefusalReason("unknownToken", "This host has no such token.")
  static let anotherDevice = RefusalReason("anotherDevice", "The app was attested for another device.")
  static let unknownDevice = RefusalReason("unknownDevice", "The device is not registered.")
  static let anotherKey = RefusalReason("anotherKey", "The device is registered with another key.")
  static let blockedDevice = RefusalReason("blockedDevice", "The device is blocked.")
  static let baselineOfAnotherDevice = RefusalReason(
    "baselineOfAnotherDevice", "The baseline was used for another device.")
  static let revokedProver = RefusalReason("revokedProver", "The prover's host was revoked.")
  static let revokedUser = RefusalReason("revokedUser", "The user was revoked.")
  static let revokedToken = RefusalReason("revokedToken", "The token for this baseline was revoked.")
  static let expiredToken = RefusalReason("expiredToken", "The token for this baseline has expired.")
  static let anotherProver = RefusalReason("anotherProver", "The baseline belongs to another host.")
  static let unknownInvitation = RefusalReason("unknownInvitation", "There is no such invitation.")
  static let expiredInvitation = RefusalReason("expiredInvitation", "The invitation has expired.")
  static let revokedInvitation = RefusalReason("revokedInvitation", "The invitation was revoked.")
  static let usedInvitation = RefusalReason("usedInvitation", "The invitation was used already.")
  static let invitationForAnotherDevice = RefusalReason(
    "invitationForAnotherDevice", "The invitation is for another device.")
  static let refusedRequest = RefusalReason("refusedRequest", "An operator refused the request.")
  static let expiredRequest = RefusalReason(
    "expiredRequest", "The request expired before its token was collected; take a new baseline.")
  static let tooManyRequests = RefusalReason("tooManyRequests", "Too many requests wait for a decision.")
}

/// The reasons why an app gets nothing for a domain, or nothing of a kind, although it may be approved.
package enum DomainRefusal: String, Sendable, CaseIterable {
  /// There is no such domain.
  case unknownDomain
  /// The domain needs no token.
  case unprotectedDomain
  /// The domain is not one for which measurement tokens are issued.
  case domainWithoutMeasurement
  /// The policy switches off what the app asked for.
  case disabledFeature

  /// A sentence for people.
  package var text: String {
    switch self {
    case .unknownDomain: "There is no such domain."
    case .unprotectedDomain: "The domain needs no token."
    case .domainWithoutMeasurement: "The domain is not one for which measurement tokens are issued."
    case .disabledFeature: "The policy switches off what was asked for."
    }
  }
}

/// The answer to a request that is refused.
package struct Refusal: Sendable, Equatable {
  /// All reasons, at least one.
  package let reasons: [RefusalReason]
  /// The attestation response code; nil where the evidence is not authentic.
  package let code: BoundedText<16>?

  /// The refusal of bytes that are no evidence.
  static let notEvidence = Refusal(reasons: [.notEvidence], code: nil)
}

extension FleetSession {
  /// Records a refusal of an app that is known to be genuine or attested, with everything that explains it.
  func record(
    _ refusal: Refusal, at step: StaticString, device: DeviceID?, prover: HostID?, image: Digest? = nil
  ) throws(FleetFault) {
    try count(refusal.reasons)
    try send(
      """
      INSERT INTO refusals (moment, step, reasons, code, device, prover, image) VALUES ($1, $2, $3, $4, $5, $6, $7)
      """,
      .unsigned(now), .text(step.description), .text(refusal.reasons.map(\.identifier).joined(separator: " ")),
      .optional(refusal.code?.description), .optional(device?.array), .optional(prover?.array), .optional(image?.array))
  }

  /// Counts refusals by hour and reason. Where the evidence is not authentic, this is all that is kept: anyone could have
  /// sent it, any number of times.
  func count(_ reasons: [RefusalReason]) throws(FleetFault) {
    for reason in reasons { try count("refused." + reason.identifier) }
  }

  /// Counts a refusal that depends on what the app asked for.
  func count(_ refusal: DomainRefusal) throws(FleetFault) { try count("refused." + refusal.rawValue) }

  /// The name under which issued tokens are counted.
  static var issued: String { "issued" }

  /// Counts an event of this hour. The count is spread over 16 rows, so that requests at the same time do not wait for each
  /// other's commits.
  func count(_ name: String) throws(FleetFault) {
    try send(
      """
      INSERT INTO counters (hour, name, shard, count) VALUES ($1, $2, $3, 1)
      ON CONFLICT (hour, name, shard) DO UPDATE SET count = counters.count + 1
      """,
      .unsigned(now / 3600 * 3600), .text(name), .integer(Int64.random(in: 0..<16)))
  }
}

extension TypedBytes {
  /// The bytes, for a column.
  var array: [UInt8] {
    var array: [UInt8] = []
    array.append(bytes)
    return array
  }
}
