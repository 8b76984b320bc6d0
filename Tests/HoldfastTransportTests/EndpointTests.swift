import Foundation
import Testing

import HoldfastTransport

struct EndpointTests {
  @Test(arguments: [
    "unix:/run/holdfast.sock", "unix:/run/a,mode=660,group=lock", "unix-stream:/a,mode=0", "unix:/a,group=1000",
    "unix:/a,mode=777",
    "unix:relative", "unix:/a:b", "unix-stream:/run/é.sock", "tty:/dev/ttyUSB0",
    "l2cap:00:1A:7D:DA:71:13,psm=0x1001", "l2cap:00:00:00:00:00:00,psm=0xfeff,hci=hci0,security=low",
    "l2cap:00:1A:7D:DA:71:13", "rfcomm:00:1A:7D:DA:71:13,hci=hci1",
    "rfcomm:FF:FF:FF:FF:FF:FF,channel=30", "rfcomm:00:1A:7D:DA:71:13,channel=1,security=medium",
    "le:00:1A:7D:DA:71:13,psm=0x80", "le:00:1A:7D:DA:71:13,psm=0xff,hci=hci65535,security=high",
    "le:C0:1A:7D:DA:71:13,psm=0x80,type=random",
  ])
  func `an endpoint gives back the text it was read from`(text: String) throws {
    let endpoint = try Endpoint(parsing: text)
    #expect(endpoint.description == text)
    #expect(try Endpoint(parsing: endpoint.description) == endpoint)
  }

  @Test func `options come in any order and numbers in two notations`() throws {
    let endpoint = try Endpoint(parsing: "l2cap:00:1a:7d:da:71:13,security=high,hci=hci1,psm=4097")
    let peer = try BluetoothAddress(parsing: "00:1A:7D:DA:71:13")
    #expect(endpoint.address == .bluetooth(peer, .l2cap(psm: 0x1001)))
    #expect(peer.value == 0x001a_7dda_7113)
    #expect(endpoint.adapter == 1)
    #expect(endpoint.security == .high)
    #expect(endpoint.description == "l2cap:00:1A:7D:DA:71:13,psm=0x1001,hci=hci1,security=high")
  }

