import HoldfastCore
import HoldfastFormats
import HoldfastIssuer

extension AdministrationOperation {
  /// The operations for what attested apps get: domains, pins, secure strings, and keys.
  static let apps: [AdministrationOperation] = domains + pins + strings + appKeys

  private static let reason = Schema.Property(
    "reason", .text(1...255), "The reason, which the log of changes keeps.")

  private static let domains: [AdministrationOperation] = [
    list(.domains, "/domains", "Lists the API domains."),
    show(.domains, "/domains/{id}", "Shows an API domain."),
    AdministrationOperation(
      "addDomain", .post, "/domains", .admin, "Adds an API domain for which apps get tokens, or changes it.",
      body: [
        Schema.Property("name", .domainName, required: true, "The DNS name, in lower case."),
        Schema.Property("audience", .text(1...255), "The claim aud of its tokens; the name if missing."),
        Schema.Property(
          "algorithm", .choice(APIDomain.Algorithm.allCases.map(\.rawValue)), "The signature; ES256 if missing."),
        Schema.Property(
          "lifetime_seconds", .integer(APIDomain.lifetimes), "The lifetime of its tokens; 300 if missing."),
        Schema.Property("unprotected", .flag, "Whether the domain is only pinned, and needs no token."),
        Schema.Property("measurement", .flag, "Whether attestation tokens for measurement tokens may name it."),
      ], answer: Listing.domains.schema
    ) { (fleet, request) throws(AdministrationFault) in
      let name = request.body.member("name")?.value.text ?? ""
      guard let audience: BoundedText<255> = try request.text("audience") ?? BoundedText(name) else {
        throw .conflict(.invalidDomain)
      }
      let algorithm = request.body.member("algorithm")?.value.text.flatMap(APIDomain.Algorithm.init)
      try fleet.add(
        APIDomain(
          name: name, audience: audience, algorithm: algorithm ?? .es256,
          lifetime: request.body.member("lifetime_seconds")?.value.number ?? 300,
          isProtected: !request.flag("unprotected"), hasMeasurement: request.flag("measurement")),
        by: request.caller.actor)
      return try fleet.record(.domains, name)
    },
    AdministrationOperation(
      "removeDomain", .post, "/domains/{id}/remove", .admin, "Removes an API domain with its pins.", body: [reason],
      answer: removed
    ) { (fleet, request) throws(AdministrationFault) in
      try fleet.remove(domain: request.key, by: request.actor())
      return .object([("removed", .string(request.key))])
    },
    AdministrationOperation(
      "showDomainSecret", .post, "/domains/{id}/secret", .admin,
      "Returns the key with which a domain's HS256 tokens are signed, for its backend.",
      body: [Schema.Property("next", .flag, "Whether to return the key that the next rotation brings."), reason],
      answer: .object([
        Schema.Property("name", .text(1...253), required: true, "The domain."), epoch,
        Schema.Property("secret", .digest, required: true, "The key, 32 bytes. It is a secret."),
      ])
    ) { (fleet, request) throws(AdministrationFault) in
      let (epoch, secret) = try fleet.secret(
        ofDomain: request.key, next: request.flag("next"), by: request.actor())
      return .object([
        ("name", .string(request.key)), ("epoch", .integer(epoch)), ("secret", .string(secret)),
      ])
    },
    AdministrationOperation(
      "rotateDomain", .post, "/domains/{id}/rotate", .admin,
      "Replaces the key with which a domain's HS256 tokens are signed, at once.", body: [reason],
      answer: .object([Schema.Property("name", .text(1...253), required: true, "The domain."), epoch])
    ) { (fleet, request) throws(AdministrationFault) in
      let epoch = try fleet.rotate(domain: request.key, by: request.actor())
      return .object([("name", .string(request.key)), ("epoch", .integer(epoch))])
    },
  ]

  private static let pin = [
    Schema.Property("domain", .domainName, required: true, "The domain, or * for every domain."),
    Schema.Property("pin", .pin, required: true, "The pin, sha256// and 44 characters of base64."),
  ]

