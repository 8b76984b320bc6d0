#if Service
import Glibc
import HTTPTypes
import HoldfastFormats
import HoldfastService
import Hummingbird
import NIOCore
import NIOPosix

/// The routes of the administration interface, made from its table of operations.
struct AdministrationRoutes: Sendable {
  let service: ServiceContext

  private static let bodyLimit = 1 << 20

  func add(to routes: Routes) {
    for operation in AdministrationOperation.all {
      routes.add(operation.method, operation.path) { request, context in
        try await perform(operation, request, key: context.key)
      }
    }
    routes.add(.export) { request, _ in try await export(request) }
  }

  /// Answers with a backup. The copy is made in the folder for temporary files before the answer begins.
  private func export(_ request: Request) async throws -> Response {
    let caller = try await authenticate(request)
    guard caller.scopes.contains(.admin) else { throw Problem.forbidden(.admin) }
    guard request.uri.queryParameters.isEmpty else { throw Problem.malformed("The request takes no parameters.") }
    let folder = unsafe getenv("TMPDIR").map { unsafe String(cString: $0) } ?? "/var/tmp"
    let copy = try await service.run { fleet in
      do throws(BackupFileFault) { return try fleet.backupCopy(in: folder, for: caller.actor) } catch {
        throw Problem(error)
      }
    }
    let byteCount = try copy.byteCount()
    return Response(
      status: .ok,
      headers: [
        .contentType: "application/octet-stream", .cacheControl: "no-store",
        .contentDisposition: "attachment; filename=\"holdfast-service.backup\"",
      ],
      body: ResponseBody(contentLength: byteCount) { [threads = service.threads] writer in
        var offset = 0
        while offset < byteCount {
          let piece = try await threads.runIfActive { [offset] in try copy.piece(at: offset) }
          guard !piece.isEmpty else { break }
          offset += piece.count
          try await writer.write(ByteBuffer(bytes: piece))
        }
        try await writer.finish(nil)
      })
  }

  private func perform(
    _ operation: AdministrationOperation, _ request: Request, key: String?
  ) async throws -> Response {
    let caller = try await authenticate(request)
    try operation.permit(caller)
    let query = request.uri.queryParameters.map { (String($0.key), String($0.value)) }
    var body: JSONValue?
    if let members = operation.body {
      let isEmpty = (request.headers[.contentLength] ?? "0") == "0" && request.headers[.transferEncoding] == nil
      let mayBeEmpty = !members.contains(where: \.isRequired)
      body = isEmpty && mayBeEmpty ? nil : try await service.json(request, limit: Self.bodyLimit)
    }
    return Response(
      .ok,
      try await service.run { [body] fleet in
        try operation.perform(fleet, by: caller, key: key, query: query, body: body)
      })
  }

  private func authenticate(_ request: Request) async throws -> Operator {
    guard let header = request.headers[.authorization], header.lowercased().hasPrefix("bearer ") else {
      throw Problem.unauthorized
    }
    let token = String(header.dropFirst("bearer ".count))
    guard let caller = try await service.run({ fleet in try fleet.authenticate(token) }) else {
      throw Problem.unauthorized
    }
    return caller
  }
}

extension AdministrationOperation {
  /// Checks that an operator's token permits the operation.
  func permit(_ caller: Operator) throws(Problem) {
    guard caller.scopes.contains(scope) else { throw .forbidden(scope) }
  }
}
#endif
