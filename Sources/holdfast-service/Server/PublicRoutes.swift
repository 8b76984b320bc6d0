#if Service
import HTTPTypes
import HoldfastCore
import HoldfastFormats
import HoldfastIssuer
import HoldfastService
import Hummingbird

/// The routes for provers, devices' owners and probes.
struct PublicRoutes: Sendable {
  let service: ServiceContext

  /// The largest body of a prover's request: evidence in base64, and a device's descriptor.
  private static let bodyLimit = 128 * 1024
  /// The seconds after which a prover may ask again whether an operator has decided.
  private static let retrySeconds = 5

  func add(to router: Router<ServiceRequestContext>) {
    router.post("/v1/attest") { request, _ in try await attest(request) }
    router.post("/v1/tokens") { request, _ in try await token(request) }
    router.get("/v1/requests/{id}") { _, context in try await status(try context.parameters.require("id")) }
    router.get("/.well-known/jwks.json") { _, _ in try await keys() }
    router.get("/healthz") { _, _ in Response(.ok, .object([("status", .string("ok"))])) }
    router.get("/readyz") { _, _ in try await ready() }
  }

  private func attest(_ request: Request) async throws -> Response {
    let body = try Body(try await service.json(request, limit: Self.bodyLimit), members: ["device", "evidence"])
    let device = try body.device()
    let evidence = try body.base64("evidence", limit: SubmittedEvidence.maximumByteCount)
    switch try await service.run({ fleet in try fleet.attest(evidence, for: device) }) {
    case .malformed: throw Problem.malformed("The member evidence is not evidence.")
    case .refused(let refusal): throw Problem(refusal)
    case .attested(let attestation):
      return Response(
        .ok,
        .object([
          ("attestation", .string(String(decoding: attestation.token, as: UTF8.self))),
          ("arc", .string(attestation.responseCode.description)), ("expires", .integer(attestation.expires)),
        ]))
    }
  }

  private func token(_ request: Request) async throws -> Response {
    let body = try Body(
      try await service.json(request, limit: Self.bodyLimit),
      members: ["attestation", "device", "invitation", "format", "user", "commands"])
    let device = try body.device()
    let attestation = Array(try body.text("attestation", byteCounts: 1...16_384).utf8)
    let invitation = try body.invitation()
    let wishes = try body.wishes()
    let answer = try await service.run { fleet in
      try fleet.issue(attestation: attestation, for: device, invitation: invitation, wishes: wishes)
    }
    switch answer {
    case .refused(let refusal): throw Problem(refusal)
    case .waiting(let id):
      return Response(
        .accepted, .object([("request", .string(hexadecimal(id))), ("status", .string("waiting"))]),
        headers: [.location: "/v1/requests/\(hexadecimal(id))", .retryAfter: String(Self.retrySeconds)])
    case .issued(let token):
      var text: [UInt8] = []
      text.append(asPaddedBase64: token.bytes.span)
      return Response(
        .created,
        .object([
          ("token", .string(String(decoding: text, as: UTF8.self))), ("format", .string(token.format)),
          ("claims", token.claims),
        ]))
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

  /// Source: RFC 7517 §5.
  private func keys() async throws -> Response {
    let keys = try await service.run { fleet in
      try fleet.issuerKeys().map { key -> JSONValue in
        .object(
          (PublicKeyJWK(point: key.point).json.members ?? []) + [
            ("kid", .string(base64URL(key.id.bytes))), ("use", .string("sig")), ("alg", .string("ES256")),
            ("active", .integer(key.active)),
          ])
      }
    }
    return Response(.ok, .object([("keys", .array(keys))]), headers: [.cacheControl: "public, max-age=300"])
  }

  private func ready() async throws -> Response {
    try await service.run { fleet in try fleet.check() }
    return Response(.ok, .object([("status", .string("ready"))]))
  }
}

/// The body of a prover's request, whose members have been named.
private struct Body {
  private let json: JSONMember

  init(_ value: JSONValue, members: [String]) throws(Problem) {
    json = JSONMember(value)
    do throws(JSONMistake) { try json.checkMembers(members) } catch { throw .malformed(error.text) }
  }

  func text(_ name: String, byteCounts: ClosedRange<Int>) throws(Problem) -> String {
    do throws(JSONMistake) { return try json.required(name).text(byteCounts: byteCounts) } catch {
      throw .malformed(error.text)
    }
  }

  func device() throws(Problem) -> DeviceDescriptor {
    do throws(JSONMistake) {
      let member = try json.required("device")
      guard member.value.hasOnly(["device_id", "kid", "public_key"]) else { throw member.mistake(.object) }
      do throws(KeyFault) { return try DeviceDescriptor(member.value) } catch { throw member.mistake(.object) }
    } catch { throw .malformed("The member device must be a device's descriptor, as device show --json prints it.") }
  }

  func base64(_ name: String, limit: Int) throws(Problem) -> [UInt8] {
    let text = Array(try text(name, byteCounts: 0...(limit / 3 * 4 + 4)).utf8)
    var buffer = HoldfastCore.ByteBuffer<65_536>()
    do throws(EncodingFault) { try buffer.append(paddedBase64: text.span) } catch {
      throw .malformed("The member \(name) must be base64 with padding.")
    }
    var bytes: [UInt8] = []
    bytes.append(buffer.bytes)
    return bytes
  }

  func invitation() throws(Problem) -> InvitationCode? {
    guard json.member("invitation") != nil else { return nil }
    guard let code = InvitationCode(try text("invitation", byteCounts: 1...64)) else {
      throw .malformed("The member invitation must be 20 letters and digits of base32.")
    }
    return code
  }

  func wishes() throws(Problem) -> TokenWishes {
    var wishes = TokenWishes()
    if json.member("format") != nil {
      switch try text("format", byteCounts: 1...16) {
      case "cose": wishes.format = .cose
      case "jose": wishes.format = .jose
      case "jose-a256kw": wishes.format = .joseKeyWrap
      default: throw .malformed("The member format must be cose, jose or jose-a256kw.")
      }
    }
    if json.member("user") != nil { wishes.user = BoundedText<32>(try text("user", byteCounts: 1...32)) }
    if let commands = json.member("commands") {
      do throws(JSONMistake) {
        let elements = try commands.elements()
        guard elements.count <= 16 else { throw commands.mistake(.atMost(16)) }
        var names: [BoundedText<32>] = []
        for element in elements {
          guard let name = BoundedText<32>(try element.text(byteCounts: 1...32)) else {
            throw element.mistake(.byteCount(1...32))
          }
          names.append(name)
        }
        wishes.commands = names
      } catch { throw .malformed(error.text) }
    }
    return wishes
  }
}
#endif
