import CBlueZ
import Glibc
import Testing

import HoldfastTransport

/// Sockets that carry messages over the air are tested in Tests/BluetoothLab, in a kernel that has Bluetooth.
struct BluetoothSocketTests {
  private static let kernelHasBluetooth = {
    let descriptor = socket(AF_BLUETOOTH, CInt(SOCK_SEQPACKET.rawValue), BTPROTO_L2CAP)
    if descriptor >= 0 { close(descriptor) }
    return descriptor >= 0 || errno != EAFNOSUPPORT
  }()

  @Test(
    .disabled(if: kernelHasBluetooth, "this kernel has Bluetooth"),
    arguments: [
      "l2cap:00:1A:7D:DA:71:13,psm=0x1001", "rfcomm:00:1A:7D:DA:71:13,channel=1", "le:00:1A:7D:DA:71:13,psm=0x80",
    ])
  func `a kernel without Bluetooth says so`(text: String) throws {
    let endpoint = try Endpoint(parsing: text)
    #expect(throws: TransportError.unsupported) { try Listener(endpoint) }
    #expect(throws: TransportError.unsupported) { try Connection.connect(to: endpoint, timeoutMilliseconds: 0) }
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
