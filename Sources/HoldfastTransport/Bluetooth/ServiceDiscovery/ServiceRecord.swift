import CBlueZ
import Glibc

/// An SDP record of this host that tells peers where its Holdfast device listens, while this object exists.
///
/// bluetoothd stores the record if it was started with `--compat`. It discards the record when the connection ends, also if this
/// process is killed.
@safe package final class ServiceRecord: @unchecked Sendable {
  private let session: UnsafeMutablePointer<sdp_session_t>

  /// Registers a record.
  ///
  /// - Parameters:
  ///   - port: the port at which the device listens: L2CAP or RFCOMM, with its number.
  ///   - name: the device's name for people; 64 bytes of it are kept.
  /// - Throws: ``BluetoothError/noServer`` if no SDP server accepts records, ``BluetoothError/permissionDenied`` if this user may
  ///   not use its socket, ``BluetoothError/other(errno:)`` if it refuses the record.
  package init(_ port: BluetoothPort, name: String) throws(BluetoothError) {
    var any = bdaddr_t()
    var local = bdaddr_t(b: (0, 0, 0, 0xff, 0xff, 0xff))
    guard let session = unsafe sdp_connect(&any, &local, 0) else { throw ServiceRecord.connectionError(errno) }
    var record = ServiceRecord.bytes(port, name: name)
    var handle: UInt32 = 0
    let result = unsafe sdp_device_record_register_binary(session, &any, &record, UInt32(record.count), 0, &handle)
    guard result == 0 else {
      let code = errno
      unsafe sdp_close(session)
      throw .other(errno: code)
    }
    unsafe self.session = session
  }

  deinit {
    unsafe sdp_close(session)
  }

  private static func connectionError(_ code: CInt) -> BluetoothError {
    switch code {
    case ENOENT, ECONNREFUSED: .noServer
    case EACCES, EPERM: .permissionDenied
    default: .other(errno: code)
    }
  }
}

extension ServiceRecord {
  /// The socket at which the SDP server of this host accepts records. Source: libbluetooth's SDP_UNIX_PATH.
  static let serverPath = "/var/run/sdp"
  static let maximumNameByteCount = 64

  /// The ids of a record's attributes. Source: Bluetooth Core 5.4, volume 3 part B, section 5.1.
  enum Attribute {
    static let serviceClasses: UInt16 = 0x0001
    static let protocols: UInt16 = 0x0004
    static let browseGroups: UInt16 = 0x0005
    static let languages: UInt16 = 0x0006
    static let profiles: UInt16 = 0x0009
    static let name: UInt16 = 0x0100
  }

  /// The UUIDs of 16 bits. Source: Bluetooth SIG, Assigned Numbers.
  enum ShortUUID {
    package static let rfcomm: UInt16 = 0x0003
    package static let l2cap: UInt16 = 0x0100
    static let publicBrowseGroup: UInt16 = 0x1002
  }

  /// Returns the record: one sequence of attribute ids and values, in the order of the ids.
  package static func bytes(_ port: BluetoothPort, name: String) -> [UInt8] {
    var record: [UInt8] = []
    record.append { record in
      record.append(element: Attribute.serviceClasses)
      record.append { $0.append(elementUUID: HoldfastService.uuid) }
      record.append(element: Attribute.protocols)
      record.append { $0.append(protocolsOf: port) }
      record.append(element: Attribute.browseGroups)
      record.append { $0.append(shortUUID: ShortUUID.publicBrowseGroup) }
      record.append(element: Attribute.languages)
      // English in UTF-8, whose attributes begin at 0x0100. Source: ISO 639, IANA character set 106.
      record.append { languages in for number: UInt16 in [0x656e, 106, 0x0100] { languages.append(element: number) } }
      record.append(element: Attribute.profiles)
      record.append { profiles in
        profiles.append { profile in
          profile.append(elementUUID: HoldfastService.uuid)
          profile.append(element: UInt16(0x0100))
        }
      }
      record.append(element: Attribute.name)
      record.append(element: .text, name.utf8Prefix(byteCount: maximumNameByteCount))
    }
    return record
  }
}

extension [UInt8] {
  fileprivate mutating func append(shortUUID uuid: UInt16) {
    append(elementUUID: [UInt8(uuid >> 8), UInt8(truncatingIfNeeded: uuid)])
  }

  fileprivate mutating func append(protocolsOf port: BluetoothPort) {
    append { l2cap in
      l2cap.append(shortUUID: ServiceRecord.ShortUUID.l2cap)
      if case .l2cap(let psm?) = port { l2cap.append(element: psm) }
    }
    guard case .rfcomm(let channel?) = port else { return }
    append { rfcomm in
      rfcomm.append(shortUUID: ServiceRecord.ShortUUID.rfcomm)
      rfcomm.append(element: channel)
    }
  }
}

extension BluetoothPort {
  /// Returns the ports of the Holdfast records in an SDP server's answer, in its order. In each record, attribute ids and values
  /// alternate.
  ///
  /// A record of another service, or with an impossible port, is skipped. Returns nil if the bytes are malformed.
  package static func listed(in attributeLists: ArraySlice<UInt8>) -> [BluetoothPort]? {
    var reader = ByteReader(attributeLists)
    guard let records = reader.dataElement()?.elements, reader.rest.isEmpty else { return nil }
    var ports: [BluetoothPort] = []
    for record in records {
      guard let attributes = record.elements, attributes.count.isMultiple(of: 2) else { return nil }
      if let port = BluetoothPort(attributes), !ports.contains(port) { ports.append(port) }
    }
    return ports
  }

  private init?(_ attributes: [DataElement]) {
    var isOurs = false
    var port: BluetoothPort?
    for index in stride(from: 0, to: attributes.count, by: 2) {
      let value = attributes[index + 1]
      switch attributes[index].unsigned(UInt16.self) {
      case ServiceRecord.Attribute.serviceClasses: isOurs = value.elements?.contains(where: \.isHoldfastUUID) ?? false
      case ServiceRecord.Attribute.protocols: port = BluetoothPort(protocols: value)
      default: break
      }
    }
    guard isOurs, let port else { return nil }
    self = port
  }

  /// Reads the port from a list of protocols, the lowest first: L2CAP with a PSM, or L2CAP and RFCOMM with a channel.
  private init?(protocols list: DataElement) {
    let protocols = (list.elements ?? []).map { $0.elements ?? [] }
    guard let lowest = protocols.first, lowest.first?.isUUID(ServiceRecord.ShortUUID.l2cap) == true else { return nil }
    switch protocols.count {
    case 1:
      guard lowest.count == 2, let psm = lowest[1].unsigned(UInt16.self), BluetoothPort.isDynamic(psm: psm)
      else { return nil }
      self = .l2cap(psm: psm)
    case 2:
      let upper = protocols[1]
      guard upper.count == 2, upper[0].isUUID(ServiceRecord.ShortUUID.rfcomm),
        let channel = upper[1].unsigned(UInt8.self), BluetoothPort.isServer(channel: UInt16(channel))
      else { return nil }
      self = .rfcomm(channel: channel)
    default: return nil
    }
  }
}
