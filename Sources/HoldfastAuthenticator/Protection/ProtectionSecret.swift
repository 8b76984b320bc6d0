/// What a user gives to have a record's secret blinded, or to use it.
public enum ProtectionSecret: ~Copyable, Sendable {
  case none
  case pin(PIN)
  case key(ExternalKey)

  /// Which kind of protection it is for.
  public var kind: ProtectionKind {
    switch self {
    case .none: .none
    case .pin: .pin
    case .key: .key
    }
  }
}

extension ProtectionSecret {
  /// Which rule for a new one it breaks; nil for a good one.
  var ruleFault: PINFault? {
    switch self {
    case .pin(let pin): pin.ruleFault
    default: nil
    }
  }
}

/// How a record's secret is stored. The raw value is what is written.
public enum ProtectionKind: UInt8, Sendable, Equatable {
  /// As it is.
  case none = 0
  /// Blinded by a PIN.
  case pin = 1
  /// Blinded by an external key.
  case key = 2

  /// What has to be asked for.
  public var mode: PINMode {
    switch self {
    case .none: .none
    case .pin: .current
    case .key: .external
    }
  }
}
