/// A device in range, and what it said of itself.
public struct FoundDevice: Sendable, Equatable {
  /// Its address, by which reports of it are put together.
  public let device: RemoteDevice
  /// The strength of its last signal in dBm; nil where it is not known.
  public private(set) var signalStrength: Int8?
  /// Whether it lets itself be connected to.
  public private(set) var isConnectable: Bool
  private var data: AdvertisingData

  /// What it calls itself, as it wrote it: for a terminal it has to be made printable.
  public var name: String? { data.name }
  /// Whether it says that it is a Holdfast device.
  public var namesService: Bool { data.namesService }
  /// Whether it says what services it has, and ours is not among them.
  public var excludesService: Bool { data.namesAllServices && !data.namesService }
  /// Where it listens by Low Energy, each from 0x80 to 0xff; more than one where several Holdfast devices are on one host.
  public private(set) var psms: [UInt8] = []

  init(_ report: DeviceReport) {
    device = report.device
    signalStrength = report.signalStrength
    isConnectable = report.isConnectable
    data = AdvertisingData(report.data) ?? AdvertisingData([])!
    if let psm = data.psm { psms.append(psm) }
  }

  /// Adds what a later report of the same device says.
  mutating func merge(_ report: DeviceReport) {
    signalStrength = report.signalStrength ?? signalStrength
    isConnectable = isConnectable || report.isConnectable
    guard let more = AdvertisingData(report.data) else { return }
    data.merge(more)
    if let psm = more.psm, !psms.contains(psm) { psms.append(psm) }
  }
}
