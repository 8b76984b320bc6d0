import HoldfastCore
import HoldfastFormats
import HoldfastLinux

/// The bulletins and the receipt that a prover carries to one device, and the list that it knows of the device.
///
/// They are in `mail.json` in the folder of the device's enrolment. Nothing in it is secret, and a copy of it is of no use.
package struct Mail: Sendable, Equatable {
  package static let fileName = "mail.json"
  /// The most bulletins, and the most bytes of them all.
  package static let bulletinLimit = 16
  package static let byteLimit = 16_384
  fileprivate static let fileLimit = 65_536

  /// The bulletins, in the order in which they are to be delivered.
  package private(set) var bulletins: [CarriedBulletin] = []
  /// The list of the device, as far as it is known; nil before the device was asked.
  package var list: BulletinList?
  /// The newest receipt of the home of the device's audit log, at most 256 bytes; nil once the device has it.
  package var receipt: [UInt8]?
  /// Whether the receipt comes before the bulletins at the next visit, because one that the device did not take has used up the check of
  /// a signature.
  package var receiptIsFirst = false
  /// The number of the first entry of the audit log that the home misses, as it said last; 0 if it did not.
  package var missingEntry: UInt64 = 0
  /// The numbers of what this prover gave and took since it was enrolled.
  package var counts = MailCounts()

  /// Creates mail of nothing.
  package init() {}

  /// The least number that the device has of any audience, as far as it is known: a service returns what is newer.
  package var have: UInt64 { list?.rows.map(\.number).min() ?? 0 }

  /// Replaces the bulletins by those of a service. What exceeds the limits is left out: first those of which the device says that it has
  /// them or that they are not for it, then the newest. Those that were postponed stay behind the others.
  package mutating func replace(by bulletins: [CarriedBulletin]) {
    let sorted = bulletins.sorted { $0.number < $1.number }
    var byteCount = 0
    let kept = (sorted.filter { $0.isMissing(in: list) } + sorted.filter { !$0.isMissing(in: list) })
      .prefix(Self.bulletinLimit)
    let postponed = postponed
    let ordered = kept.prefix { bulletin in
      byteCount += bulletin.bytes.count
      return byteCount <= Self.byteLimit
    }.sorted { $0.number < $1.number }
    self.bulletins = ordered.filter { !postponed.contains($0) } + ordered.filter { postponed.contains($0) }
  }

  /// Puts a bulletin behind the others, because the device did not take it.
  package mutating func postpone(_ bulletin: CarriedBulletin) {
    guard let index = bulletins.firstIndex(of: bulletin) else { return }
    bulletins.append(bulletins.remove(at: index))
  }

  /// The bulletins behind newer ones.
  private var postponed: [CarriedBulletin] {
    var newest: UInt64 = 0
    return bulletins.filter { bulletin in
      newest = max(newest, bulletin.number)
      return bulletin.number < newest
    }
  }

  /// The most answers that are read to find bulletins that a device does not have.
  private static let answerLimit = 64

  /// Reads answers of a service until one has a bulletin that the device does not have: an answer has what is above one number, but the
  /// device has a number for each of its audiences.
  ///
  /// - Parameters:
  ///   - list: the list of the device; nil if it is not known.
  ///   - ask: asks the service for bulletins with numbers above the given one.
  /// - Returns: the bulletins that the device may need; none if it has all.
  /// - Throws: the errors of `ask`.
  package static func fetch<Fault: Error>(
    for list: BulletinList?, asking ask: (_ have: UInt64) throws(Fault) -> [CarriedBulletin]
  ) throws(Fault) -> [CarriedBulletin] {
    var have = list?.rows.map(\.number).min() ?? 0
    for _ in 0..<answerLimit {
      let bulletins = try ask(have)
      let missing = bulletins.filter { $0.isMissing(in: list) }
      guard missing.isEmpty, let last = bulletins.map(\.number).max(), last > have else { return missing }
      have = last
    }
    return []
  }

  /// Returns the first bulletin that the device does not have and can take, of at most `byteLimit` bytes, without those that it
  /// refused; nil if there is none, or if the device's list is not known.
  package func next(byteLimit: Int, without refused: [CarriedBulletin] = []) -> CarriedBulletin? {
    guard let list else { return nil }
    return bulletins.first { bulletin in
      guard !refused.contains(bulletin), let number = list.number(for: bulletin.audience) else { return false }
      return bulletin.number > number && bulletin.predecessor <= number && bulletin.bytes.count <= byteLimit
    }
  }

  /// Takes note that the device says it has the bulletin. Nothing authenticates that, so that the bulletin is kept.
  package mutating func note(_ bulletin: CarriedBulletin) {
    list = list.map { list in
      BulletinList(
        list.rows.map { row in
          row.audience == bulletin.audience
            ? BulletinList.Row(audience: row.audience, number: max(row.number, bulletin.number)) : row
        })
    }
  }

  /// The list that the device has once it has taken the bulletins here, nil before it was asked.
  package var listWithBulletins: BulletinList? {
    var mail = self
    for bulletin in bulletins { mail.note(bulletin) }
    return mail.list
  }

  /// Takes note that the device has another list than expected: others brought news, or it has lost bulletins. From now on, a service is
  /// asked for all bulletins, and the next visit shows which of both it is.
  package mutating func doubtList() {
    list = list.map { list in BulletinList(list.rows.map { BulletinList.Row(audience: $0.audience, number: 0) }) }
  }

  /// Drops the bulletins that the device has, and those for audiences that it does not belong to, once it has authenticated the list.
  package mutating func dropDelivered() {
    bulletins = bulletins.filter { $0.isMissing(in: list) }
  }
}

