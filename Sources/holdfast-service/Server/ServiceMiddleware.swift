#if Service
import HTTPTypes
import HoldfastService
import Hummingbird
import Logging
import Metrics
import Synchronization

/// The outermost layer of the server: it limits the rate of requests, turns every error into a problem document, sets the
/// headers that every response has, and writes one log entry for each request.
///
/// A log entry never contains a body, a query or a header.
struct ServiceMiddleware: RouterMiddleware {
  typealias Context = ServiceRequestContext

  let limiter: RateLimiter

  func handle(
    _ request: Request, context: ServiceRequestContext,
    next: (Request, ServiceRequestContext) async throws -> Response
  ) async throws -> Response {
    let clock = ContinuousClock()
    let start = clock.now
    var context = context
    // The id of the context is that of its logger.
    if let id = Self.id(of: request) { context.logger[metadataKey: "hb.request.id"] = "\(id)" }
    var response = await answer(request, context: context, next: next)
    response.headers[.requestID] = context.id
    response.headers[HTTPField.Name("X-Content-Type-Options")!] = "nosniff"
    response.headers[.strictTransportSecurity] = "max-age=63072000"
    let duration = start.duration(to: clock.now)
    let route = context.endpointPath ?? "none"
    let status = response.status.code
    Counter(
      label: "holdfast_requests_total", dimensions: [("route", route), ("status", String(status))]
    ).increment()
    Metrics.Timer(label: "holdfast_request_seconds", dimensions: [("route", route)]).record(duration: duration)
    context.logger.info(
      "request",
      metadata: [
        "method": "\(request.method)", "route": "\(route)", "status": "\(status)",
        "milliseconds": "\(Int(duration / .milliseconds(1)))",
        "address": "\(context.address)",
      ])
    return response
  }

  /// The id that the client or a proxy gave a request; nil if there is none, or not one of 1 to 64 letters, digits and `-._`.
  private static func id(of request: Request) -> String? {
    guard let id = request.headers[.requestID], (1...64).contains(id.utf8.count) else { return nil }
    let isPlain = id.utf8.allSatisfy { byte in
      switch byte {
      case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
        UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "_"):
        true
      default: false
      }
    }
    return isPlain ? id : nil
  }

  private func answer(
    _ request: Request, context: ServiceRequestContext,
    next: (Request, ServiceRequestContext) async throws -> Response
  ) async -> Response {
    do {
      try limiter.admit(context.address)
      return try await next(request, context)
    } catch {
      let problem = Problem(of: error)
      if problem.status.kind == .serverError { context.logger.error("failure", metadata: ["error": "\(error)"]) }
      return problem.response(requestID: context.id)
    }
  }
}

extension Problem {
  /// The problem of any error. An unknown error says nothing about itself.
  init(of error: any Error) {
    switch error {
    case let problem as Problem: self = problem
    case let fault as FleetFault: self.init(fault)
    case let fault as AdministrationFault: self.init(fault)
    case let error as HTTPError where error.status == .notFound: self = .notFound
    case let error as any HTTPResponseError where error.status.code < 500:
      self = .malformed("The request could not be read.")
    default: self.init(status: .internalServerError, type: "internal", title: "The service failed.")
    }
  }
}

/// A limit of the requests from each address: a bucket that fills at a constant rate. Each instance counts for itself.
final class RateLimiter: Sendable {
  private struct Bucket {
    var tokens: Double
    var filled: ContinuousClock.Instant
  }

  private static let addressLimit = 100_000

  private let perMinute: Double
  private let buckets = Mutex<[String: Bucket]>([:])

  init(perMinute: UInt64) { self.perMinute = Double(perMinute) }

  /// Counts a request.
  ///
  /// - Throws: A problem with the time after which the address may try again.
  func admit(_ address: String, at now: ContinuousClock.Instant = .now) throws(Problem) {
    let isAdmitted = buckets.withLock { buckets in
      if buckets.count >= Self.addressLimit { buckets = buckets.filter { !isFull($0.value, at: now) } }
      var bucket = buckets[address] ?? Bucket(tokens: perMinute, filled: now)
      bucket.tokens = filled(bucket, at: now)
      bucket.filled = now
      let isAdmitted = bucket.tokens >= 1
      if isAdmitted { bucket.tokens -= 1 }
      buckets[address] = bucket
      return isAdmitted
    }
    if !isAdmitted { throw .tooManyRequests(retrySeconds: max(1, Int(60 / perMinute))) }
  }

  /// Takes back a request that shall not count.
  func forgive(_ address: String) {
    buckets.withLock { buckets in
      guard let bucket = buckets[address] else { return }
      buckets[address]?.tokens = min(perMinute, bucket.tokens + 1)
    }
  }

  private func filled(_ bucket: Bucket, at now: ContinuousClock.Instant) -> Double {
    min(perMinute, bucket.tokens + bucket.filled.duration(to: now) / .seconds(60) * perMinute)
  }

  private func isFull(_ bucket: Bucket, at now: ContinuousClock.Instant) -> Bool {
    filled(bucket, at: now) >= perMinute
  }
}
#endif
