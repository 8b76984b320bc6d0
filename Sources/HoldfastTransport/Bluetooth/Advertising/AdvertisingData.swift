/// The data that a Bluetooth peer broadcasts: advertising data, a scan response, or an extended inquiry response.
///
/// Source: Bluetooth Core 5.4, volume 3 part C, section 8; Supplement to the Core Specification, part A.
package struct AdvertisingData: Equatable {
  /// The peer's name: the first complete one, else the first shortened one.
  package private(set) var name: String?
  package private(set) var hasWholeName = false
  /// Whether the Holdfast service UUID is in the list of service UUIDs.
  package private(set) var namesService = false
  /// Whether the list of 128-bit service UUIDs is complete.
  package private(set) var namesAllServices = false
  /// The PSM that follows the Holdfast service UUID in the service data.
  package private(set) var psm: UInt8?

  /// The maximum byte count of a name. Source: Bluetooth Core 5.4, volume 4 part E, section 6.23.
  static let maximumNameByteCount = 248

  private enum Structure {
    static let incompleteUUIDs: UInt8 = 0x06
    static let completeUUIDs: UInt8 = 0x07
    static let shortenedName: UInt8 = 0x08
    static let completeName: UInt8 = 0x09
    static let serviceData: UInt8 = 0x21
  }

  /// Reads a sequence of structures: a length, a type, and a body one byte shorter than the length.
  ///
  /// A length of 0 ends the sequence early; only zeros may follow. Returns nil if the bytes are malformed.
  package init?(_ bytes: ArraySlice<UInt8>) {
    var reader = ByteReader(bytes)
    while let length = reader.littleEndian(UInt8.self) {
      guard length > 0 else {
        guard reader.rest.allSatisfy({ $0 == 0 }) else { return nil }
        return
      }
      guard let type = reader.littleEndian(UInt8.self), let body = reader.bytes(Int(length) - 1),
        take(type, body)
      else { return nil }
    }
  }

  /// Reads one structure; returns false if it is malformed.
  private mutating func take(_ type: UInt8, _ body: ArraySlice<UInt8>) -> Bool {
    switch type {
    case Structure.incompleteUUIDs, Structure.completeUUIDs:
      guard body.count.isMultiple(of: 16) else { return false }
      for start in stride(from: body.startIndex, to: body.endIndex, by: 16)
      where body[start..<start + 16].elementsEqual(HoldfastService.uuid.reversed()) {
        namesService = true
      }
      namesAllServices = namesAllServices || type == Structure.completeUUIDs
    case Structure.shortenedName, Structure.completeName:
      guard body.count <= AdvertisingData.maximumNameByteCount else { return false }
      takeName(body, isWhole: type == Structure.completeName)
    case Structure.serviceData:
      guard body.count >= 16 else { return false }
      // Other service data under the Holdfast UUID, present or future, is not a PSM.
      guard body.count == 17, body.prefix(16).elementsEqual(HoldfastService.uuid.reversed()) else { break }
      if BluetoothPort.isDynamic(lowEnergyPSM: UInt16(body.last!)) { psm = psm ?? body.last }
    default: break
    }
    return true
  }

  private mutating func takeName(_ body: ArraySlice<UInt8>, isWhole: Bool) {
    guard name == nil || isWhole && !hasWholeName else { return }
    name = String(decoding: body.prefix { $0 != 0 }, as: UTF8.self)
    hasWholeName = isWhole
  }

  /// Merges another report of the same peer, except for the PSM, of which there may be several.
  package mutating func merge(_ other: AdvertisingData) {
    if let name = other.name, self.name == nil || other.hasWholeName { self.name = name }
    hasWholeName = hasWholeName || other.hasWholeName
    namesService = namesService || other.namesService
    namesAllServices = namesAllServices || other.namesAllServices
  }
}

extension AdvertisingData {
  /// The advertising data of a Holdfast device: the complete list of its one service UUID. The kernel prepends the flags.
  package static let advertisement: [UInt8] = structure(Structure.completeUUIDs, HoldfastService.uuid.reversed())

  /// Returns the scan response: the PSM, and as much of the name as fits into 31 bytes.
  package static func scanResponse(psm: UInt8, name: String) -> [UInt8] {
    let service = structure(Structure.serviceData, HoldfastService.uuid.reversed() + [psm])
    let short = name.utf8Prefix(byteCount: 31 - service.count - 2)
    guard !short.isEmpty else { return service }
    let type = short.count == name.utf8.count ? Structure.completeName : Structure.shortenedName
    return service + structure(type, short)
  }

  private static func structure(_ type: UInt8, _ body: [UInt8]) -> [UInt8] {
    [UInt8(body.count + 1), type] + body
  }
}

extension String {
  /// Returns the UTF-8 of the leading Unicode scalars that have at most `byteCount` bytes together.
  func utf8Prefix(byteCount: Int) -> [UInt8] {
    var bytes: [UInt8] = []
    for scalar in unicodeScalars {
      let more = Array(String(scalar).utf8)
      guard bytes.count + more.count <= byteCount else { break }
      bytes += more
    }
    return bytes
  }
}

/// One of the few advertising instances of an adapter. It is reserved while this value exists.
package struct AdvertisingInstance: Sendable {
  package let number: UInt8
  /// A socket whose abstract name reserves the instance. Only one process at a time can bind it; it ends with the process.
  private let claim: OpenFile

  /// A flag that only an adapter with extended advertising supports: a secondary channel of 1 Mbit/s.
  ///
  /// Source: BlueZ, mgmt(7), "Read Advertising Features".
  private static let extendedFlag: UInt32 = 1 << 7

  /// Reserves the highest free instance; bluetoothd uses the lowest.
  ///
  /// The kernel does not list an instance whose number is above the count of instances. Therefore an abstract socket name marks
  /// each instance that another Holdfast device uses.
  ///
  /// - Parameter isReplacement: whether the instance replaces another one without a gap. This is possible only if the adapter
  ///   advertises several at once. Other adapters alternate between instances, so the new one would wait for its turn.
  /// - Throws: ``BluetoothError/noInstance``, ``BluetoothError/adapterUnable`` if there is no Low Energy,
  ///   ``BluetoothError/permissionDenied``, and any other error that the kernel returns.
  package init(
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

  /// Reserves the instance by binding an abstract name; returns nil if another process has bound it.
  ///
  /// Source: unix(7), the abstract namespace, whose names are not files.
  private static func claim(_ number: UInt8, of adapter: UInt16) throws(BluetoothError) -> OpenFile? {
    do throws(TransportError) {
      let file = try OpenFile.unixSocket(framing: .stream)
      return file.bind(toPath: "\0holdfast advertisement \(number) of hci\(adapter)") == 0 ? file : nil
    } catch { throw BluetoothError(error) }
  }
}
