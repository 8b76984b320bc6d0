import Glibc
import HoldfastLinux
import Testing

import HoldfastTransport

struct ServiceDiscoveryTests {
  /// A list of records as an SDP server sends it.
  private static func lists(_ records: [UInt8]...) -> [UInt8] {
    let bytes = Array(records.joined())
    return [0x36, UInt8(bytes.count >> 8), UInt8(truncatingIfNeeded: bytes.count)] + bytes
  }

  private static func part(
    _ part: some Collection<UInt8>, transaction: UInt16 = 0, continuation: [UInt8] = []
  ) -> [UInt8] {
    var parameters: [UInt8] = []
    parameters.append(bigEndian: UInt16(part.count))
    parameters += Array(part) + [UInt8(continuation.count)] + continuation
    var packet: [UInt8] = [0x07]
    packet.append(bigEndian: transaction)
    packet.append(bigEndian: UInt16(parameters.count))
    return packet + parameters
  }

  /// Asks a server that answers with `packets`, one for each request; also what it was asked.
  private static func ask(_ packets: [[UInt8]]) throws -> (ports: [BluetoothPort], requests: [[UInt8]]) {
    let (client, server) = try OpenFile.socketPair(framing: .packets)
    let requests = try Worker {
      var requests: [[UInt8]] = []
      for packet in packets {
        var buffer = [UInt8](repeating: 0, count: 128)
        guard
          try server.wait(for: POLLIN, until: Deadline(afterMilliseconds: generousMilliseconds), unless: nil) == .ready
        else { break }
        let count = unsafe read(server.descriptor, &buffer, buffer.count)
        guard count > 0 else { break }
        requests.append(Array(buffer[..<count]))
        _ = unsafe write(server.descriptor, packet, packet.count)
      }
      return requests
    }
    let outcome = Result {
      try ServiceDiscovery.exchange(over: client, by: Deadline(afterMilliseconds: generousMilliseconds))
    }
    _ = shutdown(client.descriptor, CInt(SHUT_RDWR))
    return (try outcome.get(), try requests.value())
  }

  @Test(
    arguments: [.l2cap(psm: 0x1001), .l2cap(psm: 0xfeff), .rfcomm(channel: 1), .rfcomm(channel: 30)] as [BluetoothPort])
  func `what a device registers is what a prover reads`(port: BluetoothPort) throws {
    let record = ServiceRecord.bytes(port, name: "lock at the gate")
    #expect(try Self.ask([Self.part(Self.lists(record))]).ports == [port])
  }

  @Test func `a record has the bytes of the protocol's document`() {
    let head: [UInt8] = [0x09, 0x00, 0x01, 0x35, 0x11, 0x1c] + HoldfastService.uuid
    let l2cap: [UInt8] = [0x09, 0x00, 0x04, 0x35, 0x08, 0x35, 0x06, 0x19, 0x01, 0x00, 0x09, 0x10, 0x01]
    let rfcomm: [UInt8] = [
      0x09, 0x00, 0x04, 0x35, 0x0c, 0x35, 0x03, 0x19, 0x01, 0x00, 0x35, 0x05, 0x19, 0x00, 0x03, 0x08, 0x05,
    ]
    let tail: [UInt8] =
      [
        0x09, 0x00, 0x05, 0x35, 0x03, 0x19, 0x10, 0x02, 0x09, 0x00, 0x06, 0x35, 0x09, 0x09, 0x65, 0x6e, 0x09, 0x00,
        0x6a,
        0x09, 0x01, 0x00, 0x09, 0x00, 0x09, 0x35, 0x16, 0x35, 0x14, 0x1c,
      ] + HoldfastService.uuid + [0x09, 0x01, 0x00, 0x09, 0x01, 0x00, 0x25, 0x01, 0x41]
    for (port, middle) in [(BluetoothPort.l2cap(psm: 0x1001), l2cap), (.rfcomm(channel: 5), rfcomm)] {
      let body = head + middle + tail
      #expect(ServiceRecord.bytes(port, name: "A") == [0x35, UInt8(body.count)] + body)
    }
  }

