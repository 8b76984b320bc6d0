import HoldfastOnline

/// A request to a service by HTTP.
package struct HTTPRequest: Sendable, Equatable {
  /// The path below the service's address.
  package let path: String
  /// The body, JSON; nil for a request with GET.
  package let body: [UInt8]?
  /// The maximum byte count of the answer's body.
  package let answerByteLimit: Int

  /// Creates a request.
  package init(path: String, body: [UInt8]? = nil, answerByteLimit: Int = HTTPAnswer.maximumByteCount) {
    (self.path, self.body, self.answerByteLimit) = (path, body, answerByteLimit)
  }
}

/// A service's answer by HTTP.
package struct HTTPAnswer: Sendable, Equatable {
  /// The status, 200 to 599.
  package let status: UInt64
  /// The header Content-Type; an empty text if there is none.
  package let contentType: String
  /// The seconds of the header Retry-After; nil if there is none.
  package let retryAfterSeconds: UInt64?
  /// The body, at most as long as the request says.
  package let body: [UInt8]

  /// The maximum byte count of a body, unless its request has another one.
  package static let maximumByteCount = 65_536

  /// Creates an answer.
  package init(status: UInt64, contentType: String, retryAfterSeconds: UInt64? = nil, body: [UInt8]) {
    (self.status, self.contentType, self.retryAfterSeconds) = (status, contentType, retryAfterSeconds)
    self.body = body
  }

  /// Returns whether the body has a media type, without regard to parameters and case.
  ///
  /// Source: RFC 9110 §8.3.1.
  func hasType(_ type: String) -> Bool {
    let essence = contentType.utf8.prefix { $0 != UInt8(ascii: ";") && $0 != UInt8(ascii: " ") }
    return essence.map { (0x41...0x5a).contains($0) ? $0 | 0x20 : $0 }.elementsEqual(type.utf8)
  }
}

/// The world around an exchange with services: the network, the clock, randomness, and the prover that waits.
package protocol ExchangeEnvironment {
  /// Sends a request and returns the answer.
  ///
  /// - Throws: the kind of the failure if there is no whole answer within that time.
  mutating func send(
    _ request: HTTPRequest, to service: PinnedService, withinMilliseconds milliseconds: UInt64
  ) throws(CarrierFailure.Kind) -> HTTPAnswer

  /// Returns the milliseconds since some moment. The value never goes back.
  func monotonicMilliseconds() -> UInt64

  /// Waits that many milliseconds.
  mutating func pause(milliseconds: UInt64)

  /// Returns a random number from 0 to `bound`.
  mutating func random(upTo bound: UInt64) -> UInt64

  /// Tells the prover of a step.
  mutating func report(_ progress: CarrierProgress)
}

extension CarrierFailure.Kind: Error {}
