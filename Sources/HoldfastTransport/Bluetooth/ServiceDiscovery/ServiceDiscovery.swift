import CBlueZ
import Glibc
import HoldfastLinux

/// A client of the Service Discovery Protocol (SDP) that asks a peer for the ports of its Holdfast devices.
///
/// It needs no privilege and no daemon on this host. It does not use libbluetooth, whose client reads and keeps as much as a
/// server sends, and recurses once for each level of nesting: any peer in range can be the server.
package enum ServiceDiscovery {
  /// The PSM of an SDP server. Source: Bluetooth SIG, Assigned Numbers.
  private static let serverPSM: UInt16 = 0x0001
  /// The maximum byte count of a peer's answer, enough for about thirty records.
  static let maximumAnswerByteCount = 4096
  /// The maximum number of parts of an answer.
  static let maximumPartCount = 32

  /// Asks `peer` for the ports of its Holdfast devices.
  ///
  /// - Parameters:
  ///   - peer: its address of classic Bluetooth.
  ///   - adapter: the number of the local adapter; nil lets the system choose.
  ///   - deadline: the time by which the whole query must be complete.
  ///   - wakeUp: ends the query when it is raised; nil for nothing.
  /// - Returns: the ports in the peer's order, each of L2CAP or RFCOMM with its number; none if the peer has no Holdfast device.
  /// - Throws: ``TransportError/unreachable``, ``TransportError/refused`` (the peer has no SDP server),
  ///   ``TransportError/timedOutWaiting``, ``TransportError/tooLong`` or ``TransportError/truncated`` for an answer that is
  ///   too long or malformed, ``TransportError/cancelled``, ``TransportError/closed``, ``TransportError/linkLost``, ``TransportError/noAdapter``,
  ///   ``TransportError/adapterDown``, ``TransportError/unsupported``.
  package static func query(
    _ peer: BluetoothAddress, adapter: UInt16?, by deadline: Deadline, unless wakeUp: WakeUp? = nil
  ) throws(TransportError) -> [BluetoothPort] {
    let port = BluetoothPort.l2cap(psm: serverPSM)
    // This channel needs no security: a refusal is final.
    let file = try OpenFile.retrying(over: port.scheme.radio, by: deadline, refusalLimit: 1, unless: wakeUp) {
      _ throws(TransportError) in
      let file = try OpenFile.bluetoothSocket(port)
      try file.bind(to: try LocalAdapter.bindingAddress(adapter: adapter, address: .any), port.local)
      try file.connect(to: peer, port, by: deadline, unless: wakeUp)
      return file
    }
    return try exchange(over: file, by: deadline, unless: wakeUp)
  }

  /// Sends the requests over `file`, a packet connection to an SDP server, and returns the ports in its answer.
  package static func exchange(
    over file: OpenFile, by deadline: Deadline, unless wakeUp: WakeUp? = nil
  ) throws(TransportError) -> [BluetoothPort] {
    var answer: [UInt8] = []
    var continuation: [UInt8] = []
    for part in 0..<UInt16(maximumPartCount) {
      try send(request(transaction: part, continuation: continuation), over: file)
      let packet = try receive(from: file, by: deadline, unless: wakeUp)
      guard let response = SearchResponse(packet, transaction: part) else { throw .truncated }
      answer += response.part
      guard answer.count <= maximumAnswerByteCount else { throw .tooLong }
      continuation = Array(response.continuation)
      if continuation.isEmpty {
        guard let ports = BluetoothPort.listed(in: answer[...]) else { throw .truncated }
        return ports
      }
    }
    throw .tooLong
  }

  /// Returns a ServiceSearchAttributeRequest for the service classes and protocols of Holdfast records.
  ///
  /// Source: Bluetooth Core 5.4, volume 3 part B, section 4.7.1.
  static func request(transaction: UInt16, continuation: [UInt8]) -> [UInt8] {
    var parameters: [UInt8] = []
    parameters.append { $0.append(elementUUID: HoldfastService.uuid) }
    parameters.append(bigEndian: UInt16(maximumAnswerByteCount))
    parameters.append { attributes in
      attributes.append(element: ServiceRecord.Attribute.serviceClasses)
      attributes.append(element: ServiceRecord.Attribute.protocols)
    }
    parameters += [UInt8(continuation.count)] + continuation
    var bytes: [UInt8] = [0x06]
    bytes.append(bigEndian: transaction)
    bytes.append(bigEndian: UInt16(parameters.count))
    return bytes + parameters
  }

  private static func send(_ bytes: [UInt8], over file: OpenFile) throws(TransportError) {
    // A request has about fifty bytes, and none is sent before the previous answer: it always fits into the buffer.
    while unsafe Glibc.send(file.descriptor, bytes, bytes.count, CInt(MSG_NOSIGNAL)) < 0 {
      guard errno == EINTR else { throw TransportError(errno: errno) }
    }
  }

  private static func receive(
    from file: OpenFile, by deadline: Deadline, unless wakeUp: WakeUp?
  ) throws(TransportError) -> ArraySlice<UInt8> {
    var buffer = [UInt8](repeating: 0, count: SearchResponse.maximumByteCount)
    var waits = RepeatedWait(on: file)
    while true {
      try waits.begin()
      switch try file.wait(for: POLLIN, until: deadline, unless: wakeUp) {
      case .ready: break
      case .timedOut: throw .timedOutWaiting
      case .interrupted: throw .cancelled
      }
      let count = unsafe recv(file.descriptor, &buffer, buffer.count, CInt(MSG_DONTWAIT) | CInt(MSG_TRUNC))
      guard count <= buffer.count else { throw .tooLong }
      if count > 0 { return buffer[..<count] }
      if count == 0 { throw .closed }
      guard errno == EINTR || errno == EAGAIN else { throw TransportError(errno: errno) }
    }
  }
}

