/// One of the few places that an adapter has for advertisements, held as long as this lives.
struct AdvertisingInstance: Sendable {
  let number: UInt8
  /// A name that one process at a time can have, and that goes with it.
  private let claim: OpenFile

  /// A flag of those that only an adapter with extended advertising takes: a secondary channel of 1 Mbit/s.
  ///
  /// Source: BlueZ, mgmt(7), "Read Advertising Features".
  private static let extendedFlag: UInt32 = 1 << 7

  /// Takes the highest that nobody uses: bluetoothd takes the lowest.
  ///
  /// The kernel does not list an instance whose number is above the count of them, so a name says which are taken by
  /// other Holdfast devices.
  ///
  /// - Parameter isReplacement: whether it is to take the place of another one without a gap: only where the adapter keeps
  ///   several at once. Elsewhere the kernel lets them take turns, and another one would wait for its own.
  /// - Throws: ``BluetoothError/noInstance``, ``BluetoothError/adapterUnable`` where there is no Low Energy,
  ///   ``BluetoothError/permissionDenied``, and what else the kernel answers.
  init(
    of adapter: UInt16, _ management: ManagementSocket, isReplacement: Bool = false,
    meanwhile: (UInt16, ManagementEvent) -> Void = { _, _ in }
  ) throws(BluetoothError) {
    let features = try management.execute(
      ManagementCommand(.readAdvertisingFeatures, adapter: adapter), meanwhile: meanwhile)
    var reader = ByteReader(features)
    guard let flags = reader.littleEndian(UInt32.self), reader.bytes(2) != nil,
      let maximum = reader.littleEndian(UInt8.self),
      let count = reader.littleEndian(UInt8.self), reader.rest.count == Int(count)
    else { throw .malformed }
    guard maximum > 0 else { throw .adapterUnable }
    guard !isReplacement || flags & AdvertisingInstance.extendedFlag != 0 else { throw .noInstance }
    for number in (1...maximum).reversed() where !reader.rest.contains(number) {
      if let claim = try AdvertisingInstance.claim(number, of: adapter) {
        (self.number, self.claim) = (number, claim)
        return
      }
    }
    throw .noInstance
  }

  /// Source: unix(7), the abstract namespace: such a name is no file.
  private static func claim(_ number: UInt8, of adapter: UInt16) throws(BluetoothError) -> OpenFile? {
    do throws(TransportError) {
      let file = try OpenFile.unixSocket(framing: .stream)
      return file.bind(toPath: "\0holdfast advertisement \(number) of hci\(adapter)") == 0 ? file : nil
    } catch { throw BluetoothError(error) }
  }
}
