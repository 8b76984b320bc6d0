import HoldfastCore
import HoldfastFormats

extension AdministrationOperation {
  /// The operations for orders about keys.
  static let keyOrders: [AdministrationOperation] = [
    AdministrationOperation(
      "listKeyOrders", .get, "/key-orders", .read,
      "Lists the keys that devices are to trust, or to trust no more: all, or those that apply to a device.",
      query: paging + [
        Schema.Property("device", .hexadecimal(digitCount: 32), "Only those for this device and its groups.")
      ], answer: .page(of: record)
    ) { (fleet, request) throws(AdministrationFault) in
      try fleet.keyOrderPage(
        of: request.query.member("device")?.value.text.flatMap { fixedBytes(hexadecimal: $0) },
        after: request.query.member("after")?.value.text, limit: request.query.member("limit")?.value.number ?? 100)
    },
    AdministrationOperation(
      "introduceKey", .post, "/keys/{id}/introduce", .admin,
      """
      Introduces a key to a device or a group with the next bulletin of another key, whose policies must name that one among their \
      introducers. Microcontrollers, and devices with another policy, take neither this bulletin nor later ones of that key for the same \
      device or group.
      """,
      body: Schema.Property.bulletinTarget + [
        Schema.Property(
          "introducer", .hexadecimal(digitCount: 16),
          "The key that introduces it; if missing, the one that introduced the key that signs now, or else that one."),
        Schema.Property("from", .time, "The time from which devices trust the key; the present time if missing."),
        Schema.Property("until", .time, required: true, "The time from which devices no longer trust the key."),
        reason,
      ], answer: record
    ) { (fleet, request) throws(AdministrationFault) in
      let wish = KeyIntroduction(
        key: try request.id(), introducer: try request.bytesIfPresent("introducer"),
        from: request.body.member("from")?.value.number, until: request.body.member("until")?.value.number ?? 0)
      return try fleet.introduce(wish, to: request.bulletinTarget(), by: request.actor())
    },
    AdministrationOperation(
      "endKey", .post, "/keys/{id}/end", .admin,
      """
      Ends a key at a device or a group, for ever, with the next bulletin: the last one of this key, and one of the key that introduced \
      it. Microcontrollers take neither.
      """,
      body: Schema.Property.bulletinTarget + [
        Schema.Property(
          "without_successor", .flag,
          "Whether it ends although the service has not introduced the key that signs now to these devices."),
        reason,
      ], answer: record
    ) { (fleet, request) throws(AdministrationFault) in
      try fleet.end(
        request.id(), at: request.bulletinTarget(),
        withoutSuccessor: request.body.member("without_successor")?.value == .bool(true), by: request.actor())
    },
  ]

  private static let reason = Schema.Property(
    "reason", .text(1...255), "The reason, which the log of changes keeps.")

  private static let record = Schema.named(
    "KeyOrder",
    .object([
      Schema.Property("audience", .hexadecimal(digitCount: 32), required: true, "The id of the device or the group."),
      Schema.Property("for", .text(0...64), required: true, "The label of the device, or the name of the group."),
      Schema.Property("key", .hexadecimal(digitCount: 16), required: true, "The key."),
      Schema.Property(
        "introducer", .nullable(.hexadecimal(digitCount: 16)), required: true,
        "The key that introduces it; null if the service did not introduce it."),
      Schema.Property(
        "from", .nullable(.time), required: true, "The time from which an introduced key is trusted, or null."),
      Schema.Property(
        "until", .nullable(.time), required: true, "The time from which an introduced key is trusted no more, or null."),
      Schema.Property("introduced", .nullable(.time), required: true, "The time of the introduction, or null."),
      Schema.Property("ended", .nullable(.time), required: true, "The time of the order to end it, or null."),
      Schema.Property(
        "bulletin", .nullable(.anyInteger), required: true,
        "The number of the newest bulletin that says so; null before a courier asked for one."),
    ]))
}
