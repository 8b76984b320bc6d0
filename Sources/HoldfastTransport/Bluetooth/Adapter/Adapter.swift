/// A local Bluetooth adapter, as the kernel sees it.
public struct Adapter: Sendable, Equatable {
  /// 0 for `hci0`.
  public let number: UInt16
  /// Its public address; any where it has none.
  public let address: BluetoothAddress
  /// What it calls itself; empty where it has no name.
  public let name: String
  /// What it can do.
  public let supported: AdapterSettings
  /// What it is set to.
  public let settings: AdapterSettings
  /// What keeps it from being powered.
  public let block: RadioBlock?
}

/// Properties of an adapter. The bits are the management interface's.
///
/// Source: BlueZ, mgmt(7), "Read Controller Information".
public struct AdapterSettings: OptionSet, Sendable, Hashable {
  public let rawValue: UInt32

  public init(rawValue: UInt32) {
    self.rawValue = rawValue
  }

  public static let powered = AdapterSettings(rawValue: 1 << 0)
  public static let connectable = AdapterSettings(rawValue: 1 << 1)
  public static let discoverable = AdapterSettings(rawValue: 1 << 3)
  public static let bondable = AdapterSettings(rawValue: 1 << 4)
  public static let secureSimplePairing = AdapterSettings(rawValue: 1 << 6)
  /// Classic Bluetooth.
  public static let classic = AdapterSettings(rawValue: 1 << 7)
  public static let lowEnergy = AdapterSettings(rawValue: 1 << 9)
  public static let advertising = AdapterSettings(rawValue: 1 << 10)
}
