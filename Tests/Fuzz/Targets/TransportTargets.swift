import Glibc
import HoldfastLinux
import HoldfastTransport

/// The readers of what peers and the kernel send by Bluetooth, and of endpoints.
let transportTargets = [
  FuzzTarget(
    "endpoint",
    [
      "HoldfastTransport/Endpoint/Endpoint.swift", "HoldfastTransport/Endpoint/Scheme.swift",
      "HoldfastTransport/Endpoint/BluetoothAddress.swift",
    ], maximumByteCount: 256
  ) { bytes in
    let endpoint = try Endpoint(parsing: String(decoding: bytes, as: UTF8.self))
    let text = endpoint.description
    let again = try mustSucceed("an endpoint that was written is refused") { try Endpoint(parsing: text) }
    try require(again.description == text, "an endpoint that is written and read again differs")
  },
  FuzzTarget(
    "sdp",
    [
      "HoldfastTransport/Bluetooth/ServiceDiscovery/ServiceDiscovery.swift",
      "HoldfastTransport/Bluetooth/ServiceDiscovery/ServiceRecord.swift",
    ]
  ) { bytes in
    _ = SearchResponse(bytes[...], transaction: 0)
    if bytes.first == 0xff {
      let peer = try Peer()
      var input = FuzzInput(Array(bytes.dropFirst()))
      for _ in 0..<16 where !input.isEmpty { peer.send(input.message()) }
      _ = try ServiceDiscovery.exchange(over: peer.end(), by: Deadline(afterMilliseconds: 1000))
      return
    }
    guard let ports = BluetoothPort.listed(in: bytes[...]) else { return }
    for port in ports {
      var list: [UInt8] = []
      list.append { $0 += ServiceRecord.bytes(port, name: "fuzz") }
      try require(BluetoothPort.listed(in: list[...]) == [port], "a record that was written is refused")
    }
  },
  FuzzTarget("advertising", ["HoldfastTransport/Bluetooth/Advertising/AdvertisingData.swift"], maximumByteCount: 512) {
    bytes in
    guard let data = AdvertisingData(bytes[...]) else { return }
    var merged = data
    merged.merge(data)
    try require(merged == data, "data that is merged with itself differs")
    let response = AdvertisingData.scanResponse(psm: data.psm ?? 0x80, name: data.name ?? "")
    let again = AdvertisingData(response[...])
    try require(response.count <= 31 && again?.psm == data.psm ?? 0x80, "a scan response that was written is refused")
  },
  FuzzTarget(
    "management",
    ["HoldfastTransport/Bluetooth/ManagementSocket.swift", "HoldfastTransport/Bluetooth/Adapter.swift"],
    maximumByteCount: 2048
  ) { bytes in
    if bytes.count >= 280 { _ = Adapter(number: 0, bytes[..<280], block: nil) }
    // The bytes as a kernel sends them: first the answer to a command, and any events before it.
    let peer = try Peer()
    var input = FuzzInput(bytes)
    let isSplit = bytes.first == 0xff
    if isSplit { _ = input.byte() }
    for _ in 0..<8 where !input.isEmpty { peer.send(isSplit ? input.message() : input.bytes(bytes.count)) }
    let management = ManagementSocket(file: peer.end())
    _ = try? management.execute(ManagementCommand(.readInformation, adapter: 0), timeoutMilliseconds: 1000)
    _ = try? AdvertisingInstance(of: 0, management)
    guard let (_, event) = ManagementEvent.read(bytes[...]) else { return }
    if case .deviceFound(let report) = event { _ = AdvertisingData(report.data) }
  },
]

/// The far end of a packet connection, which has sent all that it sends before the near end is used.
private final class Peer {
  private let near: CInt
  private let far: CInt

  init() throws {
    var ends: [CInt] = [0, 0]
    guard socketpair(AF_UNIX, CInt(SOCK_SEQPACKET.rawValue), 0, &ends) == 0 else { throw TransportError(errno: errno) }
    (near, far) = (ends[0], ends[1])
  }

  deinit { close(far) }

  func send(_ packet: [UInt8]) { _ = Glibc.send(far, packet, packet.count, CInt(MSG_DONTWAIT) | CInt(MSG_NOSIGNAL)) }

  /// Returns the near end, once nothing more is sent.
  func end() -> OpenFile {
    shutdown(far, CInt(SHUT_WR))
    return OpenFile(taking: near)
  }
}
