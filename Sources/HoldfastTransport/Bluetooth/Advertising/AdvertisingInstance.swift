/// One of the few places that an adapter has for advertisements, held as long as this lives.
struct AdvertisingInstance: Sendable {
  let number: UInt8
  /// A name that one process at a time can have, and that goes with it.
  private let claim: OpenFile

  /// Takes the highest that nobody uses: bluetoothd takes the lowest.
  ///
  /// The kernel does not list an instance whose number is above the count of them, so a name says which are taken by
  /// other Holdfast devices.
  /// - Throws: ``BluetoothError/noInstance``, ``BluetoothError/adapterUnable`` where there is no Low Energy,
  ///   ``BluetoothError/permissionDenied``, and what else the kernel answers.
  init(of adapter: UInt16, _ management: ManagementSocket) throws(BluetoothError) {
    let features = try management.execute(ManagementCommand(.readAdvertisingFeatures, adapter: adapter))
    var reader = ByteReader(features)
    guard reader.bytes(6) != nil, let maximum = reader.littleEndian(UInt8.self),
      let count = reader.littleEndian(UInt8.self), reader.rest.count == Int(count)
    else { throw .malformed }
    guard maximum > 0 else { throw .adapterUnable }
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
