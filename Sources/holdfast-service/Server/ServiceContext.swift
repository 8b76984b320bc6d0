#if Service
import HoldfastFormats
import HoldfastService
import Hummingbird
import HTTPTypes
import Logging
import NIOCore
import NIOPosix

/// The parts that all routes share: the service, and the threads on which it waits for its database.
struct ServiceContext: Sendable {
  let fleet: Fleet
  let threads: NIOThreadPool
  let configuration: ServiceConfiguration

  /// Runs a call of the service on a thread that may wait.
  func run<Answer: Sendable>(_ body: @escaping @Sendable (Fleet) throws -> Answer) async throws -> Answer {
    let fleet = fleet
    return try await threads.runIfActive { try body(fleet) }
  }

  /// Reads the body of a request, strict JSON.
  ///
  /// - Parameter limit: The largest body, in bytes.
  func json(_ request: Request, limit: Int) async throws -> JSONValue {
    guard request.isOf(type: "application/json") else { throw Problem.wrongMediaType }
    let bytes = try await body(request, limit: limit)
    do throws(JSONFault) {
      return try JSONValue(parsing: bytes, byteLimit: limit, otherNumbers: .withoutFraction)
    } catch {
      throw Problem.malformed(
        JSONMistake(in: bytes, byteLimit: limit)?.text ?? "The body is not JSON as the service reads it.")
    }
  }

  /// Reads the body. ``RequestDeadline`` limits the time that it may take.
  ///
  /// - Parameter limit: The largest body, in bytes.
  func body(_ request: Request, limit: Int) async throws -> [UInt8] {
    if let length = request.headers[.contentLength].flatMap({ Int($0) }), length > limit { throw Problem.tooLarge }
    var bytes: [UInt8] = []
    for try await part in request.body {
      guard bytes.count + part.readableBytes <= limit else { throw Problem.tooLarge }
      bytes.append(contentsOf: part.readableBytesView)
    }
    return bytes
  }
}

/// The context of one request.
struct ServiceRequestContext: RequestContext, RemoteAddressRequestContext {
  var coreContext: CoreRequestContextStorage
  let remoteAddress: SocketAddress?

  init(source: ApplicationRequestContextSource) {
    coreContext = CoreRequestContextStorage(source: source)
    remoteAddress = source.channel.remoteAddress
  }

  /// The address of the client, for logs and limits.
  var address: String { remoteAddress?.ipAddress ?? "local" }

  /// The key of a record in the path, with its percent-encoding (RFC 3986 §2.1) decoded; nil if the path has none.
  var key: String? { parameters.get("id").map { FormData.decoded($0[...]) ?? "" } }
}

extension Request {
  /// Returns whether the body has a media type, with any parameters.
  func isOf(type: String) -> Bool {
    let name = (headers[.contentType] ?? "").prefix { $0 != ";" }.lowercased()
    return name.split(separator: " ").first.map(String.init) == type
  }
}

extension Response {
  /// A response with JSON.
  init(_ status: HTTPResponse.Status = .ok, _ json: JSONValue, headers: HTTPFields = [:]) {
    var headers = headers
    headers[.contentType] = "application/json"
    headers[.cacheControl] = headers[.cacheControl] ?? "no-store"
    self.init(status: status, headers: headers, body: ResponseBody(byteBuffer: ByteBuffer(bytes: json.compact())))
  }
}
#endif
