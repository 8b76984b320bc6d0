/// What a device says of itself on the radio: advertising data, a scan response, or an extended inquiry response.
///
/// Source: Bluetooth Core 5.4, volume 3 part C, section 8; Supplement to the Core Specification, part A.
struct AdvertisingData: Equatable {
  /// The device's name; the first complete one, else the first shortened one.
  private(set) var name: String?
  private(set) var hasWholeName = false
  /// Whether our service's UUID is among those it names.
  private(set) var namesService = false
  /// Whether the UUIDs of 128 bits that it names are all it has.
  private(set) var namesAllServices = false
  /// The PSM beside our service's UUID.
  private(set) var psm: UInt8?

  /// A name has at most this many bytes. Source: Bluetooth Core 5.4, volume 4 part E, section 6.23.
  static let maximumNameByteCount = 248

  private enum Structure {
    static let incompleteUUIDs: UInt8 = 0x06
    static let completeUUIDs: UInt8 = 0x07
    static let shortenedName: UInt8 = 0x08
    static let completeName: UInt8 = 0x09
    static let serviceData: UInt8 = 0x21
  }

  /// Reads a row of structures: a length, a type, and one byte less than the length.
  ///
  /// A length of 0 ends it early, and what follows is zeros. nil for anything else.
  init?(_ bytes: ArraySlice<UInt8>) {
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

  /// Takes one structure; false where it is malformed.
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
      // What else may come to stand beside our UUID is not a PSM.
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

  /// Adds what another report of the same device says, but for the PSM, which there may be several of.
  mutating func merge(_ other: AdvertisingData) {
    if let name = other.name, self.name == nil || other.hasWholeName { self.name = name }
    hasWholeName = hasWholeName || other.hasWholeName
    namesService = namesService || other.namesService
    namesAllServices = namesAllServices || other.namesAllServices
  }
}

extension AdvertisingData {
  /// What a Holdfast device advertises: all its UUIDs, which are one. The kernel puts the flags before it.
  static let advertisement: [UInt8] = structure(Structure.completeUUIDs, HoldfastService.uuid.reversed())

  /// What it answers to whoever asks for more: its PSM, and as much of its name as fits into 31 bytes.
  static func scanResponse(psm: UInt8, name: String) -> [UInt8] {
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
  /// The first characters that have at most `byteCount` bytes together.
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