  private static let pins: [AdministrationOperation] = [
    list(.pins, "/pins", "Lists the pins of the domains' public keys."),
    show(.pins, "/pins/{id}", "Shows a pin."),
    AdministrationOperation(
      "addPin", .post, "/pins", .admin, "Adds a pin to a domain, or to every domain.", body: pin + [reason],
      answer: Listing.pins.schema
    ) { (fleet, request) throws(AdministrationFault) in
      let pin = try request.pin()
      try fleet.add(pin, by: request.actor())
      return try fleet.record(.pins, pin.key)
    },
    AdministrationOperation(
      "removePin", .post, "/pins/remove", .admin, "Removes a pin.", body: pin + [reason], answer: removed
    ) { (fleet, request) throws(AdministrationFault) in
      let pin = try request.pin()
      try fleet.remove(pin, by: request.actor())
      return .object([("removed", .string(pin.key))])
    },
    AdministrationOperation(
      "forcePins", .post, "/pins/force", .admin,
      "Forces the present pins: apps connect to no domain before they have them.", body: [reason],
      answer: .object([
        Schema.Property(
          "force_pins", .anyInteger, required: true, "The revision of the configuration from which pins are forced.")
      ])
    ) { (fleet, request) throws(AdministrationFault) in
      .object([("force_pins", .integer(try fleet.forcePins(by: request.actor())))])
    },
  ]

  private static let strings: [AdministrationOperation] = [
    list(.strings, "/strings", "Lists the names of the secure strings."),
    show(.strings, "/strings/{id}", "Shows when a secure string was set, without its value."),
    AdministrationOperation(
      "setString", .post, "/strings", .admin, "Sets a secure string, which attested apps get.",
      body: [
        Schema.Property("name", .text(1...64), required: true, "The name."),
        Schema.Property("value", .anyText(1...4096), required: true, "The value, at most 4096 bytes. It is a secret."),
        reason,
      ], answer: Listing.strings.schema
    ) { (fleet, request) throws(AdministrationFault) in
      let name: BoundedText<64> = try request.required("name")
      let value = Array((request.body.member("value")?.value.text ?? "").utf8)
      guard value.count <= 4096 else { throw .conflict(.tooLong) }
      try fleet.setString(name, to: value, by: request.actor())
      return try fleet.record(.strings, name.description)
    },
    AdministrationOperation(
      "removeString", .post, "/strings/{id}/remove", .admin, "Removes a secure string.", body: [reason], answer: removed
    ) { (fleet, request) throws(AdministrationFault) in
      guard let name = BoundedText<64>(request.key) else { throw .notFound }
      try fleet.removeString(name, by: request.actor())
      return .object([("removed", .string(request.key))])
    },
  ]

  private static let epoch = Schema.Property(
    "epoch", .anyInteger, required: true, "The number in the key, which rises when it is replaced.")

  private static let appKey: [Schema.Property] = [
    Schema.Property("id", .hexadecimal(digitCount: 16), required: true, "The id of the key."),
    Schema.Property("active", .time, required: true, "The time from which it signs tokens."),
    Schema.Property("configuration", .flag, required: true, "Whether it signs the configuration for apps."),
  ]

  private static func record(_ key: AppKey) -> JSONValue {
    .object([
      ("id", .string(hexadecimal(key.id))), ("active", .integer(key.active)),
      ("configuration", .bool(key.isForConfiguration)),
    ])
  }

