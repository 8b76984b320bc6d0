import HoldfastCore

/// The device of a vector: its key is given, it allows everything, and has recorded nothing that forbids anything.
///
/// The same on Linux and on a microcontroller, but for the cryptography.
public struct GivenDevice<Crypto: Cryptography & ~Copyable, Key: AgreementKey & ~Copyable>: ~Copyable {
  private var session: DeviceSession<Crypto, Key, GivenStore, PermissivePolicy, NoRandom, NoClock>

  /// `keyID` is the id of `key`'s public point.
  public init(
    deviceID: DeviceID, keyID: KeyID, key: consuming Key, issuers: TrustedIssuers, cryptography: consuming Crypto
  ) {
    session = DeviceSession(
      deviceID: deviceID, keyID: keyID, cryptography: cryptography, key: key, store: GivenStore(issuers: issuers),
      policy: PermissivePolicy(), random: NoRandom(), clock: NoClock(),
      challenges: ChallengeSource(seed: Secret(), bootCount: 0, connection: 0))
  }

  /// Remembers a token, in the place of an earlier one.
  public mutating func remember(_ token: borrowing VerifiedToken, as reference: TokenReference) {
    session.store.reference = reference
    session.store.token.set(token)
  }

  /// Answers M2 to the M1 that is given, and leaves M3 in ``verdict``; an accepted command gives `result`.
  ///
  /// Throws for an M1 of more than 64 bytes and a result of more than 1024.
  public mutating func answer(
    _ message: Span<UInt8>, to challenge: Span<UInt8>, result: Span<UInt8>
  ) throws(EncodingFault) -> Status {
    try session.beginRound(challenge: challenge)
    var actuator = try GivenResult(result)
    return session.respond(to: message, waitedMilliseconds: 0, actuator: &actuator).status
  }

  /// The last M3.
  public var verdict: Span<UInt8> {
    @_lifetime(borrow self)
    get { session.outgoing.bytes }
  }
}
