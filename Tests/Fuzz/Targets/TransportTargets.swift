import Glibc
import HoldfastLinux
import HoldfastTransport
import TestSupport

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
    note(text)
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
    let response = SearchResponse(bytes[...], transaction: 0)
    note(String(describing: response))
    if bytes.first == 0xff {
      let peer = try Peer()
      var input = FuzzInput(Array(bytes.dropFirst()))
      for _ in 0..<16 where !input.isEmpty { peer.send(input.message()) }
      let ports = try ServiceDiscovery.exchange(over: peer.end(), by: Deadline(afterMilliseconds: 60_000))
      return note("\(ports)")
    }
    guard let ports = BluetoothPort.listed(in: bytes[...]) else { return }
    for port in ports {
      note("\(port)")
      var list: [UInt8] = []
      list.append { $0 += ServiceRecord.bytes(port, name: "fuzz") }
      try require(BluetoothPort.listed(in: list[...]) == [port], "a record that was written is refused")
    }
  },
  FuzzTarget("advertising", ["HoldfastTransport/Bluetooth/Advertising/AdvertisingData.swift"], maximumByteCount: 512) {
    bytes in
    guard let data = AdvertisingData(bytes[...]) else { return }
    note("\(data)")
    var merged = data
    merged.merge(data)
    try require(merged == data, "data that is merged with itself differs")
    for other in otherReports {
      var (first, second) = (data, other)
      first.merge(other)
      second.merge(data)
      note("\(first) \(second)")
    }
    let response = AdvertisingData.scanResponse(psm: data.psm ?? 0x80, name: data.name ?? "")
    let again = AdvertisingData(response[...])
    try require(response.count <= 31 && again?.psm == data.psm ?? 0x80, "a scan response that was written is refused")
  },
  FuzzTarget(
    "management",
    [
      "HoldfastTransport/Bluetooth/ManagementSocket.swift", "HoldfastTransport/Bluetooth/Adapter.swift",
      "HoldfastTransport/Bluetooth/DeviceScan.swift",
    ],
    maximumByteCount: 2048, variantCount: 16
  ) { bytes in
    if bytes.count >= 280 { _ = Adapter(number: 0, bytes[..<280], block: nil) }
    // The bytes as a kernel sends them: first the answer to a command, and any events before it.
    var input = FuzzInput(bytes)
    switch bytes.first {
    case 0xfe: return try listAdapters(&input)
    case 0xfd: return try scan(&input)
    default: break
    }
    let peer = try Peer()
    let isSplit = bytes.first == 0xff
    if isSplit { _ = input.byte() }
    for _ in 0..<8 where !input.isEmpty { peer.send(isSplit ? input.message() : input.bytes(bytes.count)) }
    let management = ManagementSocket(file: peer.end())
    let answer = attempt {
      try management.execute(ManagementCommand(.readInformation, adapter: 0), timeoutMilliseconds: 60_000) {
        adapter, event in note("\(adapter) \(event)")
      }
    }
    note(answer ?? [])
    // Which instance is free depends on the other programs of the host.
    _ = try? AdvertisingInstance(of: 0, management)
    guard let (adapter, event) = ManagementEvent.read(bytes[...]) else { return note("no event") }
    note("\(adapter) \(event)")
    if case .deviceFound(let report) = event { try checkReport(report) }
  },
]

/// The data of two other peers. The first peer tells its whole name, and the second one a part of its name.
private let otherReports = [
  AdvertisingData.scanResponse(psm: 0x80, name: "other"), [3, 0x08] + Array("ot".utf8),
].compactMap { AdvertisingData($0[...]) }

/// Lists adapters of which the kernel tells, and reads the blocks of their radios, with up to two bytes in each file.
private func listAdapters(_ input: inout FuzzInput) throws {
  _ = input.byte()
  let folder = try TemporaryFolder()
  for adapter in ["hci0", "hci1"] {
    let radio = adapter + "/rfkill0"
    guard mkdir(folder.file(adapter), 0o700) == 0, mkdir(folder.file(radio), 0o700) == 0 else { return }
    for name in ["hard", "soft"] {
      // Without bytes, there is no file.
      let count = Int(input.byte()) % 4
      if count > 0 { try folder.makeFile("\(radio)/\(name)", input.bytes(count - 1)) }
    }
  }
  let peer = try Peer()
  for _ in 0..<16 where !input.isEmpty { peer.send(input.message()) }
  let adapters = try Adapter.all(ManagementSocket(file: peer.end()), radios: folder.path)
  try require(zip(adapters, adapters.dropFirst()).allSatisfy { $0.number <= $1.number }, "adapters are not in order")
  // A search with an adapter that is powered would open a socket of the kernel.
  note("\(adapters)")
  for adapter in adapters where !adapter.settings.contains(.powered) { _ = try? DeviceScan(adapter) }
}

/// Searches for peers of which the kernel tells.
private func scan(_ input: inout FuzzInput) throws {
  _ = input.byte()
  let peer = try Peer()
  for _ in 0..<16 where !input.isEmpty { peer.send(input.message()) }
  let adapter = Adapter(
    number: 0, address: .any, name: "", supported: [], settings: [.powered, .classic, .lowEnergy], block: nil)
  var last = 0
  let search = try DeviceScan(adapter, management: ManagementSocket(file: peer.end()))
  attempt {
    // The far end is closed, which ends the search.
    _ = try search.run(milliseconds: 60_000) { count in
      note("\(count)")
      last = count == last + 1 ? count : .min
    }
  }
  try require(last >= 0, "the number of peers does not rise by one")
}

/// Reads the data in a report, and merges it with itself.
private func checkReport(_ report: DeviceReport) throws {
  let found = FoundPeer(report)
  note("\(found)")
  var merged = found
  merged.merge(report)
  try require(merged == found, "a report that is merged with itself differs")
  try require(!(found.namesService && found.excludesService), "a peer names the service, and has it not")
  // A peer of classic Bluetooth would be asked.
  guard found.device.kind != .classic || found.excludesService else { return }
  let endpoints = try found.endpoints(adapter: nil, by: Deadline(afterMilliseconds: 0))
  try require(endpoints.count <= found.psms.count, "a peer has more endpoints than it told")
}

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
