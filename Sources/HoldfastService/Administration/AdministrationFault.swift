import HoldfastDatabase
import HoldfastFormats

/// The reasons why the service did not carry out an operator's request.
package enum AdministrationFault: Error, Equatable, Sendable {
  /// The request has a mistake.
  case mistake(JSONMistake)
  /// There is no record with that id.
  case notFound
  /// The record's state does not permit the change; nothing changed.
  case conflict(Conflict)
  /// The service could not answer.
  case fleet(FleetFault)

  /// The states that do not permit a change.
  package enum Conflict: String, Sendable, CaseIterable {
    /// A text has more bytes of UTF-8 than its record can hold.
    case tooLong
    /// The device's key is no point of the curve, or its id is that of another key.
    case invalidKey
    /// A listing can be filtered by one of its members only.
    case severalFilters
    /// The device is registered with another key.
    case anotherKey
    /// The release is registered with another evidence key.
    case anotherEvidenceKey
    /// The invitation was used or revoked already.
    case usedInvitation
    /// The request was decided already, or has expired.
    case decidedRequest
    /// There is an operator of that name.
    case existingOperator
    /// Entries between the last known one and the first of this part of an audit log are missing.
    case gapInLog
    /// This part of an audit log is not of the log that is known: an entry was changed, or the device was restored or reset.
    case forkedLog
    /// The entries are no entries of an audit log, or their numbers are not in order.
    case brokenLog
    /// A name is no DNS name in lower case, and no `*` where that may stand.
    case invalidDomain
    /// A text is no pin of a public key.
    case invalidPin
    /// There are as many domains, pins of a domain or secure strings as there may be.
    case tooMany
    /// The domain's tokens are not signed with a key of its own.
    case notShared
    /// The maker's manifest does not name the executable with this name and version.
    case anotherManifest
    /// The signature of a manifest is not the maker's, or the maker's key is none.
    case manifestSignature
    /// The number is not above that of the present rules.
    case notNewer
    /// The policy names makers, and the descriptor is not signed by any of them.
    case unsignedDevice
    /// The name belongs to apps that run with the development key.
    case reservedSubject
    /// The app has a higher minimum version already, which devices keep.
    case lowerVersion
    /// No approved executable of the app has this version or a later one.
    case unapprovedVersion
    /// A key introduces others only once it signs, and not itself.
    case cannotIntroduce
    /// Bulletins have introduced the key with other times, which devices keep.
    case introducedKey
    /// The key, or the one that would introduce it, ends for the device or the group.
    case endedKey
    /// The service has not introduced the key that signs now to the devices that would lose this one.
    case noSuccessor
    /// The time is over, or a key would not sign before it.
    case pastTime
  }
}

extension Fleet {
  /// Runs an operator's change as one transaction.
  func changing<Result>(
    _ body: (FleetSession) throws(AdministrationFault) -> Result
  ) throws(AdministrationFault) -> Result {
    try Self.unwrapping { (fault) throws(FleetFault) in
      try transaction { (session) throws(FleetFault) in
        try Self.passing(&fault) { () throws(AdministrationFault) in try body(session) }
      }
    }
  }

  /// Runs an operator's query.
  func reading<Result>(
    _ body: (FleetSession) throws(AdministrationFault) -> Result
  ) throws(AdministrationFault) -> Result {
    try Self.unwrapping { (fault) throws(FleetFault) in
      try read { (session) throws(FleetFault) in
        try Self.passing(&fault) { () throws(AdministrationFault) in try body(session) }
      }
    }
  }

  private static func unwrapping<Result>(
    _ body: (inout AdministrationFault?) throws(FleetFault) -> Result
  ) throws(AdministrationFault) -> Result {
    var fault: AdministrationFault?
    do throws(FleetFault) { return try body(&fault) } catch { throw fault ?? .fleet(error) }
  }

  private static func passing<Result>(
    _ fault: inout AdministrationFault?, _ body: () throws(AdministrationFault) -> Result
  ) throws(FleetFault) -> Result {
    do throws(AdministrationFault) { return try body() } catch {
      if case .fleet(let cause) = error { throw cause }
      fault = error
      throw .corrupt
    }
  }
}
