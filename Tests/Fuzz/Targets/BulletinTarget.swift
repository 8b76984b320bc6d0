import HoldfastCore
import TestSupport

/// The readers of bulletins, of pages of the audit log, of receipts and of the messages about them, and a device that takes some, with cryptography that believes everything.
let bulletinTarget = FuzzTarget(
  "bulletin",
  [
    "HoldfastCore/Bulletin/Bulletin.swift", "HoldfastCore/Bulletin/BulletinClaims.swift",
    "HoldfastCore/Bulletin/BulletinDelivery.swift", "HoldfastCore/Bulletin/BulletinList.swift",
    "HoldfastCore/Bulletin/BulletinAnswer.swift", "HoldfastCore/Mail/MailMessage.swift",
    "HoldfastCore/Mail/DeviceSession+Mail.swift", "HoldfastCore/Audit/AuditPage.swift",
    "HoldfastCore/Audit/AuditReceipt.swift", "HoldfastCore/Audit/RoundOrigin.swift",
  ]
) { bytes in
  try readClaims(bytes)
  try readMessages(bytes)
  try readPages(bytes)
  try deliver(bytes)
}

/// Reads a page, and seals and opens it; reads a receipt.
private func readPages(_ bytes: [UInt8]) throws {
  if let page = attempt({ try AuditPage(bytes.span) }) {
    let secret = AuditPageSecret(Secret(), device: DeviceID(), home: KeyID())
    var cryptography = CredulousCryptography()
    let sealed = try secret.seal(page, random: FixedBytes<16>(), using: &cryptography)
    let opened = try mustSucceed("a page that was sealed is none") { () throws -> AuditPage in
      try secret.open(sealed.span, using: &cryptography)
    }
    try require(opened == page, "a page that is sealed and opened differs")
  }
  guard let receipt = try? AuditReceipt(bytes.span) else { return }
  note("a receipt for \(receipt.chain.count)")
  try require(receipt.chain.count > 0, "a receipt for nothing")
}

private func readClaims(_ bytes: [UInt8]) throws {
  guard let again = attempt({ try writtenAgain(bytes) }) else { return }
  try require(again == bytes, "claims of a bulletin that are read and written again differ")
}

/// Reads claims, and writes them again.
private func writtenAgain(_ bytes: [UInt8]) throws -> [UInt8] {
  let claims = try BulletinClaims(bytes.span)
  try require(claims.number > claims.predecessor, "a bulletin is its own predecessor")
  try require(claims.number >= 1000 * claims.issuedAt, "the number of a bulletin is below its time")
  var written = TestBulletin(for: claims.audience)
  (written.number, written.predecessor, written.issuedAt) = (claims.number, claims.predecessor, claims.issuedAt)
  written.generation = claims.generation
  claims.revoked.forEach { written.revoked.append(($0.tokenID, until: $0.until)) }
  claims.versions.forEach { least in
    let version = least.version
    written.versions.append((least.subject.description, version.major, version.minor, version.patch))
  }
  claims.introduced.forEach { written.introduced.append($0) }
  claims.ended.forEach { written.ended.append($0.keyID) }
  claims.users.forEach { written.users.append(($0.user.description, until: $0.until)) }
  return written.encoded()
}

private func readMessages(_ bytes: [UInt8]) throws {
  if let again = attempt({ try mailWrittenAgain(bytes) }) ?? nil {
    try require(again == bytes, "a message about bulletins that is read and written again differs")
  }
  if let answer = attempt({ try PageAnswer(bytes.span) }) {
    var written: [UInt8] = []
    answer.encode(into: &written)
    try require(written == bytes, "an answer about pages that is read and written again differs")
  }
  guard let answer = attempt({ try BulletinAnswer(bytes.span) }) else { return }
  var written: [UInt8] = []
  answer.encode(into: &written)
  try require(written == bytes, "an answer about bulletins that is read and written again differs")
  try require(answer.list.map { BulletinList($0.rows.reversed()) } == answer.list, "a list is not in order")
}

/// Reads a message to a device, and writes it again; nil for a message of another type.
private func mailWrittenAgain(_ bytes: [UInt8]) throws -> [UInt8]? {
  guard let mail = try MailMessage(bytes.span) else { return nil }
  var written: [UInt8] = []
  MailMessage.encode(mail.kind, mail.bytes, into: &written)
  return written
}

/// Delivers the bytes to a device of which the id and the only key are zero, and which has the number 5.
private func deliver(_ bytes: [UInt8]) throws {
  let store = MemoryStore()
  store.floor = testTime
  store.issuers[KeyID()] = CredulousKey().publicPoint
  store.bulletins[KeyID()] = BulletinList([
    BulletinList.Row(audience: AudienceID(), number: 5),
    BulletinList.Row(audience: AudienceID(filledWith: 1), number: 0),
  ])
  let isSealed = Bulletin.isSealed(bytes.span)
  for hasCheck in [false, true] {
    var (key, seen, cryptography) = (CredulousKey(), store, CredulousCryptography())
    var allowance = MailAllowance.owner
    if !hasCheck { _ = allowance.useCheck() }
    let result = try takeBulletin(
      bytes.span, to: DeviceID(), key: &key, keyID: KeyID(), store: &seen, policy: TestPolicy(), realClock: testTime,
      allowance: &allowance, using: &cryptography
    ).result
    let isLeft = allowance.useCheck()
    note("\(result), check left: \(isLeft)")
    try require(hasCheck || result != .taken, "a bulletin is taken without a check of its signature")
    try require(result != .taken || !isLeft, "a bulletin is taken, and costs no check")
    try require(!isSealed || bytes.count > Bulletin.maximumByteCount || !isLeft, "a sealed bulletin costs no check")
    try require(result == .taken || store.judged.isEmpty, "a bulletin is refused that the store has judged")
  }
}
