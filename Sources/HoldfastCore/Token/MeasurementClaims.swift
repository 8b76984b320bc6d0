/// What a measurement token says, decoded and complete but not yet believed.
///
/// The two measurements and the proof key are secrets: who knows them can prove in the app's place.
public struct MeasurementClaims: ~Copyable, Sendable {
  /// `iss`, at most 64 bytes; informative.
  public internal(set) var issuer: BoundedText<64>
  /// `sub`, at most 64 bytes: the app that was approved.
  public internal(set) var subject: BoundedText<64>
  /// `aud`: the device that it is for.
  public internal(set) var audience: DeviceID
  /// `exp`, Unix seconds: expired when not above now.
  public internal(set) var expires: UInt64
  /// `iat`, Unix seconds, below ``expires``.
  public internal(set) var issuedAt: UInt64
  /// `jti`, 16 bytes.
  public internal(set) var tokenID: TokenID
  /// `imh`: the integrity measurement, 32 bytes.
  public internal(set) var integrity: Secret<32>
  /// `dmh`: the device measurement, 32 bytes.
  public internal(set) var device: Secret<32>
  /// `mpk`: the measurement proof key, 16 bytes.
  public internal(set) var proofKey: Secret<16>
  /// `gen`: raised by the issuer to revoke older tokens.
  public internal(set) var generation: UInt64
  /// `max`: how many rounds may be accepted; nil without a limit.
  public internal(set) var maximumUses: UInt64?
  /// `cmd`: what it may do; nil for all that policy allows.
  public internal(set) var commands: CommandList?
  /// `ver`; 0.0.0 where absent.
  public internal(set) var version: AppVersion
  /// `usr`, at most 32 bytes: whose codes go with it; nil for any enrolled user's.
  public internal(set) var user: BoundedText<32>?
  private let pin = Pinned()

  /// Puts claims together, as an issuer does and a decoder; that makes nobody believe them.
  ///
  /// Numbers are at most 2^53 - 1, and `issuedAt` is below `expires`; a version of 0.0.0 is written as none.
  public init(
    issuer: BoundedText<64>, subject: BoundedText<64>, audience: DeviceID, expires: UInt64, issuedAt: UInt64,
    tokenID: TokenID, integrity: consuming Secret<32>, device: consuming Secret<32>, proofKey: consuming Secret<16>,
    generation: UInt64, maximumUses: UInt64?, commands: consuming CommandList?, version: AppVersion,
    user: BoundedText<32>?
  ) {
    self.issuer = issuer
    self.subject = subject
    self.audience = audience
    self.expires = expires
    self.issuedAt = issuedAt
    self.tokenID = tokenID
    self.integrity = integrity
    self.device = device
    self.proofKey = proofKey
    self.generation = generation
    self.maximumUses = maximumUses
    self.commands = commands
    self.version = version
    self.user = user
  }

  /// Nothing yet, to be decoded in place.
  @inline(never)
  init() {
    (issuer, subject, audience, tokenID) = (BoundedText(), BoundedText(), DeviceID(), TokenID())
    (expires, issuedAt, generation, maximumUses) = (0, 0, 0, nil)
    integrity = Secret()
    device = Secret()
    proofKey = Secret()
    commands = nil
    (version, user) = (.zero, nil)
  }

  /// Becomes a second copy.
  mutating func set(_ other: borrowing MeasurementClaims) {
    issuer = other.issuer
    subject = other.subject
    audience = other.audience
    expires = other.expires
    issuedAt = other.issuedAt
    tokenID = other.tokenID
    integrity.set(other.integrity)
    device.set(other.device)
    proofKey.set(other.proofKey)
    generation = other.generation
    maximumUses = other.maximumUses
    commands = other.commands?.copy()
    version = other.version
    user = other.user
  }
}

extension MeasurementClaims {
  /// Forgets the claims that need not be there.
  mutating func removeOptional() {
    (maximumUses, version, user) = (nil, .zero, nil)
    commands = nil
  }

  /// Throws unless all claims that are required were seen, and `iat` is below `exp`.
  borrowing func check(_ seen: ClaimNames) throws(EncodingFault) {
    guard seen.isSuperset(of: .required), issuedAt < expires else { throw .unexpected }
  }
}

/// Which claims there are.
struct ClaimNames: OptionSet {
  let rawValue: UInt16

  static var issuer: Self { Self(rawValue: 1) }
  static var subject: Self { Self(rawValue: 1 << 1) }
  static var audience: Self { Self(rawValue: 1 << 2) }
  static var expires: Self { Self(rawValue: 1 << 3) }
  static var issuedAt: Self { Self(rawValue: 1 << 4) }
  static var tokenID: Self { Self(rawValue: 1 << 5) }
  static var integrity: Self { Self(rawValue: 1 << 6) }
  static var device: Self { Self(rawValue: 1 << 7) }
  static var proofKey: Self { Self(rawValue: 1 << 8) }
  static var generation: Self { Self(rawValue: 1 << 9) }
  static var required: Self { Self(rawValue: 1 << 10 - 1) }
}

extension FixedBytes where count == 16 {
  /// Reads a device id as `aud` writes it: 22 characters of base64url.
  init(audience text: Span<UInt8>) throws(EncodingFault) {
    guard text.count == 22 else { throw .unexpected }
    var buffer = ByteBuffer<16>()
    try buffer.append(base64URL: text)
    guard let id = FixedBytes(buffer.bytes) else { throw .unexpected }
    self = id
  }
}

/// An app's version, three numbers, compared from the left.
public struct AppVersion: Sendable, Hashable, Comparable {
  public let major: UInt64
  public let minor: UInt64
  public let patch: UInt64

  public init(major: UInt64, minor: UInt64, patch: UInt64) {
    (self.major, self.minor, self.patch) = (major, minor, patch)
  }

  /// What a token without a version counts as.
  public static let zero = AppVersion(major: 0, minor: 0, patch: 0)

  public static func < (left: AppVersion, right: AppVersion) -> Bool {
    if left.major != right.major { return left.major < right.major }
    if left.minor != right.minor { return left.minor < right.minor }
    return left.patch < right.patch
  }
}

/// The commands that a token allows: at most 16 of at most 32 bytes each.
public struct CommandList: ~Copyable, Sendable {
  private var commands = InlineArray<16, BoundedText<32>>(repeating: BoundedText())
  /// How many there are.
  public private(set) var count = 0
  private let pin = Pinned()

  /// No command.
  public init() {}

  /// Takes one more; `unexpected` when there are 16 already.
  public mutating func append(_ command: BoundedText<32>) throws(EncodingFault) {
    guard count < commands.count else { throw .unexpected }
    commands[count] = command
    count += 1
  }

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

  /// Whether `command` is among them.
  public func contains(_ command: BoundedText<32>) -> Bool {
    for index in 0..<count where commands[index] == command { return true }
    return false
  }
}
