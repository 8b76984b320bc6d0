import HoldfastCore
import HoldfastFormats
import HoldfastStorage

extension AdministrationOperation {
  /// The operations for devices' audit logs, which cannot be altered or deleted.
  static let audits: [AdministrationOperation] = [
    AdministrationOperation(
      "listAudits", .get, "/audits", .read, "Lists the entries of received audit logs, the last received first.",
      query: paging + [
        Schema.Property("device", .hexadecimal(digitCount: 32), "Only entries of this device."),
        Schema.Property("event", .text(1...64), "Only events of this name."),
        Schema.Property("user", .text(1...32), "Only entries that name this user."),
        Schema.Property("since", .time, "Only entries from this time on, by the device's clock."),
        Schema.Property("until", .time, "Only entries from before this time, by the device's clock."),
      ], answer: Listing.audits.pageSchema
    ) { (fleet, request) throws(AdministrationFault) in
      var filters = ["event", "user"].map { Value.text(request.query.member($0)?.value.text ?? "") }
      filters += [("since", 0), ("until", maximumInteger)].map {
        .unsigned(request.query.member($0)?.value.number ?? $1)
      }
      guard let device = request.query.member("device")?.value.text else {
        return try request.page(of: .audits, in: fleet, filters: filters)
      }
      return try request.page(
        of: .auditsOfDevice, in: fleet, filters: filters + [.bytes(bytes(hexadecimal: device) ?? [])])
    },
    AdministrationOperation(
      "listAuditLogs", .get, "/audit-logs", .read,
      "Lists the state of the audit logs of which provers brought pages: gaps, forks, receipts and numbers of pages.",
      query: paging, answer: Listing.auditLogs.pageSchema
    ) { (fleet, request) throws(AdministrationFault) in try request.page(of: .auditLogs, in: fleet) },
    AdministrationOperation(
      "receiveAudits", .post, "/audits", .report, "Stores a part of a device's audit log, with its hash chain.",
      body: [
        Schema.Property("device", .hexadecimal(digitCount: 32), required: true, "The device."),
        Schema.Property("after", .anyInteger, required: true, "The number of the entry before the first one here."),
        Schema.Property("head", .hexadecimal(digitCount: 64), required: true, "The hash of that entry."),
        Schema.Property(
          "entries", .array(.bytes(1...512), count: 1...1000), required: true, "The entries in their encoding."),
      ],
      answer: .object([Schema.Property("stored", .anyInteger, required: true, "The number of entries that were new.")])
    ) { (fleet, request) throws(AdministrationFault) in
      let texts = request.body.member("entries")?.value.elements ?? []
      let part = ReceivedAudits(
        device: try request.fixedBytes("device"),
        base: AuditChain(
          count: request.body.member("after")?.value.number ?? 0, head: try request.fixedBytes("head")),
        entries: texts.map { $0.text.flatMap { bytes(hexadecimal: $0) } ?? [] })
      return .object([("stored", .integer(try fleet.receive(part, by: request.caller.actor)))])
    },
  ]
}
