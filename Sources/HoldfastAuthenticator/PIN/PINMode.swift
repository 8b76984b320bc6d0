/// What has to be asked for before a record's secret can be used.
public enum PINMode: Sendable, Equatable {
  /// Nothing: the secret is stored as it is.
  case none
  /// The PIN that it was blinded with.
  case current
  /// A PIN that is to be: asked twice, and held against the rules.
  case new
  /// A key that another authenticator hands over in place of a PIN.
  case external
}