/// A ServiceSearchAttributeResponse: one part of the attribute lists, and the continuation state for requesting the next part.
///
/// Source: Bluetooth Core 5.4, volume 3 part B, section 4.7.2.
package struct SearchResponse {
  let part: ArraySlice<UInt8>
  /// The continuation state of 1 to 16 bytes; empty after the last part.
  let continuation: ArraySlice<UInt8>

  static let maximumByteCount = 5 + 2 + ServiceDiscovery.maximumAnswerByteCount + 17

  /// Reads a response; returns nil if the packet is malformed or answers another request.
  package init?(_ packet: ArraySlice<UInt8>, transaction: UInt16) {
    var reader = ByteReader(packet)
    guard reader.bigEndian(UInt8.self) == 0x07, reader.bigEndian(UInt16.self) == transaction,
      let count = reader.bigEndian(UInt16.self), reader.rest.count == Int(count),
      let partCount = reader.bigEndian(UInt16.self), let part = reader.bytes(Int(partCount)),
      let continuationCount = reader.bigEndian(UInt8.self), continuationCount <= 16,
      reader.rest.count == Int(continuationCount), partCount > 0
    else { return nil }
    self.part = part
    continuation = reader.rest
  }
}

/// One value of the Service Discovery Protocol, whose content is not decoded yet.
///
/// Source: Bluetooth Core 5.4, volume 3 part B, section 3: a type of five bits and a size of three, then a length for some
/// sizes, then the value; everything big-endian. An element is skipped by its length, so the depth to which a peer nests
/// elements causes no recursion here.
package struct DataElement {
  /// A type of value. The raw value is the type descriptor.
  package enum Kind: UInt8 {
    case unsigned = 1
    case uuid = 3
    case text = 4
    case sequence = 6
  }

  /// The type of the value; nil for a type that is not used here.
  package let kind: Kind?
  package let value: ArraySlice<UInt8>

  package init(kind: Kind?, value: ArraySlice<UInt8>) {
    (self.kind, self.value) = (kind, value)
  }

  /// The elements of a sequence; nil if this is not a sequence, or its elements are malformed.
  package var elements: [DataElement]? {
    guard kind == .sequence else { return nil }
    var reader = ByteReader(value)
    var elements: [DataElement] = []
    while !reader.rest.isEmpty {
      guard let element = reader.dataElement() else { return nil }
      elements.append(element)
    }
    return elements
  }

  /// Returns the value of an unsigned integer that has exactly this width; nil otherwise.
  package func unsigned<Number: FixedWidthInteger & UnsignedInteger>(_: Number.Type = Number.self) -> Number? {
    guard kind == .unsigned, value.count == Number.bitWidth / 8 else { return nil }
    var reader = ByteReader(value)
    return reader.bigEndian()
  }

  /// Returns whether this is the UUID that the Bluetooth base UUID assigns to `short`, in any of the three widths.
  package func isUUID(_ short: UInt16) -> Bool {
    let base: [UInt8] = [0, 0, 0x10, 0, 0x80, 0, 0, 0x80, 0x5f, 0x9b, 0x34, 0xfb]
    let bytes = [UInt8(short >> 8), UInt8(truncatingIfNeeded: short)]
    return kind == .uuid && [bytes, [0, 0] + bytes, [0, 0] + bytes + base].contains { value.elementsEqual($0) }
  }

  /// Whether this is the Holdfast service UUID.
  package var isHoldfastUUID: Bool {
    kind == .uuid && value.elementsEqual(HoldfastService.uuid)
  }
}

extension ByteReader {
  /// Reads the next data element; returns nil if it is malformed or extends beyond the end.
  package mutating func dataElement() -> DataElement? {
    guard let header = littleEndian(UInt8.self), let count = valueByteCount(header: header), let value = bytes(count)
    else { return nil }
    return DataElement(kind: DataElement.Kind(rawValue: header >> 3), value: value)
  }

  private mutating func valueByteCount(header: UInt8) -> Int? {
    switch header & 7 {
    case 0: header >> 3 == 0 ? 0 : 1
    case let size where size <= 4: 1 << Int(size)
    case 5: bigEndian(UInt8.self).map(Int.init)
    case 6: bigEndian(UInt16.self).map(Int.init)
    default: bigEndian(UInt32.self).map(Int.init)
    }
  }
}

extension [UInt8] {
  /// Appends an unsigned integer. Source: as for ``DataElement``.
  package mutating func append(element number: some FixedWidthInteger & UnsignedInteger) {
    append(DataElement.Kind.unsigned.rawValue << 3 | UInt8((number.bitWidth / 8).trailingZeroBitCount))
    append(bigEndian: number)
  }

  /// Appends a UUID of two or sixteen bytes.
  package mutating func append(elementUUID uuid: [UInt8]) {
    append(DataElement.Kind.uuid.rawValue << 3 | UInt8(uuid.count.trailingZeroBitCount))
    self += uuid
  }

  /// Appends a sequence, or a text, of at most 255 bytes.
  package mutating func append(element kind: DataElement.Kind, _ value: [UInt8]) {
    self += [kind.rawValue << 3 | 5, UInt8(value.count)] + value
  }

  /// Appends a sequence of the elements that `body` appends.
  package mutating func append(_ body: (inout [UInt8]) -> Void) {
    var value: [UInt8] = []
    body(&value)
    append(element: .sequence, value)
  }
}
