/// A claim of a measurement token. Its ``row`` is all that the readers and writers of both encodings know about it.
///
/// The cases are in the order in which deterministic CBOR writes their labels (RFC 8949 §4.2.1).
package enum Claim: UInt8, Sendable {
  case issuer, subject, audience, expires, issuedAt, tokenID, integrity, device, proofKey, generation
  case maximumUses, commands, version, user

  /// The table of claims: the name in JSON, the label in CBOR, the type, and whether a token must have the claim.
  ///
  /// Source: RFC 7519 §4.1 and RFC 8392 §3.1; the labels from -75001 on, and their names, are Holdfast's own. `jti` is
  /// `cti` in RFC 8392.
  @inline(__always) package var row: Row {
    switch self {
    case .issuer: Row("iss", 1, .text64(0), .required)
    case .subject: Row("sub", 2, .text64(1), .required)
    case .audience: Row("aud", 3, .deviceID, .required)
    case .expires: Row("exp", 4, .number(0), .required)
    case .issuedAt: Row("iat", 6, .number(1), .required)
    case .tokenID: Row("jti", 7, .bytes16, .required)
    case .integrity: Row("imh", -75001, .secret32(0), .required)
    case .device: Row("dmh", -75002, .secret32(1), .required)
    case .proofKey: Row("mpk", -75003, .secret16, .required)
    case .generation: Row("gen", -75004, .number(2), .required)
    case .maximumUses: Row("max", -75005, .number(3), .optional)
    case .commands: Row("cmd", -75006, .commands, .optional)
    case .version: Row("ver", -75007, .version, .optional)
    case .user: Row("usr", -75008, .text32(0), .optional)
    }
  }

  // Not inlined, so that the compiler makes these columns arrays, and not code for each claim.
  /// The name in JSON.
  @inline(never) package var name: StaticString { row.name }
  /// The label in CBOR.
  @inline(never) package var label: Int64 { row.label }

  /// The types of claims. A type that several claims may have also says at which place ``MeasurementClaims`` keeps the
  /// value, counted from 0.
  package enum Kind: Sendable, Hashable {
    /// Text of at most 64 bytes.
    case text64(Int)
    /// Text of at most 32 bytes.
    case text32(Int)
    /// An integer from 0 to 2^53 - 1.
    case number(Int)
    /// A device id, as base64url text in both encodings.
    case deviceID
    /// 16 bytes; base64url in JSON.
    case bytes16
    /// 32 secret bytes; padded standard base64 in JSON.
    case secret32(Int)
    /// 16 secret bytes; padded standard base64 in JSON.
    case secret16
    /// An array of at most 16 texts of at most 32 bytes.
    case commands
    /// An array of three integers.
    case version
  }

  /// A row of the table.
  package struct Row: Sendable {
    package let name: StaticString
    package let label: Int64
    package let kind: Kind
    package let isRequired: Bool

    fileprivate enum Presence { case required, optional }

    @inline(__always) fileprivate init(_ name: StaticString, _ label: Int64, _ kind: Kind, _ presence: Presence) {
      (self.name, self.label, self.kind, isRequired) = (name, label, kind, presence == .required)
    }
  }

  /// All claims, in the order of the cases. In contrast to `allCases`, it needs no heap.
  package static var all: All { All() }

  /// A sequence of all claims.
  package struct All: Sequence, IteratorProtocol {
    private var number: UInt8 = 0

    /// Returns the next claim; nil after the last one.
    package mutating func next() -> Claim? {
      defer { number += 1 }
      return Claim(rawValue: number)
    }
  }
}

/// The claims of a measurement token, decoded and complete but not yet verified.
///
/// The two measurements and the proof key are secrets: anyone who knows them can make the app's proofs.
public struct MeasurementClaims: ~Copyable, Sendable {
  // The values, at the places that the table names. An absent claim has any value.
  package var texts64 = InlineArray<2, BoundedText<64>>(repeating: BoundedText())
  package var texts32 = InlineArray<1, BoundedText<32>>(repeating: BoundedText())
  package var numbers = InlineArray<4, UInt64>(repeating: 0)
  /// The commands; nil if the claim is absent, since clearing and copying 16 texts takes long.
  var commands: CommandList?
  /// One bit for each claim: whether it is present.
  private var presence: UInt32 = 0

