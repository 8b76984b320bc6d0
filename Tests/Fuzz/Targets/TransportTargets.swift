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
    guard let (_, event) = ManagementEvent.read(bytes[...]) else { return }
    if case .deviceFound(let report) = event { _ = AdvertisingData(report.data) }
  },
]