  @Test func `a request has the bytes of the specification`() throws {
    let requests = try Self.ask([Self.part([0x35, 0x00])]).requests
    #expect(
      requests == [
        [0x06, 0, 0, 0, 0x1e, 0x35, 0x11, 0x1c] + HoldfastService.uuid
          + [0x10, 0x00, 0x35, 0x06, 0x09, 0x00, 0x01, 0x09, 0x00, 0x04, 0x00]
      ])
  }

  @Test func `an answer in parts is put together`() throws {
    let answer = Self.lists(
      ServiceRecord.bytes(.l2cap(psm: 0x1001), name: "a"), ServiceRecord.bytes(.rfcomm(channel: 5), name: "b"),
      ServiceRecord.bytes(.l2cap(psm: 0x1001), name: "the same again"))
    let (ports, requests) = try Self.ask([
      Self.part(answer.prefix(10), continuation: [1, 2]),
      Self.part(answer.dropFirst(10).prefix(1), transaction: 1, continuation: [UInt8](repeating: 3, count: 16)),
      Self.part(answer.dropFirst(11), transaction: 2),
    ])
    #expect(ports == [.l2cap(psm: 0x1001), .rfcomm(channel: 5)])
    #expect(requests.map { $0.suffix(3) } == [[0, 0x04, 0], [2, 1, 2], [3, 3, 3]])
  }

  @Test func `a server that never comes to an end is left`() throws {
    let endless = (0..<100).map { Self.part([0x35], transaction: $0, continuation: [1]) }
    #expect(throws: TransportError.tooLong) { try Self.ask(endless) }
    let long = [UInt8](repeating: 0, count: 2049)
    let tooMuch = (0..<2).map { Self.part(long, transaction: $0, continuation: [1]) }
    #expect(throws: TransportError.tooLong) { try Self.ask(tooMuch) }
  }

  @Test func `a packet that is longer than asked for is refused`() throws {
    #expect(throws: TransportError.tooLong) { try Self.ask([[UInt8](repeating: 7, count: 5000)]) }
  }

  @Test func `a silent server holds nobody longer than the deadline`() throws {
    let (client, server) = try OpenFile.socketPair(framing: .packets)
    #expect(throws: TransportError.timedOutWaiting) {
      try ServiceDiscovery.exchange(over: client, by: Deadline(afterMilliseconds: 1))
    }
    withExtendedLifetime(server) {}
  }

  @Test(
    arguments: [
      [], [0x07], [0x07, 0, 0, 0, 0], [0x01, 0, 0, 0, 2, 0, 3], [0x07, 0, 0, 0, 5, 0, 2, 0x35, 0],
      [0x07, 0, 0, 0, 6, 0, 2, 0x35, 0, 0, 0], [0x07, 0, 1, 0, 5, 0, 2, 0x35, 0, 0], [0x07, 0, 0, 0, 3, 0, 0, 0],
      [0x07, 0, 0, 0, 5, 0, 3, 0x35, 0, 0], [0x07, 0, 0, 0, 22, 0, 2, 0x35, 0, 17] + [UInt8](repeating: 1, count: 17),
    ] as [[UInt8]])
  func `what is no answer to the request is malformed`(packet: [UInt8]) {
    #expect(SearchResponse(packet[...], transaction: 0) == nil)
  }

  @Test(
    arguments: [
      [], [0x35], [0x35, 1], [0x35, 0, 0], [0x36, 0], [0x37, 0, 0, 0], [0x37, 0xff, 0xff, 0xff, 0xff], [0x35, 1, 0x35],
      [0x35, 3, 0x35, 2, 0x09], [0x35, 5, 0x35, 3, 0x09, 0, 1], [0x25, 1, 0x35], [0x35, 2, 0x08, 1],
    ] as [[UInt8]])
  func `lists whose lengths do not fit are malformed`(bytes: [UInt8]) {
    #expect(BluetoothPort.listed(in: bytes[...]) == nil)
  }

  @Test func `ten thousand levels of nesting are passed over`() {
    var value: [UInt8] = []
    for _ in 0..<10_000 {
      var outer: [UInt8] = [0x37]
      outer.append(bigEndian: UInt32(value.count))
      value = outer + value
      if value.count > 60_000 { break }
    }
    var attributes: [UInt8] = [0x09, 0x00, 0x04] + value
    attributes =
      [0x37] + [0, 0, UInt8(attributes.count >> 8), UInt8(truncatingIfNeeded: attributes.count)] + attributes
    #expect(BluetoothPort.listed(in: Self.lists(attributes)[...]) == [])
  }

  @Test(
    arguments: [
      .l2cap(psm: 0x1000), .l2cap(psm: 0x1101), .l2cap(psm: 0x0fff), .l2cap(psm: 0x0001), .l2cap(psm: nil),
      .rfcomm(channel: 0), .rfcomm(channel: 31), .rfcomm(channel: nil),
    ] as [BluetoothPort])
  func `a port that cannot be is passed over`(port: BluetoothPort) {
    let good = ServiceRecord.bytes(.rfcomm(channel: 5), name: "b")
    let lists = Self.lists(ServiceRecord.bytes(port, name: "a"), good)
    #expect(BluetoothPort.listed(in: lists[...]) == [.rfcomm(channel: 5)])
  }

  @Test func `a record of another service is passed over`() {
    var record = ServiceRecord.bytes(.rfcomm(channel: 5), name: "b")
    record[8] ^= 1
    #expect(BluetoothPort.listed(in: Self.lists(record)[...]) == [])
  }

  @Test(arguments: [
    [0x01, 0x00], [0, 0, 0x01, 0x00], [0, 0, 0x01, 0, 0, 0, 0x10, 0, 0x80, 0, 0, 0x80, 0x5f, 0x9b, 0x34, 0xfb],
  ])
  func `a UUID of a standard is known in each width`(bytes: [UInt8]) {
    #expect(DataElement(kind: .uuid, value: bytes[...]).isUUID(0x0100))
    #expect(!DataElement(kind: .uuid, value: bytes[...]).isUUID(0x0003))
    #expect(!DataElement(kind: .text, value: bytes[...]).isUUID(0x0100))
  }
}
