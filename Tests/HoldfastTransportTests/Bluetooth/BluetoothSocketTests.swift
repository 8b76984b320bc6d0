import CBlueZ
import Glibc
import HoldfastLinux
import Testing

import HoldfastTransport

/// Sockets that carry messages over the air are tested in Tests/BluetoothLab, in a kernel that has Bluetooth.
struct BluetoothSocketTests {
  private static let kernelHasBluetooth = {
    let descriptor = socket(AF_BLUETOOTH, CInt(SOCK_SEQPACKET.rawValue), BTPROTO_L2CAP)
    if descriptor >= 0 { close(descriptor) }
    return descriptor >= 0 || errno != EAFNOSUPPORT
  }()

  private static let endpoints = [
    "l2cap:00:1A:7D:DA:71:13,psm=0x1001", "rfcomm:00:1A:7D:DA:71:13,channel=1", "le:00:1A:7D:DA:71:13,psm=0x80",
  ]

  @Test(.disabled(if: kernelHasBluetooth, "this kernel has Bluetooth"), arguments: endpoints, [1, 1000, .max])
  func `a kernel without Bluetooth says so, whatever time it has`(text: String, milliseconds: Int) throws {
    let endpoint = try Endpoint(parsing: text)
    #expect(throws: TransportError.unsupported) {
      try Connection.connect(to: endpoint, timeoutMilliseconds: milliseconds)
    }
    #expect(throws: TransportError.unsupported) { try Listener(endpoint) }
  }

  /// In a kernel without Bluetooth, a socket that is opened ends with another error.
  @Test(arguments: endpoints + ["l2cap:00:1A:7D:DA:71:13", "rfcomm:00:1A:7D:DA:71:13"], [0, -1, Int.min])
  func `without time, no connection over the air is tried`(text: String, milliseconds: Int) throws {
    let endpoint = try Endpoint(parsing: text)
    #expect(throws: TransportError.timedOutWaiting) {
      try Connection.connect(to: endpoint, timeoutMilliseconds: milliseconds, silenceMilliseconds: milliseconds)
    }
  }

  @Test(.disabled(if: kernelHasBluetooth, "this kernel has Bluetooth"), arguments: endpoints, [0, -1, Int.min, .max])
  func `any backlog and silence are allowed at a Bluetooth endpoint`(text: String, number: Int) throws {
    let endpoint = try Endpoint(parsing: text)
    #expect(throws: TransportError.unsupported) {
      try Listener(endpoint, backlog: number, silenceMilliseconds: number)
    }
  }

  /// The ends of a connection within this process, instead of one over the air.
  private func pair(_ text: String) throws -> (Connection, Connection) {
    let endpoint = try Endpoint(parsing: text)
    guard case .bluetooth(_, let port) = endpoint.address else { throw EndpointError.transport }
    let (left, right) = try OpenFile.socketPair(framing: endpoint.scheme.framing)
    return (
      Connection(file: left, scheme: endpoint.scheme, port: port),
      Connection(file: right, scheme: endpoint.scheme, port: port)
    )
  }

  @Test(arguments: endpoints, [0, -1, Int.min])
  func `a connection without time waits for nothing`(text: String, milliseconds: Int) throws {
    let (left, right) = try pair(text)
    right.linger(milliseconds: milliseconds)
    #expect(!right.isEnded(withinMilliseconds: milliseconds))
    let deadline = Deadline(afterMilliseconds: milliseconds)
    #expect(throws: TransportError.timedOutWaiting) { try right.receive(by: deadline, wholeWithin: milliseconds) }
    try left.send([1].span, by: deadline)
    #expect(try right.receive(by: deadline, wholeWithin: milliseconds).bytes == [1])
  }

  @Test(arguments: endpoints) func `a connection with all the time waits until its peer ends it`(text: String) throws {
    let (left, right) = try pair(text)
    let ending = try Worker { () -> Bool in
      right.linger(milliseconds: .max)
      return right.isEnded(withinMilliseconds: 0) && right.isEnded(withinMilliseconds: .max)
    }
    try ending.waitUntilBlocked()
    left.shutdown()
    #expect(try ending.value())
    #expect(throws: TransportError.closed) {
      try right.receive(by: Deadline(afterMilliseconds: .max), wholeWithin: .max)
    }
  }

  @Test func `the kernel takes the least significant octet of an address first`() throws {
    let address = try BluetoothAddress(parsing: "00:1A:7D:DA:71:13")
    let octets = bdaddr_t(address)
    #expect(octets.b.0 == 0x13 && octets.b.1 == 0x71 && octets.b.5 == 0x00)
    #expect(BluetoothAddress(octets) == address)
  }

  @Test func `a name for the kernel has family, port, address and the kind of address`() throws {
    let address = try BluetoothAddress(parsing: "C0:1A:7D:DA:71:13")
    func bytes(_ port: BluetoothPort) -> [UInt8] {
      var bytes: [UInt8] = []
      let code = unsafe BluetoothSocketName(address, port).pass(
        to: { _, name, count in
          bytes = unsafe Array(UnsafeRawBufferPointer(start: name, count: Int(count)))
          return 0
        }, of: OpenFile(taking: -1))
      #expect(code == 0)
      return bytes
    }
    let octets: [UInt8] = [0x13, 0x71, 0xda, 0x7d, 0x1a, 0xc0]
    #expect(bytes(.l2cap(psm: 0x1001)) == [31, 0, 0x01, 0x10] + octets + [0, 0, 0, 0])
    #expect(bytes(.l2cap(psm: nil)) == [31, 0, 0, 0] + octets + [0, 0, 0, 0])
    #expect(bytes(.lowEnergy(psm: 0x80, .public)) == [31, 0, 0x80, 0] + octets + [0, 0, 1, 0])
    #expect(bytes(.lowEnergy(psm: 0x80, .random)) == [31, 0, 0x80, 0] + octets + [0, 0, 2, 0])
    #expect(bytes(.rfcomm(channel: 5)) == [31, 0] + octets + [5, 0])
  }

  @Test(
    arguments: [
      (EHOSTUNREACH, .noAdapter), (EADDRNOTAVAIL, .noAdapter), (ENETDOWN, .adapterDown), (ERFKILL, .adapterBlocked),
      (EHOSTDOWN, .unreachable), (ETIMEDOUT, .unreachable), (ECONNRESET, .unreachable), (EACCES, .notSecured),
      (EKEYREJECTED, .notSecured), (ECONNREFUSED, .refused), (EBUSY, .addressInUse),
      (EAFNOSUPPORT, .unsupported), (EPROTONOSUPPORT, .unsupported), (ENOMEM, .other(errno: ENOMEM)),
    ] as [(CInt, TransportError)])
  func `what the kernel says of a connection in the making`(code: CInt, expected: TransportError) {
    #expect(TransportError(connecting: code) == expected)
  }

  @Test(
    arguments: [
      (ETIMEDOUT, .linkLost), (ECONNABORTED, .linkLost), (ECONNRESET, .closed), (EACCES, .permissionDenied),
      (EMSGSIZE, .overPeerLimit),
    ] as [(CInt, TransportError)])
  func `what the kernel says of a connection that was there`(code: CInt, expected: TransportError) {
    #expect(TransportError(errno: code) == expected)
  }
}
