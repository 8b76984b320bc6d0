import HoldfastCore
import HoldfastFormats
import HoldfastIssuer
import HoldfastStorage

extension AdministrationOperation {
  /// All operations.
  package static let all: [AdministrationOperation] =
    devices + images + provers + users + tokens + invitations + requests + refusals + audits + keys + operators + apps
    + policyParts + bulletins + minimumVersions + keyOrders + userOrders + others

  private static let delivery = [
    Schema.Property(
      "groups", .array(.text(1...32), count: 0...BulletinList.groupLimit),
      "The groups of the device, whose bulletins it takes, in place of those before. The first one's have its revocations."
    ),
    Schema.Property(
      "revocation_capacity", .integer(DeliveryChange.capacities),
      "The number of revoked tokens that the device can keep."
    ),
  ]

  /// The filter for devices that have not been heard from.
  static let silence = Schema.Property(
    "silent_days", .integer(1...36_500), "Only devices no new part of whose audit log came within this number of days.")

  private static let devices: [AdministrationOperation] = [
    AdministrationOperation(
      "listDevices", .get, "/devices", .read, "Lists the devices: all, or those that have not been heard from.",
      query: paging + [silence], answer: Listing.devices.pageSchema
    ) { (fleet, request) throws(AdministrationFault) in
      try fleet.devicePage(
        silentDays: request.query.member("silent_days")?.value.number, after: request.query.member("after")?.value.text,
        limit: request.query.member("limit")?.value.number ?? 100)
    },
    show(.devices, "/devices/{id}", "Shows a device."),
    AdministrationOperation(
      "addDevice", .post, "/devices", .admin, "Registers a device with its key, or changes its label.",
      body: [
        Schema.Property(
          "device", .deviceDescriptor, required: true, "The descriptor, as device show --json prints it."),
        Schema.Property("label", .text(1...64), "A description for operators."),
        Schema.Property("signed_descriptor", .anyText(1...4096), "The descriptor, exactly as its maker signed it."),
        Schema.Property(
          "signature", .base64(byteCounts: 7...MakerSignature.maximumByteCount), "The maker's signature of it, in DER."),
      ] + delivery, answer: Listing.devices.schema
    ) { (fleet, request) throws(AdministrationFault) in
      let device = try request.descriptor("device")
      try fleet.register(
        device, label: try request.text("label"), try request.delivery(), signed: try request.signedDescriptor(),
        by: request.caller.actor)
      return try fleet.record(.devices, hexadecimal(device.deviceID))
    },
    action("blockDevice", on: .devices, "/devices/{id}/block", .revoke, "Blocks a device: it gets no more tokens.") {
      (fleet, request) throws(AdministrationFault) in
      try fleet.setBlocked(true, try request.id(), by: request.actor())
      return try fleet.record(.devices, request.key)
    },
    action("unblockDevice", on: .devices, "/devices/{id}/unblock", .admin, "Permits tokens for a blocked device again.")
    {
      (fleet, request) throws(AdministrationFault) in
      try fleet.setBlocked(false, try request.id(), by: request.actor())
      return try fleet.record(.devices, request.key)
    },
    action(
      "raiseGeneration", on: .devices, "/devices/{id}/raise-generation", .revoke,
      "Raises the generation: once the device sees a newer token, it refuses all older ones."
    ) { (fleet, request) throws(AdministrationFault) in
      _ = try fleet.raiseGeneration(of: try request.id(), by: request.actor())
      return try fleet.record(.devices, request.key)
    },
    action(
      "setGroups", on: .devices, "/devices/{id}/groups", .admin,
      "Sets the groups of a device, and the number of revoked tokens that it can keep.", body: delivery
    ) { (fleet, request) throws(AdministrationFault) in
      try fleet.set(try request.delivery(), of: try request.id(), by: request.actor())
      return try fleet.record(.devices, request.key)
    },
    revocation("revokeDevice", on: .devices, "/devices/{id}/revoke", "Revokes all tokens for a device, and blocks it.")
    {
      (fleet, request, reason) throws(AdministrationFault) in
      try fleet.revoke(device: try request.id(), reason: reason, by: request.caller.actor)
      return try fleet.record(.devices, request.key)
    },
  ]