  /// The id of the device that the token is for (`aud`), 16 bytes.
  public internal(set) var audience = DeviceID()
  /// The token's id (`jti`), 16 bytes.
  public internal(set) var tokenID = TokenID()
  /// The integrity measurement, IM (`imh`), 32 bytes.
  public package(set) var integrity: Secret<32>
  /// The device measurement, DM, of the prover's host (`dmh`), 32 bytes.
  public package(set) var device: Secret<32>
  /// The measurement proof key, MPK (`mpk`), 16 bytes.
  public package(set) var proofKey: Secret<16>
  /// The app version (`ver`); 0.0.0 if it is absent.
  public internal(set) var version = AppVersion.zero
  private let pin = Pinned()

  /// The issuer's name (`iss`), at most 64 bytes; informative.
  public var issuer: BoundedText<64> { text64(.issuer) }
  /// The app that was approved (`sub`), at most 64 bytes.
  public var subject: BoundedText<64> { text64(.subject) }
  /// The expiry (`exp`), in Unix seconds: the token has expired if it is not above the device's time.
  public var expires: UInt64 { number(.expires) }
  /// The time of issue (`iat`), in Unix seconds, below ``expires``.
  public var issuedAt: UInt64 { number(.issuedAt) }
  /// The generation (`gen`), which the issuer raises to revoke older tokens.
  public var generation: UInt64 { number(.generation) }
  /// The number of rounds that may be accepted (`max`); nil for no limit.
  public var maximumUses: UInt64? { has(.maximumUses) ? number(.maximumUses) : nil }
  /// The user whose codes go with the token (`usr`), at most 32 bytes; nil for any enrolled user.
  public var user: BoundedText<32>? { has(.user) ? text32(.user) : nil }

  /// Returns whether the token allows `command`: it has no list of commands (`cmd`), or one that names it.
  package func allows(_ command: BoundedText<32>) -> Bool { commands?.contains(command) ?? true }

  /// Creates empty claims, to be decoded in place.
  @inline(never)
  public init() {
    integrity = Secret()
    device = Secret()
    proofKey = Secret()
    commands = nil
  }

  /// Creates claims from the required ones, as an issuer does. This does not make them verified.
  ///
  /// Numbers are at most 2^53 - 1, and `issuedAt` is below `expires`.
  public init(
    issuer: BoundedText<64>, subject: BoundedText<64>, audience: DeviceID, expires: UInt64, issuedAt: UInt64,
    tokenID: TokenID, integrity: consuming Secret<32>, device: consuming Secret<32>, proofKey: consuming Secret<16>,
    generation: UInt64
  ) {
    (self.audience, self.tokenID) = (audience, tokenID)
    self.integrity = integrity
    self.device = device
    self.proofKey = proofKey
    commands = nil
    set(.issuer, issuer)
    set(.subject, subject)
    set(.expires, expires)
    set(.issuedAt, issuedAt)
    set(.generation, generation)
    for claim in Claim.all where claim.row.isRequired { setPresence(of: claim) }
  }

  /// Becomes a second copy of `other`.
  package mutating func set(_ other: borrowing MeasurementClaims) {
    (texts64, texts32, numbers, presence) = (other.texts64, other.texts32, other.numbers, other.presence)
    (audience, tokenID, version) = (other.audience, other.tokenID, other.version)
    commands = other.commands?.copy()
    integrity.set(other.integrity)
    device.set(other.device)
    proofKey.set(other.proofKey)
  }
}

/// The presence of claims.
extension MeasurementClaims {
  /// Returns whether a claim is present. A version of 0.0.0 is not: it is the same as none.
  package borrowing func has(_ claim: Claim) -> Bool { presence >> UInt32(claim.rawValue) & 1 != 0 }

  /// Makes a claim whose value is set present, or absent.
  package mutating func setPresence(of claim: Claim, to isPresent: Bool = true) {
    let bit: UInt32 = 1 << UInt32(claim.rawValue)
    presence = isPresent ? presence | bit : presence & ~bit
  }

  /// Makes all claims absent.
  package mutating func removeAll() {
    presence = 0
    version = .zero
    commands = nil
  }

  /// Throws `unexpected` unless all required claims are present and `iat` is below `exp`.
  package borrowing func check() throws(EncodingFault) {
    for claim in Claim.all where claim.row.isRequired {
      guard has(claim) else { throw .unexpected }
    }
    guard issuedAt < expires else { throw .unexpected }
  }
}

