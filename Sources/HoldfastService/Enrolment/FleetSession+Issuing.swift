import HoldfastCore
import HoldfastDatabase
import HoldfastFormats
import HoldfastIssuer
import HoldfastStorage

/// Whether a device gets tokens.
enum DeviceAdmittance {
  /// It does, with this generation.
  case admitted(generation: UInt64)
  case refused(RefusalReason)
}

/// The token that was issued for a baseline.
struct EarlierToken {
  let device: [UInt8]
  let prover: [UInt8]
  let expires: UInt64
  let isRevoked: Bool
  let token: StoredToken
}

/// An invitation as it is stored.
struct StoredInvitation {
  let device: [UInt8]
  let expires: UInt64
  let isRevoked: Bool
  /// The token that was issued on it; nil if it was not used.
  let token: [UInt8]?
  let grant: Grant
}

/// A request as it is stored.
struct StoredRequest {
  let id: RequestID
  let device: [UInt8]
  let prover: [UInt8]
  let created: UInt64
  let decided: UInt64?
  let stored: RequestStatus
  let grant: Grant

  /// The state of the request at a time: a request and a decision count for 24 hours.
  func status(at now: UInt64) -> RequestStatus {
    switch stored {
    case .waiting, .approved: now < (decided ?? created) + Fleet.baselineSeconds ? stored : .expired
    case .refused, .collected, .expired: stored
    }
  }
}

/// The states of a request.
package enum RequestStatus: String, Sendable, CaseIterable {
  /// No operator has decided.
  case waiting
  /// An operator agreed, and the prover may collect its token.
  case approved
  /// An operator did not agree.
  case refused
  /// The token was issued.
  case collected
  /// Nobody decided, or the prover did not collect the token, within 24 hours.
  case expired
}

extension FleetSession {
  /// Looks up whether a registered device gets tokens, and keeps it from being blocked until the transaction ends.
  func standing(
    of device: DeviceDescriptor, admission: DeviceAdmission
  ) throws(FleetFault) -> LookUp<DeviceAdmittance> {
    if admission == .firstCome {
      try send(
        """
        INSERT INTO devices (id, point, added, generation) VALUES ($1, $2, $3, 1) ON CONFLICT (id) DO NOTHING
        """,
        .copying(device.deviceID.bytes), .copying(device.publicPoint.bytes), .unsigned(now))
    }
    return try lookUp(
      "SELECT point, blocked, generation FROM devices WHERE id = $1 FOR SHARE", .copying(device.deviceID.bytes)
    ) { (row) throws(FleetFault) in
      let (point, isBlocked, generation) = try decoding { () throws(SQLFault) in
        (try row.bytes(0), try !row.isNull(1), try row.unsigned(2))
      }
      guard point == device.publicPoint.array else { return .refused(.anotherKey) }
      return isBlocked ? .refused(.blockedDevice) : .admitted(generation: generation)
    }
  }

  /// Returns whether a user was revoked, and keeps the user from being revoked until the transaction ends.
  func lockUser(_ name: String) throws(FleetFault) -> Bool {
    try addUser(name)
    guard let row = try row("SELECT revoked FROM users WHERE name = $1 FOR SHARE", .text(name)) else { throw .corrupt }
    return try decoding { () throws(SQLFault) in try !row.isNull(0) }
  }

  /// Adds a user unless there is one of that name.
  func addUser(_ name: String) throws(FleetFault) {
    try send(
      "INSERT INTO users (name, added) VALUES ($1, $2) ON CONFLICT (name) DO NOTHING", .text(name), .unsigned(now))
  }

  /// Looks up the token of a baseline.
  func token(of baseline: Digest) throws(FleetFault) -> LookUp<EarlierToken> {
    try lookUp(
      "SELECT id, device, prover, expires, revoked, bytes, format, claims FROM tokens WHERE baseline = $1",
      .copying(baseline.bytes)
    ) { (row) throws(FleetFault) in
      try decoding { () throws(SQLFault) in
        let (id, json) = (try row.bytes(0), try row.text(7))
        guard let id = TokenID(id.span), let value = try? JSONValue(parsing: Array(json.utf8), byteLimit: 1 << 16),
          let report = IssuanceReport(value)
        else { throw .misuse }
        return EarlierToken(
          device: try row.bytes(1), prover: try row.bytes(2), expires: try row.unsigned(3),
          isRevoked: try !row.isNull(4),
          token: StoredToken(id: id, bytes: try row.bytes(5), format: try row.text(6), claims: report.json))
      }
    }
  }

  /// Looks up an invitation, and keeps others from using it until the transaction ends.
  func invitation(_ digest: Digest) throws(FleetFault) -> LookUp<StoredInvitation> {
    try lookUp(
      """
      SELECT id, device, expires, revoked, token, username, commands, maximum_uses FROM invitations
      WHERE digest = $1 FOR UPDATE
      """,
      .copying(digest.bytes)
    ) { (row) throws(FleetFault) in
      try decoding { () throws(SQLFault) in
        StoredInvitation(
          device: try row.bytes(1), expires: try row.unsigned(2), isRevoked: try !row.isNull(3),
          token: try row.optionalBytes(4),
          grant: Grant(
            source: .invitation(try row.bytes(0)), user: try row.optionalText(5),
            commands: CommandList.decode(try row.optionalText(6)), maximumUses: try row.optionalUnsigned(7)))
      }
    }
  }