  private static let images: [AdministrationOperation] = [
    list(.images, "/images", "Lists the approved executables."),
    show(.images, "/images/{id}", "Shows an approved executable."),
    AdministrationOperation(
      "approveImage", .post, "/images", .admin, "Approves an executable as a build of a release.",
      body: [
        Schema.Property("digest", .hexadecimal(digitCount: 64), required: true, "SHA-256 of the executable."),
        Schema.Property(
          "tree_digest", .hexadecimal(digitCount: 64),
          "The tree digest of the executable. Without it, evidence with tree digests does not count."),
        Schema.Property("subject", .text(1...64), required: true, "The name of the app."),
        Schema.Property("version", .version, required: true, "The version of the app, three numbers."),
        Schema.Property(
          "root", .hexadecimal(digitCount: 32), required: true, "The release's root, a line of mpk.key. It is a secret."
        ),
        Schema.Property("manifest", .anyText(1...65_536), "The maker's manifest, exactly as it was signed."),
        Schema.Property("signature", .base64(byteCounts: 7...72), "The maker's signature of the manifest, in DER."),
        Schema.Property("maker_key", .anyText(1...4096), "The maker's public key, in PEM."),
      ], answer: Listing.images.schema
    ) { (fleet, request) throws(AdministrationFault) in
      let digest: Digest = try request.fixedBytes("digest")
      try fleet.approve(
        digest, tree: try request.bytesIfPresent("tree_digest"), subject: try request.required("subject"),
        version: try request.version("version"), keys: try request.releaseKeys("root"),
        manifest: try request.manifest(), by: request.caller.actor)
      return try fleet.record(.images, hexadecimal(digest))
    },
    action("withdrawImage", on: .images, "/images/{id}/withdraw", .revoke, "Withdraws the approval of an executable.") {
      (fleet, request) throws(AdministrationFault) in
      try fleet.withdraw(try request.id(), by: request.actor())
      return try fleet.record(.images, request.key)
    },
  ]

  private static let provers: [AdministrationOperation] = [
    list(.provers, "/provers", "Lists the provers' hosts."),
    show(.provers, "/provers/{id}", "Shows a prover's host."),
    revocation("revokeProver", on: .provers, "/provers/{id}/revoke", "Revokes a prover with all its tokens.") {
      (fleet, request, reason) throws(AdministrationFault) in
      try fleet.revoke(prover: try request.id(), reason: reason, by: request.caller.actor)
      return try fleet.record(.provers, request.key)
    },
    action("reinstateProver", on: .provers, "/provers/{id}/reinstate", .admin, "Lets a revoked prover enrol again.") {
      (fleet, request) throws(AdministrationFault) in
      let prover: HostID = try request.id()
      try fleet.reinstate(prover: prover, by: request.actor())
      return try fleet.record(.provers, request.key)
    },
  ]

  private static let users: [AdministrationOperation] = [
    list(.users, "/users", "Lists the users."),
    show(.users, "/users/{id}", "Shows a user."),
    revocation("revokeUser", on: .users, "/users/{id}/revoke", "Revokes a user with all tokens.") {
      (fleet, request, reason) throws(AdministrationFault) in
      try fleet.revoke(user: try request.userName(), reason: reason, by: request.caller.actor)
      return try fleet.record(.users, request.key)
    },
    action("reinstateUser", on: .users, "/users/{id}/reinstate", .admin, "Lets a revoked user enrol again.") {
      (fleet, request) throws(AdministrationFault) in
      try fleet.reinstate(user: try request.userName(), by: request.actor())
      return try fleet.record(.users, request.key)
    },
  ]

