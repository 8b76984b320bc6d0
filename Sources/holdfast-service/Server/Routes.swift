#if Service
import HTTPTypes
import HoldfastService
import Hummingbird

/// The routes of the server. A path that is asked with another method answers 405, with the methods that it has.
///
/// Source: RFC 9110 §15.5.6.
final class Routes {
  typealias Handler = @Sendable (Request, ServiceRequestContext) async throws -> Response

  private let router: Router<ServiceRequestContext>
  private var methods: [String: Set<HTTPRequest.Method>] = [:]

  init(_ router: Router<ServiceRequestContext>) { self.router = router }

  /// Adds the route of an operation.
  func add(_ operation: PublicOperation, _ handler: @escaping Handler) {
    add(operation.method, operation.path, handler)
  }

  /// Adds a route.
  func add(_ method: AdministrationOperation.Method, _ path: String, _ handler: @escaping Handler) {
    let method: HTTPRequest.Method =
      switch method {
      case .get: .get
      case .post: .post
      case .put: .put
      }
    router.on(RouterPath(path), method: method) { request, context in try await handler(request, context) }
    methods[path, default: []].insert(method)
    // The server leaves out the body of an answer to HEAD (RFC 9110 §9.3.2).
    guard method == .get else { return }
    router.on(RouterPath(path), method: .head) { request, context in try await handler(request, context) }
    methods[path, default: []].insert(.head)
  }

  /// Adds the answers to all other methods; called once, at the end.
  func addRefusals() {
    let all: [HTTPRequest.Method] = [.get, .head, .post, .put, .patch, .delete, .options, .trace, .query]
    for (path, allowed) in methods {
      let names = allowed.map(\.rawValue).sorted()
      for method in all where !allowed.contains(method) {
        router.on(RouterPath(path), method: method) { _, _ -> Response in throw Problem.methodNotAllowed(names) }
      }
    }
  }
}
extension HTTPRequest.Method {
  fileprivate static var query: HTTPRequest.Method { HTTPRequest.Method("QUERY")! }
}
#endif
