#if Service
import HTTPTypes
import HoldfastCore
import HoldfastFormats
import HoldfastIssuer
import HoldfastService
import Hummingbird
import NIOCore

/// The routes for provers, devices' owners and probes.
struct PublicRoutes: Sendable {
  let service: ServiceContext

  /// The largest body of a prover's request: evidence in base64, and a device's descriptor.
  private static let bodyLimit = 128 * 1024
  /// The largest body with pages of an audit log, four of 3872 bytes in base64.
  private static let pagesBodyLimit = 32 * 1024
  /// The seconds after which a prover may ask again whether an operator has decided.
  private static let retrySeconds = 5

  func add(to routes: Routes) {
    routes.add(.attest) { request, _ in try await attest(request) }
    routes.add(.token) { request, _ in try await token(request) }
    routes.add(.requestState) { _, context in try await status(try context.parameters.require("id")) }
    routes.add(.enrolment) { request, _ in try await standing(request, isLeaving: false) }
    routes.add(.leave) { request, _ in try await standing(request, isLeaving: true) }
    routes.add(.postureRules) { _, _ in try await postureRules() }
    routes.add(.bulletins) { request, _ in try await bulletins(request) }
    routes.add(.audit) { request, _ in try await audit(request) }
    routes.add(.fetch) { request, _ in try await fetch(request) }
    routes.add(.configuration) { _, _ in try await configuration() }
    routes.add(.keys) { _, _ in try await keys() }
    routes.add(.appTokenKeys) { _, _ in try await appTokenKeys() }
    routes.add(.health) { _, _ in Response(.ok, .object([("status", .string("ok"))])) }
    routes.add(.readiness) { _, _ in try await ready() }
  }

  /// A refusal, with the text that tells people whom to ask for help.
  private func refused(_ refusal: HoldfastService.Refusal) -> Problem {
    var problem = Problem(refusal)
    problem.help = service.configuration.help
    return problem
  }

  private func attest(_ request: Request) async throws -> Response {
    let body = try Body(try await service.json(request, limit: Self.bodyLimit), of: .attest)
    let device = try body.device()
    let evidence = body.evidence
    let wishes = body.attestationWishes
    switch try await service.run({ fleet in try fleet.attest(evidence, for: device, wishes: wishes) }) {
    case .refused(let refusal): throw refused(refusal)
    case .unavailable(let refusal): throw Problem(refusal, code: nil)
    case .attested(let attestation):
      return Response(
        .ok,
        .object([
          ("attestation", .string(String(decoding: attestation.token, as: UTF8.self))),
          ("arc", .string(attestation.responseCode.description)), ("expires", .integer(attestation.expires)),
        ]))
    }
  }

  private func fetch(_ request: Request) async throws -> Response {
    let body = try Body(try await service.json(request, limit: Self.bodyLimit), of: .fetch)
    let evidence = body.evidence
    let wishes = try body.fetchWishes()
    switch try await service.run({ fleet in try fleet.fetch(evidence, wishes: wishes) }) {
    case .refused(let refusal): throw refused(refusal)
    case .unavailable(let refusal, let code): throw Problem(refusal, code: code.description)
    case .fetched(let answer): return Response(.ok, answer)
    }
  }

  /// Source: RFC 7519 §10.3.1 for the media type.
  private func configuration() async throws -> Response {
    let services = service.configuration.publicAddresses.map(\.description)
    let text = try await service.run { fleet in try fleet.configuration(services: services) }
    return Response(
      status: .ok, headers: [.contentType: "application/jwt", .cacheControl: "no-cache"],
      body: ResponseBody(byteBuffer: ByteBuffer(string: text)))
  }

  private func token(_ request: Request) async throws -> Response {
    let body = try Body(try await service.json(request, limit: Self.bodyLimit), of: .token)
    let device = try body.device()
    let attestation = body.attestation
    let invitation = body.invitation
    let hash = body.digest("hash")
    let wishes = try body.wishes()
    let answer = try await service.run { fleet in
      try fleet.issue(
        attestation: attestation, for: device, hash: hash, invitation: invitation, wishes: wishes)
    }
    switch answer {
    case .refused(let refusal): throw refused(refusal)
    case .waiting(let id):
      return Response(
        .accepted, .object([("request", .string(hexadecimal(id))), ("status", .string("waiting"))]),
        headers: [.location: "/v1/requests/\(hexadecimal(id))", .retryAfter: String(Self.retrySeconds)])
    case .issued(let token):
      return Response(
        .created,
        .object(
          [
            ("token", .string(paddedBase64(token.bytes))), ("format", .string(token.format)),
            ("claims", token.claims),
          ] + (token.terms.map { [("terms", .string(String(decoding: $0, as: UTF8.self)))] } ?? [])))
    }
  }