  private static let tokens: [AdministrationOperation] = [
    AdministrationOperation(
      "listTokens", .get, "/tokens", .read, "Lists the tokens, of all or of one device, prover or user.",
      query: paging + [
        Schema.Property("device", .hexadecimal(digitCount: 32), "Only tokens for this device."),
        Schema.Property("prover", .hexadecimal(digitCount: 32), "Only tokens of this prover."),
        Schema.Property("user", .text(1...32), "Only tokens of this user."),
      ], answer: Listing.tokens.pageSchema
    ) { (fleet, request) throws(AdministrationFault) in
      let filters: [(String, Listing)] = [
        ("device", .tokensOfDevice), ("prover", .tokensOfProver), ("user", .tokensOfUser),
      ]
      let used = filters.filter { request.query.member($0.0) != nil }
      guard used.count < 2 else {
        throw .conflict(.severalFilters)
      }
      guard let (name, listing) = used.first, let text = request.query.member(name)?.value.text else {
        return try request.page(of: .tokens, in: fleet)
      }
      let filter: Value = name == "user" ? .text(text) : .bytes(bytes(hexadecimal: text) ?? [])
      return try request.page(of: listing, in: fleet, filters: [filter])
    },
    show(.tokens, "/tokens/{id}", "Shows a token."),
    revocation("revokeToken", on: .tokens, "/tokens/{id}/revoke", "Revokes a token.") {
      (fleet, request, reason) throws(AdministrationFault) in
      try fleet.revoke(token: try request.id(), reason: reason, by: request.caller.actor)
      return try fleet.record(.tokens, request.key)
    },
  ]

  private static let permission = [
    Schema.Property("user", .text(1...32), "The only user whose codes go with the token."),
    Schema.Property("commands", .commands, "The commands that the token allows."),
    Schema.Property("maximum_uses", .integer(1...maximumInteger), "The number of rounds that the device accepts."),
  ]

  private static let invitations: [AdministrationOperation] = [
    list(.invitations, "/invitations", "Lists the invitations."),
    show(.invitations, "/invitations/{id}", "Shows an invitation, without its code."),
    AdministrationOperation(
      "invite", .post, "/invitations", .approve, "Makes an invitation: a one-use code for one token for one device.",
      body: [
        Schema.Property("device", .hexadecimal(digitCount: 32), required: true, "The device."),
        Schema.Property("valid_seconds", .integer(60...(366 * 86_400)), required: true, "The lifetime of the code."),
      ] + permission,
      answer: Listing.invitations.schema(with: [
        Schema.Property("code", .invitationCode, required: true, "The code, which is not stored.")
      ])
    ) { (fleet, request) throws(AdministrationFault) in
      let (id, code) = try fleet.invite(
        to: try request.fixedBytes("device"), try request.permission(),
        for: request.body.member("valid_seconds")?.value.number ?? 0, by: request.caller.actor)
      let record = try fleet.record(.invitations, hexadecimal(id))
      return .object((record.members ?? []) + [("code", .string(code.text))])
    },
    action(
      "revokeInvitation", on: .invitations, "/invitations/{id}/revoke", .approve,
      "Revokes an invitation that was not used."
    ) {
      (fleet, request) throws(AdministrationFault) in
      try fleet.revoke(invitation: try request.id(), by: request.actor())
      return try fleet.record(.invitations, request.key)
    },
  ]

