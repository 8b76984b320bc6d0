import HoldfastCore
import HoldfastFormats

/// A request for a token that waits for a decision of the service's operator.
package final class OnlineRequest: Sendable {
  /// The id of the request, 32 hexadecimal digits.
  package let id: String
  /// The service that gave the id.
  package let service: ServiceAddress

  /// Creates a request; nil if the id is not one.
  package init?(id: String, service: ServiceAddress) {
    guard let bytes: FixedBytes<16> = fixedBytes(hexadecimal: id) else { return nil }
    self.id = hexadecimal(bytes)
    self.service = service
  }
}

/// The wishes for a token, which the service may refuse.
package struct TokenWishes: Sendable {
  /// The format of the token; nil for the service's choice.
  package let format: String?
  /// The only user whose codes may accompany the token; nil for any user.
  package let user: String?
  /// The commands that the token allows; nil for all that the service's policy allows.
  package let commands: [String]?

  /// The formats that a service issues.
  package static let formats = ["cose", "jose", "jose-a256kw"]

  /// Creates wishes.
  package init(format: String? = nil, user: String? = nil, commands: [String]? = nil) {
    (self.format, self.user, self.commands) = (format, user, commands)
  }

  /// The wishes as members of an object; those that are nil are left out.
  package var members: [(String, JSONValue)] {
    var members: [(String, JSONValue)] = []
    if let format { members.append(("format", .string(format))) }
    if let user { members.append(("user", .string(user))) }
    if let commands { members.append(("commands", .array(commands.map { .string($0) }))) }
    return members
  }
}

/// A service to try, and the pins of which a key in its chain of certificates must have one; none if its certificate suffices.
package struct PinnedService: Sendable {
  /// The address of the service.
  package let address: ServiceAddress
  /// The pins.
  package let pins: [ServicePin]

  /// Creates a service to try.
  package init(_ address: ServiceAddress, pins: [ServicePin]) { (self.address, self.pins) = (address, pins) }
}

/// The attempts of an enrolment whose services do not answer.
package struct AttemptRule: Sendable, Equatable {
  /// The number of attempts after the first that may fail in a row; nil for as many as the time allows.
  package let retryCount: UInt64?
  /// The pause after an attempt that failed, in seconds; nil for a random one that grows from 0.25 to 8 seconds.
  package let pauseSeconds: UInt64?

  /// The ranges of the two numbers.
  package static let retryRange: ClosedRange<UInt64> = 0...1000
  package static let pauseRange: ClosedRange<UInt64> = 0...3600

  /// Creates a rule; nil for numbers out of range.
  package init?(retryCount: UInt64? = nil, pauseSeconds: UInt64? = nil) {
    guard retryCount.map(Self.retryRange.contains) ?? true, pauseSeconds.map(Self.pauseRange.contains) ?? true else {
      return nil
    }
    (self.retryCount, self.pauseSeconds) = (retryCount, pauseSeconds)
  }

  private init() { (retryCount, pauseSeconds) = (nil, nil) }

  /// The usual rule.
  package static let usual = AttemptRule()
}

/// The task of a carrier: the only message that the prover sends it, as one line of JSON on its standard input.
package enum CarrierTaskLine {
  /// The range of a task's time, in seconds.
  package static let timeoutRange: ClosedRange<UInt64> = 1...86_400

  /// Returns the line of an enrolment, with its newline.
  ///
  /// - Parameters:
  ///   - services: the services in the order in which they are tried, 1 to ``ServiceAddress/countLimit``.
  ///   - authorities: the file with certificate authorities; nil for those of the system alone.
  ///   - withSystem: whether those of the system count too, if there is a file.
  ///   - attempts: the attempts if services do not answer.
  ///   - timeoutSeconds: the time for the whole task, in ``timeoutRange``.
  ///   - evidence: the evidence. Anyone who reads it knows the measurements.
  ///   - device: the descriptor of the device.
  ///   - invitation: the secret code of an invitation; nil for none.
  ///   - wishes: the wishes for the token.
  ///   - request: the request that waits already; nil for none.
  package static func encode(
    services: [PinnedService], authorities: String?, withSystem: Bool = false, attempts: AttemptRule = .usual,
    timeoutSeconds: UInt64, evidence: [UInt8], device: JSONValue, invitation: String?, wishes: TokenWishes,
    request: OnlineRequest?
  ) -> [UInt8] {
    var members: [(String, JSONValue)] = [("evidence", .string(paddedBase64(evidence))), ("device", device)]
    if let invitation { members.append(("invitation", .string(invitation))) }
    members += wishes.members
    if let count = attempts.retryCount { members.append(("retries", .integer(count))) }
    if let seconds = attempts.pauseSeconds { members.append(("pause", .integer(seconds))) }
    if let request {
      members.append(
        ("request", .object([("id", .string(request.id)), ("service", .string(request.service.description))])))
    }
    return line(services, authorities, withSystem, timeoutSeconds, members)
  }

  /// Returns the line of a call, with its newline. For the other parameters see the variant for an enrolment.
  ///
  /// - Parameter call: the operation, with the body of its request.
  package static func encode(
    services: [PinnedService], authorities: String?, withSystem: Bool = false, timeoutSeconds: UInt64, call: ServiceCall
  ) -> [UInt8] {
    var members: [(String, JSONValue)] = [
      ("operation", .string(call.operation.rawValue)), ("attempts", .integer(call.attemptCount)),
    ]
    if let body = call.body { members.append(("body", body)) }
    if !call.values.isEmpty { members.append(("query", .array(call.values.map { .string($0) }))) }
    return line(services, authorities, withSystem, timeoutSeconds, members)
  }

  /// The members that every task has, and those of one.
  private static func line(
    _ services: [PinnedService], _ authorities: String?, _ withSystem: Bool, _ timeoutSeconds: UInt64,
    _ members: [(String, JSONValue)]
  ) -> [UInt8] {
    let services = services.map { service in
      JSONValue.object([
        ("url", .string(service.address.description)), ("pins", .array(service.pins.map { .string($0.description) })),
      ])
    }
    var all: [(String, JSONValue)] = [
      ("version", .integer(1)), ("services", .array(services)), ("timeout", .integer(timeoutSeconds)),
    ]
    if let authorities {
      all.append(("ca", .string(authorities)))
      if withSystem { all.append(("system", .bool(true))) }
    }
    return JSONValue.object(all + members).compact() + [0x0a]
  }
}
