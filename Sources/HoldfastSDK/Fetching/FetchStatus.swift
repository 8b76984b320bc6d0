/// The outcome of a fetch.
///
/// Source: Approov, "Fetch Status Handling". Three of its statuses have no counterpart: a client exists only after its
/// initialisation (`notInitialized`), Linux has no permission for the network (`NO_NETWORK_PERMISSION`), and a program without its
/// libraries does not start, so that ``missingLibraryDependency`` is only about the carrier.
public enum FetchStatus: String, Sendable, CaseIterable {
  /// The fetch was successful. `SUCCESS` in the document.
  case success
  /// This host has no network. `NO_NETWORK`.
  case noNetwork
  /// The service answered too slowly, or not at all. `POOR_NETWORK`.
  case poorNetwork
  /// The connection ends at another server: its key has none of the pins, or its certificate does not count. Nothing was sent.
  /// `MITM_DETECTED`.
  case mitmDetected
  /// No service can be reached, or none gives a proper answer. `NO_APPROOV_SERVICE`.
  case noService
  /// The service refuses to attest the app; ``FetchResult/rejectionReasons`` says why. `REJECTED`.
  case rejected
  /// The domain is neither a DNS name nor an `https` URL. `BAD_URL`.
  case badURL
  /// The account has no such API domain, or none that takes measurements. `UNKNOWN_URL`.
  case unknownURL
  /// The API domain takes no tokens; it is only pinned. `UNPROTECTED_URL`.
  case unprotectedURL
  /// The account has not switched the feature on. `DISABLED`.
  case disabled
  /// There is no secure string of that name. `UNKNOWN_KEY`.
  case unknownKey
  /// The name or the new definition of a secure string is too long, or the name is empty or has control characters. `badKey`.
  case badKey
  /// The payload of a custom JWT is not a JSON object of at most 4096 bytes, or has a claim that the service sets. `badPayload`.
  case badPayload
  /// The program `holdfast-carrier`, which makes the requests, is missing or cannot be started. `MISSING_LIB_DEPENDENCY`.
  case missingLibraryDependency
  /// The app could not be measured, or something else failed on this host, or the service did not understand the request.
  /// `INTERNAL_ERROR`.
  case internalError

  /// The next step of the app.
  public enum Recommendation: String, Sendable, CaseIterable {
    /// Make the request to the API: with the token, if there is one.
    case proceed = "continue"
    /// Do not make the request. The library has tried again already, so that the next attempt should wait for a person.
    case retry
    /// Show the person why the app cannot go on.
    case message
    /// Log it: this should not happen in production.
    case error
  }

  /// The next step of the app. For ``noService``, the document leaves a choice: continuing without a token is another one.
  public var recommendation: Recommendation {
    switch self {
    case .success, .unprotectedURL, .unknownURL: .proceed
    case .noNetwork, .poorNetwork, .mitmDetected, .noService: .retry
    case .rejected: .message
    case .badURL, .disabled, .unknownKey, .badKey, .badPayload, .missingLibraryDependency, .internalError: .error
    }
  }

  /// A sentence for a person. The document's `stringFromApproovTokenFetchStatus`.
  public var text: String {
    switch self {
    case .success: "The fetch was successful."
    case .noNetwork: "This host has no network."
    case .poorNetwork: "The service did not answer in time."
    case .mitmDetected: "Another server has taken the service's place on this network. Connect to another network."
    case .noService: "The service cannot be reached at present."
    case .rejected: "The service does not accept this app or this host."
    case .badURL: "The address is not that of an API."
    case .unknownURL: "The account does not know this API."
    case .unprotectedURL: "This API needs no token."
    case .disabled: "The account has not switched this feature on."
    case .unknownKey: "There is no text of this name."
    case .badKey: "The name or the text cannot be used."
    case .badPayload: "The payload cannot be used."
    case .missingLibraryDependency: "The program holdfast-carrier is missing."
    case .internalError: "An internal error has occurred."
    }
  }
}