  private func status(_ key: String) async throws -> Response {
    guard let id: HoldfastService.RequestID = fixedBytes(hexadecimal: key),
      let found = try await service.run({ fleet in try fleet.status(of: id) })
    else { throw Problem.notFound }
    var members: [(String, JSONValue)] = [
      ("request", .string(hexadecimal(id))), ("status", .string(found.status.rawValue)),
    ]
    if let reason = found.reason { members.append(("reason", .string(reason))) }
    let headers: HTTPFields = found.status == .waiting ? [.retryAfter: String(Self.retrySeconds)] : [:]
    return Response(.ok, .object(members), headers: headers)
  }

  private func standing(_ request: Request, isLeaving: Bool) async throws -> Response {
    let operation = isLeaving ? PublicOperation.leave : .enrolment
    let body = try Body(try await service.json(request, limit: Self.bodyLimit), of: operation)
    let evidence = body.evidence
    guard let device = body.deviceID, let digest = body.tokenDigest else { throw Problem.notFound }
    let token = HeldToken(device: device, digest: digest)
    let answer = try await service.run { fleet in
      try isLeaving ? fleet.leave(evidence, token: token) : fleet.standing(evidence, of: token)
    }
    switch answer {
    case .refused(let refusal): throw refused(refusal)
    case .known(let standing):
      return Response(
        .ok,
        .object(
          [
            ("token", .string(hexadecimal(digest))), ("status", .string(standing.status.rawValue)),
            ("expires", .integer(standing.expires)),
          ] + (standing.terms.map { [("terms", .string(String(decoding: $0, as: UTF8.self)))] } ?? [])))
    }
  }

  /// Source: RFC 7519 §10.3.1 for the media type.
  private func postureRules() async throws -> Response {
    guard let text = try await service.run({ fleet in try fleet.postureRules()?.text }) else { throw Problem.notFound }
    return Response(
      status: .ok, headers: [.contentType: "application/jwt", .cacheControl: "no-cache"],
      body: ResponseBody(byteBuffer: ByteBuffer(string: text)))
  }

  private func bulletins(_ request: Request) async throws -> Response {
    let query = request.uri.queryParameters.map { (String($0.key), String($0.value)) }
    let parameters: JSONMember
    do throws(JSONMistake) { parameters = try PublicOperation.bulletins.parameters(query) } catch {
      throw Problem.malformed(error.text)
    }
    let have = parameters.member("have")?.value.number ?? 0
    guard let text = parameters.member("device")?.value.text, let device: DeviceID = fixedBytes(hexadecimal: text)
    else {
      throw Problem.notFound
    }
    let bulletins = try await service.run { fleet in try fleet.bulletins(for: device, above: have) }
    return Response(.ok, .object([("bulletins", .array(bulletins.map(Self.json)))]))
  }

  private static func json(_ bulletin: IssuedBulletin) -> JSONValue {
    .object([
      ("audience", .string(hexadecimal(bulletin.stamp.audience))), ("number", .integer(bulletin.stamp.number)),
      ("predecessor", .integer(bulletin.stamp.predecessor)),
      ("bulletin", .string(paddedBase64(bulletin.bytes))),
    ])
  }

  private func audit(_ request: Request) async throws -> Response {
    let body = try Body(try await service.json(request, limit: Self.pagesBodyLimit), of: .audit)
    guard let device = body.deviceID else { throw Problem.notFound }
    let pages = body.pages
    let answer = try await service.run { fleet in try fleet.receive(pages: pages, of: device) }
    return Response(
      .ok,
      .object([
        ("receipt", answer.receipt.map { .string(paddedBase64($0)) } ?? .null),
        ("missing", answer.missing.map { .integer($0) } ?? .null),
      ]))
  }

  private func keys() async throws -> Response {
    let keys = try await service.run { fleet in
      try fleet.issuerKeys().map { key in Self.jwk(key.point, key.id, [("active", .integer(key.active))]) }
    }
    let agreement = try await service.run { fleet in try fleet.agreementKey() }
    return Self.keySet(keys, [("agreement", PublicKeyJWK(point: agreement).json)])
  }

