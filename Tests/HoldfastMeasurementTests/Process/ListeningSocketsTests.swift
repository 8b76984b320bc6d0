import Foundation
import Testing

import HoldfastMeasurement

@Suite struct ListeningSocketsTests {
  @Test func `only a listener on the port counts`() {
    let listener = "   0: 0100007F:69A2 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 1522"
    #expect(isListener(listener))
    #expect(isListener(listener.replacing("0100007F", with: "00000000000000000000000001000000")))
    #expect(!isListener(listener.replacing(" 0A ", with: " 01 ")))
    #expect(!isListener(listener.replacing("69A2", with: "69A3")))
    #expect(!isListener("   0: 0100007F:07E8 0100007F:69A2 0A 00000000:00000000"))
    #expect(!isListener("  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid"))
    #expect(!isListener(""))
  }

  @Test(arguments: [(AF_INET, "127.0.0.1"), (AF_INET6, "::1")])
  func `the kernel tells of a listener that opens and closes`(family: Int32, address: String) throws {
    let listener = try #require(Listener(family))
    let open = try ListeningSockets.contain(port: listener.port, HostFiles())
    #expect(open)
    listener.close()
    let closed = try ListeningSockets.contain(port: listener.port, HostFiles())
    #expect(!closed)
  }

  private func isListener(_ line: String) -> Bool {
    ListeningSockets.isListener(Array(line.utf8)[...], on: 27042)
  }
}

/// A TCP socket that listens on a free port of the loopback address; nil where there is no such family.
private final class Listener {
  private let descriptor: Int32
  let port: UInt16

  init?(_ family: Int32) {
    // Closed in the programs that other tests start meanwhile: they would keep it open.
    let descriptor = socket(family, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
    guard descriptor >= 0, listen(descriptor, 1) == 0 else { return nil }
    // The port is in the same place for both families.
    var address = sockaddr_in6()
    var length = socklen_t(MemoryLayout<sockaddr_in6>.size)
    let result = unsafe withUnsafeMutablePointer(to: &address) { pointer in
      unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        unsafe getsockname(descriptor, $0, &length)
      }
    }
    guard result == 0 else { return nil }
    self.descriptor = descriptor
    port = UInt16(bigEndian: address.sin6_port)
  }

  func close() { _ = Glibc.close(descriptor) }
}
