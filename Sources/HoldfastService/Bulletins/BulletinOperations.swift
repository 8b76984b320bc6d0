import HoldfastCore
import HoldfastFormats
import HoldfastStorage

extension AdministrationOperation {
  /// The operations that show bulletins, and who knows what.
  static let bulletins: [AdministrationOperation] = [
    AdministrationOperation(
      "listBulletins", .get, "/bulletins", .read,
      "Lists the bulletins, the newest first: all, those for a device, or those that revoke a prover or a token.",
      query: paging + [
        Schema.Property("device", .hexadecimal(digitCount: 32), "Only bulletins for this device and its groups."),
        Schema.Property("prover", .hexadecimal(digitCount: 32), "Only bulletins that revoke a token of this prover."),
        Schema.Property("token", .hexadecimal(digitCount: 32), "Only bulletins that revoke this token."),
      ], answer: .page(of: bulletin)
    ) { (fleet, request) throws(AdministrationFault) in
      let filters: [(String, StaticString)] = [
        ("device", BulletinListing.ofDevice), ("prover", BulletinListing.ofProver), ("token", BulletinListing.ofToken),
      ]
      let used = filters.filter { request.query.member($0.0) != nil }
      guard used.count < 2 else { throw .conflict(.severalFilters) }
      let text = used.first.flatMap { request.query.member($0.0)?.value.text }
      return try fleet.bulletinPage(
        used.first?.1 ?? BulletinListing.all, filter: text.map { [.bytes(bytes(hexadecimal: $0) ?? [])] } ?? [],
        after: request.query.member("after")?.value.text, limit: request.query.member("limit")?.value.number ?? 100)
    },
    AdministrationOperation(
      "listDeliveries", .get, "/deliveries", .read,
      "Lists the devices with the newest bulletin for each of their audiences, and what their audit logs say they have taken.",
      query: paging + [silence], answer: .page(of: delivery)
    ) { (fleet, request) throws(AdministrationFault) in
      try fleet.deliveryPage(
        silentDays: request.query.member("silent_days")?.value.number,
        after: request.query.member("after")?.value.text, limit: request.query.member("limit")?.value.number ?? 100)
    },
    AdministrationOperation(
      "listReach", .get, "/reach", .read,
      "Lists revoked tokens with the bulletin that says so, and the time from which the device knows it by its audit log.",
      query: paging + [
        Schema.Property("prover", .hexadecimal(digitCount: 32), "Only tokens of this prover."),
        Schema.Property("token", .hexadecimal(digitCount: 32), "Only this token."),
      ], answer: .page(of: reached)
    ) { (fleet, request) throws(AdministrationFault) in
      let filters: [(String, StaticString)] = [("prover", ReachListing.ofProver), ("token", ReachListing.ofToken)]
      let used = filters.filter { request.query.member($0.0) != nil }
      guard used.count < 2 else { throw .conflict(.severalFilters) }
      let text = used.first.flatMap { request.query.member($0.0)?.value.text }
      return try fleet.reachPage(
        used.first?.1 ?? ReachListing.all, filter: text.map { [.bytes(bytes(hexadecimal: $0) ?? [])] } ?? [],
        after: request.query.member("after")?.value.text, limit: request.query.member("limit")?.value.number ?? 100)
    },
    AdministrationOperation(
      "listTimeline", .get, "/timeline", .read,
      "Lists what happened around a device, the newest first: bulletins, pages of its audit log, receipts, forks and changes.",
      query: paging + [
        Schema.Property("device", .hexadecimal(digitCount: 32), required: true, "The device.")
      ], answer: .page(of: timelineEvent)
    ) { (fleet, request) throws(AdministrationFault) in
      let text = request.query.member("device")?.value.text
      guard let device: DeviceID = text.flatMap({ fixedBytes(hexadecimal: $0) }) else { throw .notFound }
      return try fleet.timelinePage(
        of: device, after: request.query.member("after")?.value.text,
        limit: request.query.member("limit")?.value.number ?? 100)
    },
  ]

  private static let reached = Schema.named(
    "ReachedToken",
    .object([
      Schema.Property("token", .hexadecimal(digitCount: 32), required: true, "The revoked token."),
      Schema.Property("device", .hexadecimal(digitCount: 32), required: true, "The device for which it was."),
      Schema.Property("prover", .hexadecimal(digitCount: 32), required: true, "The prover that has it."),
      Schema.Property("revoked", .time, required: true, "The time at which it was revoked."),
      Schema.Property(
        "bulletin", .nullable(.anyInteger), required: true,
        "The number of the first bulletin that says so; null before a courier asked for one."),
      Schema.Property(
        "known", .nullable(.time), required: true,
        "The time from which the device knows it, by its clock; null while its audit log does not say so."),
    ]))

  private static let bulletin = Schema.named(
    "Bulletin",
    .object([
      Schema.Property("number", .anyInteger, required: true, "Its number."),
      Schema.Property("audience", .hexadecimal(digitCount: 32), required: true, "The id of the device or the group."),
      Schema.Property("for", .text(0...64), required: true, "The label of the device, or the name of the group."),
      Schema.Property("issued", .time, required: true, "Its time."),
      Schema.Property("predecessor", .anyInteger, required: true, "The number of the bulletin before it, or 0."),
      Schema.Property("revocations", .anyInteger, required: true, "The number of tokens that it revokes."),
      Schema.Property("generation", .nullable(.anyInteger), required: true, "The generation to which it raises."),
      Schema.Property("minimum_versions", .anyInteger, required: true, "The number of minimum versions that it names."),
      Schema.Property("introduced_keys", .anyInteger, required: true, "The number of keys that it introduces."),
      Schema.Property("ended_keys", .anyInteger, required: true, "The number of keys that it ends."),
      Schema.Property("users", .anyInteger, required: true, "The number of users whom it locks or removes."),
      Schema.Property("signer", .hexadecimal(digitCount: 16), required: true, "The key that signed it."),
    ]))

  private static let delivery = Schema.named(
    "Delivery",
    .object([
      Schema.Property("device", .hexadecimal(digitCount: 32), required: true, "The device."),
      Schema.Property(
        "newest", .map(.text(0...128)), required: true, "The newest bulletin for the device and for each group."),
      Schema.Property(
        "taken", .map(.text(0...128)), required: true, "What the device has taken, as far as it is known."),
      Schema.Property(
        "heard", .nullable(.time), required: true, "The time at which a new part of the device's audit log came last."),
    ]))
}