  private static let appKeys: [AdministrationOperation] = [
    AdministrationOperation(
      "listAppKeys", .get, "/app-keys", .read, "Lists the keys of tokens for apps that backends need.",
      answer: .object([Schema.Property("items", .array(.object(appKey), count: 1...1000), required: true, "The keys.")])
    ) { (fleet, _) throws(AdministrationFault) in
      do throws(FleetFault) { return .object([("items", .array(try fleet.appTokenKeys().map(record)))]) } catch {
        throw .fleet(error)
      }
    },
    AdministrationOperation(
      "rotateAppKey", .post, "/app-keys", .admin, "Makes a new key of tokens for apps, which signs from a time on.",
      body: [Schema.Property("active", .time, required: true, "The time from which the key signs."), reason],
      answer: .object(appKey)
    ) { (fleet, request) throws(AdministrationFault) in
      let id = try fleet.rotateAppKey(
        active: request.body.member("active")?.value.number ?? 0, by: request.actor())
      do throws(FleetFault) {
        guard let key = try fleet.appTokenKeys().first(where: { $0.id == id }) else { throw .corrupt }
        return record(key)
      } catch { throw .fleet(error) }
    },
    AdministrationOperation(
      "showMessageKey", .get, "/message-key", .read, "Shows the number in the key for messages, without the key.",
      answer: .object([epoch])
    ) { (fleet, _) throws(AdministrationFault) in
      do throws(FleetFault) { return .object([("epoch", .integer(try fleet.messageEpoch()))]) } catch {
        throw .fleet(error)
      }
    },
    AdministrationOperation(
      "rotateMessageKey", .post, "/message-key/rotate", .admin, "Replaces the key with which apps sign messages.",
      body: [reason], answer: .object([epoch])
    ) { (fleet, request) throws(AdministrationFault) in
      .object([("epoch", .integer(try fleet.rotateMessageKey(by: request.actor())))])
    },
    AdministrationOperation(
      "showMessageSecret", .post, "/message-key/secret", .admin,
      "Returns the key with which apps sign messages, for backends that check them.", body: [reason],
      answer: .object([
        epoch, Schema.Property("secret", .digest, required: true, "The key, 32 bytes. It is a secret."),
      ])
    ) { (fleet, request) throws(AdministrationFault) in
      let (epoch, secret) = try fleet.messageKey(by: request.actor())
      return .object([("epoch", .integer(epoch)), ("secret", .string(secret))])
    },
    AdministrationOperation(
      "showDevelopmentKey", .get, "/development-key", .read,
      "Shows when the development key was made, without the key; null if there is none.",
      answer: .object([developmentKeyTime])
    ) { (fleet, _) throws(AdministrationFault) in
      .object([("added", try fleet.developmentKeyTime().map { .integer($0) } ?? .null)])
    },
    AdministrationOperation(
      "newDevelopmentKey", .post, "/development-key", .admin,
      "Makes the development key, which replaces the one before and is shown only once.", body: [reason],
      answer: .object([
        Schema.Property("development_key", .text(26...26), required: true, "The key. It is a secret.")
      ])
    ) { (fleet, request) throws(AdministrationFault) in
      .object([("development_key", .string(try fleet.makeDevelopmentKey(by: request.actor())))])
    },
    AdministrationOperation(
      "removeDevelopmentKey", .post, "/development-key/remove", .admin, "Removes the development key.", body: [reason],
      answer: .object([developmentKeyTime])
    ) { (fleet, request) throws(AdministrationFault) in
      try fleet.removeDevelopmentKey(by: request.actor())
      return .object([("added", .null)])
    },
  ]

  private static let developmentKeyTime = Schema.Property(
    "added", .nullable(.time), required: true, "The time at which the key was made; null if there is none.")

  private static let removed = Schema.object([
    Schema.Property("removed", .text(1...512), required: true, "The key of the record that was removed.")
  ])
}

extension AdministrationRequest {
  fileprivate func flag(_ name: String) -> Bool { body.member(name)?.value.flag ?? false }

  fileprivate func pin() throws(AdministrationFault) -> DomainPin {
    let domain = body.member("domain")?.value.text ?? ""
    guard APIDomain.isName(domain) || domain == DomainPin.everyDomain else { throw .conflict(.invalidDomain) }
    guard let pin = DomainPin(domain: domain, pin: body.member("pin")?.value.text ?? "") else {
      throw .conflict(.invalidPin)
    }
    return pin
  }
}
