import CBlueZ
import Glibc

/// Asks a peer by SDP where its Holdfast devices listen. It takes no privilege and no daemon on this host.
///
/// Not by libbluetooth, whose client reads for as long as a server goes on to send, keeps all of it, and calls itself once
/// for each level of nesting: the server is anybody in range.
public enum ServiceDiscovery {
  /// Source: Bluetooth SIG, Assigned Numbers.
  private static let serverPSM: UInt16 = 0x0001
  /// The most bytes of a peer's answer that are kept: some thirty records.
  static let maximumAnswerByteCount = 4096
  /// The most parts that an answer may come in.
  static let maximumPartCount = 32

  /// Asks `peer`.
  ///
  /// - Parameters:
  ///   - peer: its address of classic Bluetooth.
  ///   - adapter: the local adapter to use; nil leaves the choice to the system.
  ///   - deadline: until when everything may take.
  /// - Returns: their ports, in the peer's order, each of L2CAP or RFCOMM with its number; none where it has no Holdfast device.
  /// - Throws: ``TransportError/unreachable``, ``TransportError/refused`` (it has no SDP server),
  ///   ``TransportError/timedOutWaiting``, ``TransportError/tooLong`` or ``TransportError/truncated`` for an answer that is
  ///   too long or malformed, ``TransportError/closed``, ``TransportError/linkLost``, ``TransportError/noAdapter``,
  ///   ``TransportError/adapterDown``, ``TransportError/unsupported``.
  public static func query(
    _ peer: BluetoothAddress, adapter: UInt16?, by deadline: Deadline
  ) throws(TransportError) -> [BluetoothPort] {
    let port = BluetoothPort.l2cap(psm: serverPSM)
    let file = try OpenFile.bluetoothSocket(port)
    try file.bind(to: try LocalAdapter.bindingAddress(adapter: adapter, address: .any), port.local)
    try file.connect(to: peer, port, by: deadline)
    return try exchange(over: file, by: deadline)
  }

  /// Asks over `file`, a connection of packets to an SDP server.
  static func exchange(over file: OpenFile, by deadline: Deadline) throws(TransportError) -> [BluetoothPort] {
    var answer: [UInt8] = []
    var continuation: [UInt8] = []
    for part in 0..<UInt16(maximumPartCount) {
      try send(request(transaction: part, continuation: continuation), over: file)
      let packet = try receive(from: file, by: deadline)
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

  /// A ServiceSearchAttributeRequest for our records' classes and protocols.
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
    // Some fifty bytes, and never a second request before an answer: they fit into any buffer.
    while unsafe Glibc.send(file.descriptor, bytes, bytes.count, CInt(MSG_NOSIGNAL)) < 0 {
      guard errno == EINTR else { throw TransportError(errno: errno) }
    }
  }

  private static func receive(from file: OpenFile, by deadline: Deadline) throws(TransportError) -> ArraySlice<UInt8> {
    var buffer = [UInt8](repeating: 0, count: SearchResponse.maximumByteCount)
    while try file.wait(for: POLLIN, until: deadline, unless: nil) == .ready {
      let count = unsafe recv(file.descriptor, &buffer, buffer.count, CInt(MSG_DONTWAIT) | CInt(MSG_TRUNC))
      guard count <= buffer.count else { throw .tooLong }
      if count > 0 { return buffer[..<count] }
      if count == 0 { throw .closed }
      guard errno == EINTR || errno == EAGAIN else { throw TransportError(errno: errno) }
    }
    throw .timedOutWaiting
  }
}

/// A ServiceSearchAttributeResponse: one part of the attribute lists, and what to ask for the next one with.
///
/// Source: Bluetooth Core 5.4, volume 3 part B, section 4.7.2.
struct SearchResponse {
  let part: ArraySlice<UInt8>
  /// 1 to 16 bytes; none after the last part.
  let continuation: ArraySlice<UInt8>

  static let maximumByteCount = 5 + 2 + ServiceDiscovery.maximumAnswerByteCount + 17

  /// nil for anything else, and for an answer to another request.
  init?(_ packet: ArraySlice<UInt8>, transaction: UInt16) {
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
