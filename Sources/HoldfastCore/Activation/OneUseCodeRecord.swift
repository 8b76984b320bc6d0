/// What a device keeps of a ``OneUseCode``: not the code, but what MACs are keyed with.
public struct OneUseCodeRecord: ~Copyable, Sendable {
  public let id: UInt64
  public let purpose: OneUseCode.Purpose
  public let key: Secret<32>
  /// Whose it is.
  public let user: BoundedText<32>
  /// Unix seconds; no longer good from then on.
  public let expires: UInt64
  /// How the user's one-time passwords will be made; nil for none, and for a code that unlocks.
  public let otp: CodeMethod?
  /// How the user's seals will be made.
  public let seal: CodeMethod?

  public init(
    id: UInt64, purpose: OneUseCode.Purpose, key: consuming Secret<32>, user: BoundedText<32>, expires: UInt64,
    otp: CodeMethod? = nil, seal: CodeMethod? = nil
  ) {
    self.id = id
    self.purpose = purpose
    self.key = key
    self.user = user
    self.expires = expires
    self.otp = otp
    self.seal = seal
  }
}