  /// Returns the request of a baseline, and keeps others from deciding about it until the transaction ends.
  func request(of baseline: Digest) throws(FleetFault) -> StoredRequest? {
    guard
      let row = try row(
        """
        SELECT id, device, prover, created, decided, status, username, commands, maximum_uses FROM requests
        WHERE baseline = $1 FOR UPDATE
        """,
        .copying(baseline.bytes))
    else { return nil }
    return try StoredRequest(row, in: self)
  }

  /// The largest number of requests that may wait at once.
  private static var waitingLimit: UInt64 { 10_000 }

  /// Returns whether one more request may wait. Requests at the same time may exceed the limit by their number.
  func canWait() throws(FleetFault) -> Bool {
    guard
      let row = try row(
        "SELECT count(*) FROM requests WHERE status = 'waiting' AND created > $1",
        .unsigned(now - min(now, Fleet.baselineSeconds)))
    else { throw .corrupt }
    return try decoding { () throws(SQLFault) in try row.unsigned(0) } < Self.waitingLimit
  }

  /// Stores a request for an operator.
  func insertRequest(
    _ id: RequestID, _ attested: borrowing AttestedApp, for device: DeviceID, _ wishes: TokenWishes
  ) throws(FleetFault) {
    try send(
      """
      INSERT INTO requests (id, baseline, device, prover, code, subject, version, username, commands, created, status)
      VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, 'waiting')
      """,
      .copying(id.bytes), .copying(attested.app.baseline.bytes), .copying(device.bytes),
      .copying(attested.hostID.bytes), .text(attested.responseCode.description),
      .text(attested.app.subject.description), .text(attested.app.version.text),
      .optional(wishes.user?.description), .optional(CommandList.encode(wishes.commands?.map { $0.description })),
      .unsigned(now))
  }

  /// Stores a token before anyone gets it.
  func insert(
    _ issued: IssuedToken, _ token: StoredToken, options: IssuanceOptions, _ attested: borrowing AttestedApp,
    device: DeviceID, generation: UInt64, signer: KeyID
  ) throws(FleetFault) {
    try send(
      """
      INSERT INTO tokens (
        id, baseline, device, prover, subject, version, username, commands, maximum_uses, issued, expires, generation,
        signer, format, bytes, claims)
      VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16)
      """,
      .copying(issued.tokenID.bytes), .copying(attested.app.baseline.bytes), .copying(device.bytes),
      .copying(attested.hostID.bytes), .text(attested.app.subject.description), .text(attested.app.version.text),
      .optional(options.user), .optional(CommandList.encode(options.commands)), .optional(options.maximumUses),
      .unsigned(now), .unsigned(issued.expires), .unsigned(generation), .copying(signer.bytes), .text(token.format),
      .bytes(token.bytes), .text(String(decoding: token.claims.compact(), as: UTF8.self)))
  }

  /// Records that a token was issued on an invitation or a request, which was found unused in this transaction and locked. If it
  /// were used nevertheless, the CASE would be NULL, which the column does not permit, and the transaction would fail.
  func markUsed(
    _ source: Grant.Source, by attested: borrowing AttestedApp, token: TokenID
  ) throws(FleetFault) {
    switch source {
    case .invitation(let id):
      try send(
        """
        UPDATE invitations SET used = $2, prover = $3, baseline = $4, token = $5,
          expires = CASE WHEN token IS NULL THEN expires END
        WHERE id = $1
        """,
        .bytes(id), .unsigned(now), .copying(attested.hostID.bytes), .copying(attested.app.baseline.bytes),
        .copying(token.bytes))
    case .request(let id):
      try send(
        "UPDATE requests SET status = CASE status WHEN 'approved' THEN 'collected' END, token = $2 WHERE id = $1",
        .bytes(id), .copying(token.bytes))
    }
    try count(Self.issued)
  }
}

extension StoredRequest {
  /// Reads the columns id, device, prover, created, decided, status, username, commands, maximum_uses.
  init(_ row: SQLRow, in session: FleetSession) throws(FleetFault) {
    let name: String
    let bytes: [UInt8]
    (bytes, device, prover, created, decided, name, grant) = try session.decoding { () throws(SQLFault) in
      (
        try row.bytes(0), try row.bytes(1), try row.bytes(2), try row.unsigned(3), try row.optionalUnsigned(4),
        try row.text(5),
        Grant(
          source: .request(try row.bytes(0)), user: try row.optionalText(6),
          commands: CommandList.decode(try row.optionalText(7)), maximumUses: try row.optionalUnsigned(8))
      )
    }
    guard let status = RequestStatus(rawValue: name), let id = RequestID(bytes.span) else { throw .corrupt }
    (stored, self.id) = (status, id)
  }
}

/// Names of commands in one column: a JSON array of texts.
enum CommandList {
  static func encode(_ commands: [String]?) -> String? {
    commands.map { String(decoding: JSONValue.array($0.map { .string($0) }).compact(), as: UTF8.self) }
  }

  static func decode(_ text: String?) -> [String]? {
    text.flatMap { try? JSONValue(parsing: Array($0.utf8), byteLimit: 1 << 16) }?.elements?.compactMap(\.text)
  }
}