/// The values by claim.
extension MeasurementClaims {
  /// Returns the value of a number that is present.
  @inline(__always) package borrowing func number(_ claim: Claim) -> UInt64 {
    guard case .number(let place) = claim.row.kind else { preconditionFailure() }
    return numbers[place]
  }

  /// Returns a text of at most 64 bytes that is present.
  @inline(__always) package borrowing func text64(_ claim: Claim) -> BoundedText<64> {
    guard case .text64(let place) = claim.row.kind else { preconditionFailure() }
    return texts64[place]
  }

  /// Returns a text of at most 32 bytes that is present.
  @inline(__always) package borrowing func text32(_ claim: Claim) -> BoundedText<32> {
    guard case .text32(let place) = claim.row.kind else { preconditionFailure() }
    return texts32[place]
  }

  /// Sets a number, at most 2^53 - 1.
  package mutating func set(_ claim: Claim, _ number: UInt64) {
    guard case .number(let place) = claim.row.kind else { preconditionFailure() }
    numbers[place] = number
    setPresence(of: claim)
  }

  /// Sets a text of at most 64 bytes.
  package mutating func set(_ claim: Claim, _ text: BoundedText<64>) {
    guard case .text64(let place) = claim.row.kind else { preconditionFailure() }
    texts64[place] = text
    setPresence(of: claim)
  }

  /// Sets a text of at most 32 bytes.
  package mutating func set(_ claim: Claim, _ text: BoundedText<32>) {
    guard case .text32(let place) = claim.row.kind else { preconditionFailure() }
    texts32[place] = text
    setPresence(of: claim)
  }

  /// Sets the commands that the token allows.
  package mutating func set(commands: consuming CommandList) {
    self.commands = consume commands
    setPresence(of: .commands)
  }

  /// Sets the app version. A version of 0.0.0 makes the claim absent.
  package mutating func set(version: AppVersion) {
    self.version = version
    setPresence(of: .version, to: version != .zero)
  }
}

extension DeviceID {
  /// Decodes a device id from `aud`: 22 characters of base64url.
  public init(audience text: Span<UInt8>) throws(EncodingFault) {
    guard text.count == 22 else { throw .unexpected }
    var buffer = ByteBuffer<16>()
    try buffer.append(base64URL: text)
    guard let id = DeviceID(buffer.bytes) else { throw .unexpected }
    self = id
  }
}

/// An app's version: three numbers, compared from the left.
public struct AppVersion: Sendable, Hashable, Comparable {
  /// The first number.
  public let major: UInt64
  /// The second number.
  public let minor: UInt64
  /// The third number.
  public let patch: UInt64

  /// Creates a version from its three numbers, each at most 2^53 - 1.
  public init(major: UInt64, minor: UInt64, patch: UInt64) {
    (self.major, self.minor, self.patch) = (major, minor, patch)
  }

  /// The version of a token that names none.
  public static let zero = AppVersion(major: 0, minor: 0, patch: 0)

  /// Returns whether `left` is the older version.
  public static func < (left: AppVersion, right: AppVersion) -> Bool {
    if left.major != right.major { return left.major < right.major }
    if left.minor != right.minor { return left.minor < right.minor }
    return left.patch < right.patch
  }
}

/// A list of the commands that a token allows: at most 16 of at most 32 bytes each.
public struct CommandList: ~Copyable, Sendable {
  private var commands = InlineArray<16, BoundedText<32>>(repeating: BoundedText())
  /// The number of commands.
  public private(set) var count = 0
  private let pin = Pinned()

  /// Creates an empty list.
  public init() {}

  /// Appends a command. Throws `unexpected` if there are 16 already.
  public mutating func append(_ command: BoundedText<32>) throws(EncodingFault) {
    guard count < commands.count else { throw .unexpected }
    commands[count] = command
    count += 1
  }

  /// The command at `index`, below ``count``.
  public subscript(index: Int) -> BoundedText<32> {
    precondition(index < count)
    return commands[index]
  }

  borrowing func copy() -> CommandList {
    var other = CommandList()
    other.commands = commands
    other.count = count
    return other
  }

  /// Returns whether the list contains `command`.
  public func contains(_ command: BoundedText<32>) -> Bool {
    for index in 0..<count where commands[index] == command { return true }
    return false
  }
}