/// A bulletin with what a courier must know, because a sealed one hides it.
package struct CarriedBulletin: Sendable, Equatable {
  package let audience: AudienceID
  package let number: UInt64
  package let predecessor: UInt64
  /// The bulletin, at most 3072 bytes.
  package let bytes: [UInt8]

  package init(audience: AudienceID, number: UInt64, predecessor: UInt64, bytes: [UInt8]) {
    (self.audience, self.number) = (audience, number)
    (self.predecessor, self.bytes) = (predecessor, bytes)
  }

  /// Whether a device may need the bulletin: it belongs to the audience and has a lower number, or its list is not known.
  package func isMissing(in list: BulletinList?) -> Bool {
    guard let list else { return true }
    return list.number(for: audience).map { number > $0 } ?? false
  }

  /// Reads the bulletins in an answer of a service, `{"bulletins": […]}`; nil if the value is no such answer.
  package static func all(in answer: JSONValue) -> [CarriedBulletin]? {
    guard let elements = answer["bulletins"]?.elements else { return nil }
    let bulletins = elements.compactMap(CarriedBulletin.init)
    return bulletins.count == elements.count ? bulletins : nil
  }

  /// Reads a bulletin; nil if the value is none.
  package init?(_ value: JSONValue) {
    guard let audience: AudienceID = value["audience"]?.text.flatMap({ fixedBytes(hexadecimal: $0) }),
      let number = value["number"]?.number, let predecessor = value["predecessor"]?.number, predecessor < number,
      let text = value["bulletin"]?.text, let bytes = try? decodePublicPaddedBase64(text),
      bytes.count <= Bulletin.maximumByteCount
    else { return nil }
    self.init(audience: audience, number: number, predecessor: predecessor, bytes: bytes)
  }

  /// The bulletin as JSON.
  package var json: JSONValue {
    .object([
      ("audience", .string(hexadecimal(audience))), ("number", .integer(number)),
      ("predecessor", .integer(predecessor)), ("bulletin", .string(paddedBase64(bytes))),
    ])
  }
}

/// The numbers of what a prover gave to a device and its service, and took from them.
package struct MailCounts: Sendable, Equatable {
  /// The bulletins that the device said it has taken.
  package var bulletins: UInt64 = 0
  /// The receipts that the device said it has taken.
  package var receipts: UInt64 = 0
  /// The pages that the device gave.
  package var pages: UInt64 = 0
  /// The pages that were handed in at the service.
  package var handedIn: UInt64 = 0

  package init() {}

  fileprivate init(_ value: JSONValue) {
    bulletins = value["bulletins"]?.number ?? 0
    receipts = value["receipts"]?.number ?? 0
    pages = value["pages"]?.number ?? 0
    handedIn = value["handed_in"]?.number ?? 0
  }

  /// The numbers as JSON.
  package var json: JSONValue {
    .object([
      ("bulletins", .integer(bulletins)), ("receipts", .integer(receipts)), ("pages", .integer(pages)),
      ("handed_in", .integer(handedIn)),
    ])
  }
}

extension Mail {
  fileprivate init?(_ bytes: [UInt8]) {
    guard let value = try? JSONValue(parsing: bytes, byteLimit: Self.fileLimit), value["version"]?.number == 1,
      let elements = value["bulletins"]?.elements
    else { return nil }
    let bulletins = elements.compactMap(CarriedBulletin.init)
    guard bulletins.count == elements.count, bulletins.count <= Self.bulletinLimit else { return nil }
    self.bulletins = bulletins
    if let receipt = value["receipt"] {
      guard let text = receipt.text, let bytes = try? decodePublicPaddedBase64(text),
        bytes.count <= AuditReceipt.maximumByteCount
      else { return nil }
      self.receipt = bytes
    }
    receiptIsFirst = value["receipt_is_first"]?.flag ?? false
    missingEntry = value["missing_entry"]?.number ?? 0
    counts = MailCounts(value["counts"] ?? .null)
    guard let rows = value["list"]?.elements else { return }
    let list = rows.compactMap { row -> BulletinList.Row? in
      guard let text = row["audience"]?.text, let audience: AudienceID = fixedBytes(hexadecimal: text),
        let number = row["number"]?.number
      else { return nil }
      return BulletinList.Row(audience: audience, number: number)
    }
    guard list.count == rows.count, (1...1 + BulletinList.groupLimit).contains(list.count) else { return nil }
    self.list = BulletinList(list)
  }

  fileprivate func encoded() -> [UInt8] {
    let rows = list?.rows.map { row in
      JSONValue.object([("audience", .string(hexadecimal(row.audience))), ("number", .integer(row.number))])
    }
    var members: [(String, JSONValue)] = [("version", .integer(1)), ("bulletins", .array(bulletins.map(\.json)))]
    if let rows { members.append(("list", .array(rows))) }
    if let receipt { members.append(("receipt", .string(paddedBase64(receipt)))) }
    if receiptIsFirst { members.append(("receipt_is_first", .bool(true))) }
    if missingEntry > 0 { members.append(("missing_entry", .integer(missingEntry))) }
    if counts != MailCounts() { members.append(("counts", counts.json)) }
    return JSONValue.object(members).pretty()
  }
}

extension EnrolmentFolder {
  /// Reads the mail for the device. A file that is missing or damaged is no mail: a service gives it again.
  package func mail() -> Mail {
    guard let bytes = try? read(Mail.fileName, limit: Mail.fileLimit) else { return Mail() }
    return Mail(bytes) ?? Mail()
  }

  /// Replaces the mail for the device.
  package func write(_ mail: Mail) throws(StateFolderFault) { try write(mail.encoded(), as: Mail.fileName) }
}