  @Test func `an LE address is public unless it says otherwise`() throws {
    let peer = try BluetoothAddress(parsing: "C0:1A:7D:DA:71:13")
    #expect(
      try Endpoint(parsing: "le:\(peer),psm=0x80,type=public").address
        == .bluetooth(peer, .lowEnergy(psm: 0x80, .public)))
    #expect(
      try Endpoint(parsing: "le:\(peer),type=random,psm=128").address
        == .bluetooth(peer, .lowEnergy(psm: 0x80, .random)))
  }

  @Test(
    arguments: [
      ("", .transport), ("unix", .transport), (":/a", .transport), ("UNIX:/a", .transport),
      ("tcp:localhost", .transport),
      ("unix:", .pathEmpty), ("unix-stream:", .pathEmpty), ("tty:", .pathEmpty), ("unix:/a\0b", .pathContainsNUL),
      ("tty:/a\0", .pathContainsNUL), ("unix:/a,hci=hci0", .unknownOption), ("tty:/a,mode=660", .unknownOption),
      ("unix:,mode=660", .pathEmpty), ("unix:/a,mode=", .mode), ("unix:/a,mode=0o660", .mode),
      ("unix:/a,mode=1777", .mode),
      ("unix:/a,mode=888", .mode), ("unix:/a,mode=+66", .mode), ("unix:/a,mode=-1", .mode),
      ("unix:/a,mode=00660", .mode),
      ("unix:/a,mode=6 0", .mode), ("unix:/a,mode=rw", .mode), ("unix:/a,group=", .group),
      ("unix:/a,group=a\0b", .group),
      ("unix:/a,mode=660,mode=660", .duplicateOption), ("unix:/a,group=a,group=b", .duplicateOption),
      ("unix:/a,mode", .unknownOption),
      ("unix:/a,Mode=660", .unknownOption),
      ("tty:/dev/ttyS0,", .unknownOption), ("unix:/a,\u{301}", .unknownOption),
    ] as [(String, EndpointError)])
  func `a wrong path or transport is refused`(text: String, expected: EndpointError) {
    #expect(throws: expected) { try Endpoint(parsing: text) }
  }

  @Test(
    arguments: [
      ("l2cap:,psm=0x1001", .address), ("l2cap:00:1A:7D:DA:71,psm=0x1001", .address),
      ("l2cap:00:1A:7D:DA:71:13:00,psm=0x1001", .address), ("l2cap:00:1A:7D:DA:71:1G,psm=0x1001", .address),
      ("l2cap:0:01A:7D:DA:71:13,psm=0x1001", .address), ("rfcomm:001A7DDA7113,channel=5", .address),
      ("le:00-1A-7D-DA-71-13,psm=0x80", .address), ("le:+0:1A:7D:DA:71:13,psm=0x80", .address),
    ] as [(String, EndpointError)])
  func `a wrong Bluetooth address is refused`(text: String, expected: EndpointError) {
    #expect(throws: expected) { try Endpoint(parsing: text) }
  }

  @Test(
    arguments: [
      ("l2cap:ADDR,psm=0x1", .psm), ("l2cap:ADDR,psm=0x0fff", .psm), ("l2cap:ADDR,psm=0x1000", .psm),
      ("l2cap:ADDR,psm=0x0101", .psm),
      ("l2cap:ADDR,psm=0", .psm),
      ("l2cap:ADDR,psm=0x10001", .psm), ("l2cap:ADDR,psm=", .psm), ("l2cap:ADDR,psm=0x", .psm),
      ("l2cap:ADDR,psm=+1", .psm),
      ("l2cap:ADDR,psm=-1", .psm), ("l2cap:ADDR,psm=1f", .psm), ("l2cap:ADDR,psm=0X1001", .psm),
      ("l2cap:ADDR,psm=٣", .psm),
      ("le:ADDR,psm=0", .psm), ("le:ADDR,psm=0x7f", .psm), ("le:ADDR,psm=0x100", .psm), ("le:ADDR", .psm),
      ("rfcomm:ADDR,channel=0", .channel), ("rfcomm:ADDR,channel=31", .channel),
      ("rfcomm:ADDR,channel=261", .channel), ("rfcomm:ADDR,channel=five", .channel),
      ("le:ADDR,psm=0x80,hci=0", .adapter), ("le:ADDR,psm=0x80,hci=hci", .adapter),
      ("le:ADDR,psm=0x80,hci=hci01", .adapter),
      ("le:ADDR,psm=0x80,hci=hci65536", .adapter), ("le:ADDR,psm=0x80,hci=hci+1", .adapter),
      ("le:ADDR,psm=0x80,type=", .addressKind), ("le:ADDR,psm=0x80,type=static", .addressKind),
      ("l2cap:ADDR,psm=0x1001,type=public", .unknownOption),
      ("le:ADDR,psm=0x80,security=", .security), ("le:ADDR,psm=0x80,security=HIGH", .security),
      ("le:ADDR,psm=0x80,security=fips", .security),
      ("le:ADDR,psm=0x80,psm=0x80", .duplicateOption), ("le:ADDR,hci=hci0,psm=0x80,hci=hci1", .duplicateOption),
      ("le:ADDR,psm=0x80,channel=5", .unknownOption), ("rfcomm:ADDR,channel=5,psm=0x80", .unknownOption),
      ("le:ADDR,psm=0x80,", .unknownOption), ("le:ADDR,psm", .unknownOption),
      ("le:ADDR,psm=0x80,PSM=1", .unknownOption),
      ("le:ADDR, psm=0x80", .unknownOption), ("le:ADDR,psm=0x80,=1", .unknownOption),
    ] as [(String, EndpointError)])
  func `a wrong option is refused`(text: String, expected: EndpointError) {
    let parts = text.split(separator: "ADDR", maxSplits: 1, omittingEmptySubsequences: false)
    #expect(throws: expected) { try Endpoint(parsing: parts.joined(separator: "00:1A:7D:DA:71:13")) }
  }

  @Test(arguments: ["unix:", "unix-stream:"])
  func `a socket path of 107 bytes is the longest`(scheme: String) throws {
    let path = "/" + String(repeating: "a", count: 106)
    #expect(try Endpoint(parsing: scheme + path).description == scheme + path)
    #expect(throws: EndpointError.pathTooLong) { try Endpoint(parsing: scheme + path + "a") }
  }

  @Test func `the length of a path is counted in bytes`() throws {
    #expect(throws: EndpointError.pathTooLong) { try Endpoint(parsing: "unix:" + String(repeating: "é", count: 54)) }
  }

  /// Endpoints of each transport, as its own examples show them.
  private static let examples = Scheme.all.flatMap { scheme in scheme.examples.map { (scheme, $0) } }

  @Test(arguments: examples)
  func `the example of a transport is an endpoint of that transport`(scheme: Scheme, example: String) throws {
    let endpoint = try Endpoint(parsing: example.replacing("ADDR", with: "00:1A:7D:DA:71:13"))
    #expect(endpoint.scheme == scheme)
    #expect(Scheme(of: example) == scheme)
  }

  @Test func `each transport has a name of its own, and only Bluetooth has options of an adapter`() {
    #expect(Set(Scheme.all.map(\.name)).count == Scheme.all.count)
    for scheme in Scheme.all {
      #expect(scheme.form.hasPrefix(scheme.name + ":"))
      #expect(scheme.options.isSuperset(of: [.adapter, .security]) == (scheme.radio != nil), "\(scheme.name)")
      #expect(!scheme.isSerial || scheme.framing == .stream, "\(scheme.name)")
    }
    #expect(Scheme.all.filter(\.isSerial) == [.unixStream, .terminal])
    #expect(Scheme.all.filter { $0.radio == .lowEnergy } == [.lowEnergy])
  }

  /// The first cells of the table in the section "Endpoints" of docs/protocol.md.
  @Test func `the protocol lists each transport`() throws {
    let file = URL(filePath: #filePath)
      .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
      .appending(path: "docs/protocol.md")
    let document = try String(contentsOf: file, encoding: .utf8)
    let section = try #require(document.components(separatedBy: "\n## Endpoints\n").last)
    let table = section.components(separatedBy: "\n").drop { !$0.hasPrefix("| ---") }.dropFirst()
      .prefix { $0.hasPrefix("|") }
    let written = table.map { $0.components(separatedBy: "`")[1] }
    #expect(written.sorted() == Scheme.all.map { $0.examples[0].replacing("ADDR", with: "ADDRESS") }.sorted())
  }
}
