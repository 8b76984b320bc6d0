import HoldfastOnline

extension FetchStatus {
  /// Returns the status for a call without an answer.
  ///
  /// - Parameter hasNetwork: whether this host has a way to other networks.
  init(_ failure: CallFailure, hasNetwork: () -> Bool) {
    switch failure {
    case .carrier(.notStarted): self = .missingLibraryDependency
    case .carrier(.slow): self = .poorNetwork
    case .carrier: self = .internalError
    case .service(let failure): self = Self.status(of: failure, hasNetwork)
    }
  }

  private static func status(of failure: CarrierFailure, _ hasNetwork: () -> Bool) -> FetchStatus {
    switch failure.kind {
    case .refused: status(ofRefusal: failure)
    case .noName: .noNetwork
    case .noConnection: hasNetwork() ? .noService : .noNetwork
    case .timedOut: .poorNetwork
    case .wrongPin, .expiredCertificate, .certificateOfAnotherName, .untrustedCertificate: .mitmDetected
    case .noTLS, .notNow, .redirect, .malformedAnswer, .tooLongAnswer: .noService
    case .badAuthorities, .fault, .requestRefused, .requestExpired: .internalError
    }
  }

  /// Apart from what was asked for, only a status of 403 is about the app. Another one below 500 says that the service did not
  /// understand the request.
  private static func status(ofRefusal failure: CarrierFailure) -> FetchStatus {
    let byReason: [(reason: String, status: FetchStatus)] = [
      ("unknownDomain", .unknownURL), ("domainWithoutMeasurement", .unknownURL), ("unprotectedDomain", .unprotectedURL),
      ("disabledFeature", .disabled),
    ]
    let found = byReason.first { failure.reasons.contains($0.reason) }
    return found?.status ?? (failure.status == 403 ? .rejected : .internalError)
  }
}
