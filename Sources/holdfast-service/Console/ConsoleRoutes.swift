#if Service
import HTTPTypes
import HoldfastFormats
import HoldfastService
import Hummingbird
import NIOCore

/// The routes of the console: pages for operators, made from the table of the administration interface.
struct ConsoleRoutes: Sendable {
  static let root = "/console"

  let service: ServiceContext
  let templates: Templates
  private let signIns = RateLimiter(perMinute: 10)

  init(service: ServiceContext, templates: Templates) { (self.service, self.templates) = (service, templates) }

  /// The largest form: a policy with percent-encoding.
  private static let formLimit = 256 * 1024

  func add(to routes: Routes) {
    routes.add(.get, Self.root) { try await page($0, $1) { try await overview($0) } }
    routes.add(.get, Self.root + "/sign-in") { request, _ in signInPage(request) }
    routes.add(.post, Self.root + "/sign-in") { try await signIn($0, $1) }
    routes.add(.post, Self.root + "/sign-out") { try await page($0, $1) { try await signOut($0) } }
    routes.add(.get, Self.root + "/sign-out") { _, _ in redirect(Self.root) }
    routes.add(.get, Stylesheet.path) { request, _ in Stylesheet.response(request, Stylesheet.text, "text/css") }
    routes.add(.get, Stylesheet.iconPath) { request, _ in
      Stylesheet.response(request, Stylesheet.icon, "image/svg+xml")
    }
    // A part of a log has hash chains, and comes from devices' owners with the verb audit receive.
    for operation in AdministrationOperation.all where operation.name != "receiveAudits" { add(operation, to: routes) }
    routes.add(.get, Self.root + "/**") { try await page($0, $1) { _ in throw Problem.notFound } }
  }

  private func add(_ operation: AdministrationOperation, to routes: Routes) {
    let path = operation.consolePath
    guard operation.method == .get else {
      routes.add(.get, path) { try await page($0, $1) { try await form($0, for: operation) } }
      routes.add(.post, path) { try await page($0, $1) { try await perform(operation, $0) } }
      return
    }
    routes.add(.get, path) { request, context in
      try await page(request, context) { visit in
        try operation.permit(visit.caller)
        if operation.name == "statistics" { return try await statistics(visit, operation) }
        if operation.hasKey { return try await record(visit, operation) }
        return operation.query.isEmpty ? try await single(visit, operation) : try await list(visit, operation)
      }
    }
  }

  /// Answers a request of a signed-in operator. Others are sent to the page for signing in, and every error has a page.
  private func page(
    _ request: Request, _ context: ServiceRequestContext, _ body: (Visit) async throws -> Response
  ) async throws -> Response {
    var visit: Visit?
    do {
      guard let secret = ConsoleSecurity.secret(in: request),
        let session = try await service.run({ fleet in try fleet.session(secret) })
      else {
        // The page that a sign-in leads to: a browser that did not keep the cookie is told so.
        let isLost = FormData(request.uri.query ?? "")?["signed-in"] != nil
        return redirect(Self.root + "/sign-in" + (isLost ? "?lost=1" : ""))
      }
      let found = Visit(
        request: request, context: context, session: session, query: FormData(request.uri.query ?? ""))
      visit = found
      return try await body(found)
    } catch {
      let problem = Problem(of: error)
      if problem.status.kind == .serverError { context.logger.error("failure", metadata: ["error": "\(error)"]) }
      return fault(problem, context, visit)
    }
  }

  // MARK: Sessions

  private func signInPage(_ request: Request, fault: String? = nil, status: HTTPResponse.Status = .ok) -> Response {
    var frame = FrameView("Sign in")
    frame.fault = fault
    if FormData(request.uri.query ?? "")?["lost"] != nil {
      frame.fault =
        "The browser did not keep the session. It keeps it only over HTTPS, and some browsers also at localhost."
    }
    return render(SignInPage(frame: frame, address: Self.root + "/sign-in"), "sign-in", status: status)
  }

  private func signIn(_ request: Request, _ context: ServiceRequestContext) async throws -> Response {
    do {
      try ConsoleSecurity.checkOrigin(request)
      try signIns.admit(context.address)
      let token = try await formData(request)["token"] ?? ""
      let seconds = service.configuration.sessionSeconds
      let secret = try await service.run { fleet in try fleet.beginSession(token: token, for: seconds) }
      guard let secret else {
        return signInPage(request, fault: "This token does not count.", status: .unauthorized)
      }
      // Only failures count.
      signIns.forgive(context.address)
      var response = redirect(Self.root + "?signed-in=1")
      response.headers[.setCookie] = ConsoleSecurity.setCookie(secret, seconds: seconds)
      return response
    } catch {
      let problem = Problem(of: error)
      if problem.status.kind == .serverError { context.logger.error("failure", metadata: ["error": "\(error)"]) }
      return fault(problem, context, nil)
    }
  }

  private func signOut(_ visit: Visit) async throws -> Response {
    _ = try await postedForm(visit)
    if let secret = ConsoleSecurity.secret(in: visit.request) {
      try await service.run { fleet in try fleet.endSession(secret) }
    }
    var response = redirect(Self.root + "/sign-in")
    response.headers[.setCookie] = ConsoleSecurity.setCookie(nil, seconds: 0)
    return response
  }

  /// Reads a form that a page of this session sent.
  func postedForm(_ visit: Visit) async throws -> FormData {
    try ConsoleSecurity.checkOrigin(visit.request)
    let form = try await formData(visit.request)
    guard visit.session.accepts(formToken: form["form_token"] ?? "") else { throw Problem.foreignForm }
    return form
  }

  private func formData(_ request: Request) async throws -> FormData {
    guard request.isOf(type: "application/x-www-form-urlencoded") else { throw Problem.foreignForm }
    let bytes = try await service.body(request, limit: Self.formLimit)
    guard let text = String(validating: bytes, as: UTF8.self), let form = FormData(text) else {
      throw Problem.malformed("The form cannot be read.")
    }
    return form
  }

  // MARK: Responses

  func render(_ page: Any, _ template: String, status: HTTPResponse.Status = .ok) -> Response {
    response(
      status, body: ByteBuffer(string: templates.render(page, template)), type: "text/html; charset=utf-8")
  }

  /// Leads the browser to another page with GET.
  func redirect(_ address: String) -> Response {
    var response = response(.seeOther, body: ByteBuffer(), type: "text/plain")
    response.headers[.location] = address
    return response
  }

  private func response(_ status: HTTPResponse.Status, body: ByteBuffer, type: String) -> Response {
    var headers: HTTPFields = [.contentType: type]
    for (name, value) in ConsoleSecurity.headers { headers[HTTPField.Name(name)!] = value }
    return Response(status: status, headers: headers, body: ResponseBody(byteBuffer: body))
  }

  private func fault(_ problem: Problem, _ context: ServiceRequestContext, _ visit: Visit?) -> Response {
    let title = String(problem.title.dropLast())
    let frame = visit.map { FrameView(title, $0.session, kind: "none") } ?? FrameView(title)
    let detail = problem.detail ?? (problem.reasons.isEmpty ? "" : problem.reasons.joined(separator: ", "))
    var answer = render(
      FaultPage(frame: frame, detail: detail, requestID: context.id, home: Self.root), "fault", status: problem.status)
    if let seconds = problem.retrySeconds { answer.headers[.retryAfter] = String(seconds) }
    return answer
  }
}
#endif