  private static let requests: [AdministrationOperation] = [
    AdministrationOperation(
      "listRequests", .get, "/requests", .read, "Lists the requests for tokens without an invitation.",
      query: paging + [
        Schema.Property(
          "status", .choice(["waiting", "approved", "refused", "collected"]), "Only requests in this state.")
      ], answer: Listing.requests.pageSchema
    ) { (fleet, request) throws(AdministrationFault) in
      guard let status = request.query.member("status")?.value.text else {
        return try request.page(of: .requests, in: fleet)
      }
      return try request.page(of: .requestsByStatus, in: fleet, filters: [.text(status)])
    },
    show(.requests, "/requests/{id}", "Shows a request."),
    action("approveRequest", on: .requests, "/requests/{id}/approve", .approve, "Approves a request.", body: permission)
    {
      (fleet, request) throws(AdministrationFault) in
      try fleet.approve(request: try request.id(), try request.permission(), by: request.actor())
      return try fleet.record(.requests, request.key)
    },
    revocation("refuseRequest", on: .requests, "/requests/{id}/refuse", "Refuses a request.", scope: .approve) {
      (fleet, request, reason) throws(AdministrationFault) in
      try fleet.refuse(request: try request.id(), reason: reason, by: request.actor())
      return try fleet.record(.requests, request.key)
    },
  ]

  private static let refusals: [AdministrationOperation] = [
    AdministrationOperation(
      "listRefusals", .get, "/refusals", .read, "Lists the refusals, the newest first.",
      query: paging + [Schema.Property("code", .text(10...10), "Only refusals with this response code.")],
      answer: Listing.refusals.pageSchema
    ) { (fleet, request) throws(AdministrationFault) in
      guard let code = request.query.member("code")?.value.text else {
        return try request.page(of: .refusals, in: fleet)
      }
      return try request.page(of: .refusalsOfCode, in: fleet, filters: [.text(code)])
    },
    list(.responseCodes, "/codes", "Lists the attestation response codes, with what apps stated last."),
    show(.responseCodes, "/codes/{id}", "Shows what an attestation response code stands for."),
  ]

  private static let keys: [AdministrationOperation] = [
    list(.keys, "/keys", "Lists the issuer's keys."),
    show(.keys, "/keys/{id}", "Shows a key of the issuer."),
    AdministrationOperation(
      "rotateKey", .post, "/keys", .admin, "Makes a new key of the issuer, which signs from a time on.",
      body: [Schema.Property("active", .time, required: true, "The time from which the key signs.")],
      answer: Listing.keys.schema
    ) { (fleet, request) throws(AdministrationFault) in
      let id = try fleet.rotateIssuerKey(
        active: request.body.member("active")?.value.number ?? 0, by: request.caller.actor)
      return try fleet.record(.keys, hexadecimal(id))
    },
  ]

  private static let operators: [AdministrationOperation] = [
    list(.operators, "/operators", "Lists the operators.", scope: .admin),
    show(.operators, "/operators/{id}", "Shows an operator, without the token.", scope: .admin),
    AdministrationOperation(
      "addOperator", .post, "/operators", .admin, "Makes an operator's token, which is shown only once.",
      body: [
        Schema.Property("name", .text(1...32), required: true, "The name, which no operator had before."),
        Schema.Property("scopes", .scopes, required: true, "The permissions."),
        Schema.Property(
          "valid_seconds", .integer(60...(100 * 366 * 86_400)), "The lifetime of the token; no end if missing."),
      ],
      answer: Listing.operators.schema(with: [
        Schema.Property("token", .text(1...128), required: true, "The token, of which only a digest is stored.")
      ])
    ) { (fleet, request) throws(AdministrationFault) in
      let scopes = request.body.member("scopes")?.value.elements?.compactMap(\.text) ?? []
      let name: BoundedText<32> = try request.required("name")
      let token = try fleet.addOperator(
        name, scopes: Set(scopes.compactMap(OperatorScope.init)),
        for: request.body.member("valid_seconds")?.value.number, by: request.caller.actor)
      return .object((try fleet.record(.operators, name.description).members ?? []) + [("token", .string(token))])
    },
    action("removeOperator", on: .operators, "/operators/{id}/remove", .admin, "Revokes an operator's token.") {
      (fleet, request) throws(AdministrationFault) in
      try fleet.removeOperator(try request.userName(), by: request.actor())
      return try fleet.record(.operators, request.key)
    },
  ]

