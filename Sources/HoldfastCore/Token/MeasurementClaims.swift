/// The claims of a measurement token, decoded and complete but not yet verified.
///
/// The two measurements and the proof key are secrets: anyone who knows them can make the app's proofs.
public struct MeasurementClaims: ~Copyable, Sendable {
  /// The issuer's name (`iss`), at most 64 bytes; informative.
  public internal(set) var issuer: BoundedText<64>
  /// The app that was approved (`sub`), at most 64 bytes.
  public internal(set) var subject: BoundedText<64>
  /// The id of the device that the token is for (`aud`), 16 bytes.
  public internal(set) var audience: DeviceID
  /// The expiry (`exp`), in Unix seconds: the token has expired if it is not above the device's time.
  public internal(set) var expires: UInt64
  /// The time of issue (`iat`), in Unix seconds, below ``expires``.
  public internal(set) var issuedAt: UInt64
  /// The token's id (`jti`), 16 bytes.
  public internal(set) var tokenID: TokenID
  /// The integrity measurement, IM (`imh`), 32 bytes.
  public internal(set) var integrity: Secret<32>
  /// The device measurement, DM, of the prover's host (`dmh`), 32 bytes.
  public internal(set) var device: Secret<32>
  /// The measurement proof key, MPK (`mpk`), 16 bytes.
  public internal(set) var proofKey: Secret<16>
  /// The generation (`gen`), which the issuer raises to revoke older tokens.
  public internal(set) var generation: UInt64
  /// The number of rounds that may be accepted (`max`); nil for no limit.
  public internal(set) var maximumUses: UInt64?
  /// The commands that the token allows (`cmd`); nil for all that policy allows.
  public internal(set) var commands: CommandList?
  /// The app version (`ver`); 0.0.0 if it is absent.
  public internal(set) var version: AppVersion
  /// The user whose codes go with the token (`usr`), at most 32 bytes; nil for any enrolled user.
  public internal(set) var user: BoundedText<32>?
  private let pin = Pinned()

  /// Creates claims from their parts, as an issuer and a decoder do. This does not make them verified.
  ///
  /// Numbers are at most 2^53 - 1, and `issuedAt` is below `expires`. A version of 0.0.0 is not written.
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

  /// Creates empty claims, to be decoded in place.
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

  /// Becomes a second copy of `other`.
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
  /// Removes the optional claims.
  mutating func removeOptional() {
    (maximumUses, version, user) = (nil, .zero, nil)
    commands = nil
  }

  /// Throws `unexpected` unless all required claims were seen and `iat` is below `exp`.
  borrowing func check(_ seen: ClaimNames) throws(EncodingFault) {
    guard seen.isSuperset(of: .required), issuedAt < expires else { throw .unexpected }
  }
}

/// The required claims that were seen.
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
  /// Decodes a device id from `aud`: 22 characters of base64url.
  init(audience text: Span<UInt8>) throws(EncodingFault) {
    guard text.count == 22 else { throw .unexpected }
    var buffer = ByteBuffer<16>()
    try buffer.append(base64URL: text)
    guard let id = FixedBytes(buffer.bytes) else { throw .unexpected }
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

  /// Creates a version from its three numbers.
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