  private func appTokenKeys() async throws -> Response {
    let keys = try await service.run { fleet in
      try fleet.appTokenKeys().map { key in
        Self.jwk(
          key.point, key.id, [("active", .integer(key.active)), ("configuration", .bool(key.isForConfiguration))])
      }
    }
    return Self.keySet(keys)
  }

  /// Source: RFC 7517 §5.
  private static func keySet(_ keys: [JSONValue], _ more: [(String, JSONValue)] = []) -> Response {
    Response(.ok, .object([("keys", .array(keys))] + more), headers: [.cacheControl: "public, max-age=300"])
  }

  private static func jwk(_ point: P256Point, _ id: KeyID, _ more: [(String, JSONValue)] = []) -> JSONValue {
    let signature: [(String, JSONValue)] = [
      ("kid", .string(base64URL(id.bytes))), ("use", .string("sig")), ("alg", .string("ES256")),
    ]
    return .object((PublicKeyJWK(point: point).json.members ?? []) + signature + more)
  }

  private func ready() async throws -> Response {
    try await service.run { fleet in try fleet.check() }
    return Response(.ok, .object([("status", .string("ready"))]))
  }
}

/// The body of a prover's request, whose form was checked. A text that has the form and too many bytes cannot be used.
private struct Body {
  private let json: JSONValue

  init(_ value: JSONValue, of operation: PublicOperation) throws(Problem) {
    do throws(JSONMistake) { try operation.check(value) } catch { throw .malformed(error.text) }
    json = value
  }

  var evidence: [UInt8] { json["evidence"]?.text.flatMap { Schema.base64Bytes($0) } ?? [] }

  /// The device that made pages of an audit log, or that a measurement token is for.
  var deviceID: DeviceID? { json["device"]?.text.flatMap { fixedBytes(hexadecimal: $0) } }

  /// Sealed pages of an audit log.
  var pages: [[UInt8]] { json["pages"]?.elements?.map { $0.text.flatMap { Schema.base64Bytes($0) } ?? [] } ?? [] }

  var attestation: [UInt8] { Array((json["attestation"]?.text ?? "").utf8) }

  /// SHA-256 of a measurement token.
  var tokenDigest: Digest? { json["token"]?.text.flatMap { fixedBytes(hexadecimal: $0) } }

  var invitation: InvitationCode? { json["invitation"]?.text.flatMap { InvitationCode($0) } }

  func device() throws(Problem) -> DeviceDescriptor {
    do throws(KeyFault) { return try DeviceDescriptor(json["device"] ?? .null) } catch {
      throw Problem(AdministrationFault.conflict(.invalidKey))
    }
  }

  /// A member of 32 bytes in base64.
  func digest(_ name: String) -> Digest? {
    json[name]?.text.flatMap { Schema.base64Bytes($0) }.flatMap { Digest($0.span) }
  }

  var attestationWishes: AttestationWishes {
    var wishes = AttestationWishes()
    wishes.domain = json["domain"]?.text
    (wishes.hash, wishes.development) = (digest("hash"), digest("development"))
    return wishes
  }

  func fetchWishes() throws(Problem) -> FetchWishes {
    var wishes = FetchWishes()
    wishes.domain = json["domain"]?.text
    (wishes.hash, wishes.development) = (digest("hash"), digest("development"))
    wishes.strings = json["strings"]?.flag ?? false
    wishes.payload = json["payload"]
    if let payload = wishes.payload, !FetchWishes.canSign(payload) {
      throw Problem(AdministrationFault.conflict(.tooLong))
    }
    return wishes
  }

  func wishes() throws(Problem) -> TokenWishes {
    var wishes = TokenWishes()
    switch json["format"]?.text {
    case "jose": wishes.format = .jose
    case "jose-a256kw": wishes.format = .joseKeyWrap
    default: wishes.format = .cose
    }
    wishes.user = try json["user"]?.text.map { text throws(Problem) in try Self.bounded(text) }
    wishes.commands = try json["commands"]?.elements?.map { element throws(Problem) in
      try Self.bounded(element.text ?? "")
    }
    return wishes
  }

  private static func bounded(_ text: String) throws(Problem) -> BoundedText<32> {
    guard let bounded = BoundedText<32>(text) else { throw Problem(AdministrationFault.conflict(.tooLong)) }
    return bounded
  }
}
#endif