  private static let others: [AdministrationOperation] = [
    list(.changes, "/changes", "Lists the changes, the newest first, and who made them."),
    AdministrationOperation(
      "showPolicy", .get, "/policy", .read, "Shows the policy.", answer: .policy
    ) {
      (fleet, _) throws(AdministrationFault) in
      try fleet.policyRecord()
    },
    AdministrationOperation(
      "setPolicy", .put, "/policy", .admin, "Replaces the policy.",
      body: [Schema.Property("policy", .policy, required: true, "The policy, as it is shown.")], answer: .policy
    ) { (fleet, request) throws(AdministrationFault) in
      try fleet.setPolicy(try request.policy(), by: request.caller.actor)
      return try fleet.policyRecord()
    },
    AdministrationOperation(
      "statistics", .get, "/statistics", .read, "Counts issued tokens and refusals by day.",
      query: [Schema.Property("days", .integer(1...366), "The number of days until now; 30 if missing.")],
      answer: .statistics
    ) { (fleet, request) throws(AdministrationFault) in
      try fleet.statistics(days: request.query.member("days")?.value.number ?? 30)
    },
  ]
}

extension AdministrationOperation {
  /// The parameters of every listing.
  static var paging: [Schema.Property] {
    [
      Schema.Property("after", .text(1...128), "The member next of the page before."),
      Schema.Property("limit", .integer(1...1000), "The number of records, 100 if missing."),
    ]
  }

  static func list(
    _ listing: Listing, _ path: String, _ summary: String, scope: OperatorScope = .read
  ) -> AdministrationOperation {
    AdministrationOperation(
      "list" + capitalised(listing.name), .get, path, scope, summary, query: paging, answer: listing.pageSchema
    ) {
      (fleet, request) throws(AdministrationFault) in try request.page(of: listing, in: fleet)
    }
  }

  static func show(
    _ listing: Listing, _ path: String, _ summary: String, scope: OperatorScope = .read
  ) -> AdministrationOperation {
    AdministrationOperation(
      "show" + capitalised(listing.name).dropLast(), .get, path, scope, summary, answer: listing.schema
    ) {
      (fleet, request) throws(AdministrationFault) in try fleet.record(listing, request.key)
    }
  }

  private static func capitalised(_ name: String) -> String { name.prefix(1).uppercased() + name.dropFirst() }

  private static func action(
    _ name: String, on listing: Listing, _ path: String, _ scope: OperatorScope, _ summary: String,
    body: [Schema.Property] = [],
    perform: @escaping @Sendable (Fleet, AdministrationRequest) throws(AdministrationFault) -> JSONValue
  ) -> AdministrationOperation {
    AdministrationOperation(
      name, .post, path, scope, summary,
      body: body + [Schema.Property("reason", .text(1...255), "The reason, which the log of changes keeps.")],
      answer: listing.schema, perform: perform)
  }

  private static func revocation(
    _ name: String, on listing: Listing, _ path: String, _ summary: String, scope: OperatorScope = .revoke,
    perform:
      @escaping @Sendable (
        Fleet, AdministrationRequest, RevocationReason
      ) throws(AdministrationFault) -> JSONValue
  ) -> AdministrationOperation {
    let reason = Schema.Property("reason", .text(1...255), required: true, "The reason, which operators see.")
    return AdministrationOperation(name, .post, path, scope, summary, body: [reason], answer: listing.schema) {
      (fleet, request) throws(AdministrationFault) in
      try perform(fleet, request, try request.required("reason"))
    }
  }
}

extension Fleet {
  /// The policy as operators see it, without images.
  func policyRecord() throws(AdministrationFault) -> JSONValue {
    do throws(FleetFault) { return .object((try policy().json.members ?? []).filter { $0.0 != "images" }) } catch {
      throw .fleet(error)
    }
  }
}
