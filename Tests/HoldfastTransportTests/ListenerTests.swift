import Glibc
import TestSupport
import Testing

import HoldfastTransport

@Suite struct ListenerTests {
  let folder: TemporaryFolder

  init() throws {
    folder = try TemporaryFolder()
  }

  private func connect(_ framing: Framing, timeoutMilliseconds: Int = generousMilliseconds) throws(TransportError)
    -> Connection
  {
    try Connection.connect(to: folder.endpoint(framing), timeoutMilliseconds: timeoutMilliseconds)
  }

  @Test(arguments: Framing.allCases)
  func `a listener and a peer exchange messages`(framing: Framing) throws {
    let listener = try Listener(folder.endpoint(framing))
    let client = try connect(framing)
    let server = try listener.accept()
    try server.sendBytes(pattern(4096))
    #expect(try client.receiveBytes() == pattern(4096))
    try client.sendBytes(pattern(450))
    #expect(try server.receiveBytes() == pattern(450))
    #expect(throws: TransportError.timedOutWaiting) { try server.receiveBytes(firstByteWithin: 1) }
  }

  @Test(arguments: Framing.allCases)
  func `an accepted peer with 4097 bytes is refused`(framing: Framing) throws {
    let listener = try Listener(folder.endpoint(framing))
    let client = try connect(framing)
    let server = try listener.accept()
    try client.sendRaw(framing == .packets ? pattern(4097) : [0x10, 0x01] + pattern(4097))
    #expect(throws: TransportError.tooLong) { try server.receiveBytes() }
  }

  @Test(arguments: Framing.allCases)
  func `64 peers are connected at once`(framing: Framing) throws {
    let listener = try Listener(folder.endpoint(framing))
    let clients = try (0..<64).map { _ in try connect(framing) }
    for (number, client) in clients.enumerated() { try client.sendBytes([UInt8(number), 1]) }
    let servers = try clients.map { _ in try listener.accept() }
    for server in servers { try server.sendBytes(try server.receiveBytes() + [2]) }
    for (number, client) in clients.enumerated() { #expect(try client.receiveBytes() == [UInt8(number), 1, 2]) }
  }

  @Test(arguments: Framing.allCases)
  func `a peer waits no longer than it wants where the queue is full`(framing: Framing) throws {
    let listener = try Listener(folder.endpoint(framing), backlog: 0)
    let first = try connect(framing)
    #expect(throws: TransportError.timedOutWaiting) { try connect(framing, timeoutMilliseconds: 20) }
    let second = try Worker { [endpoint = folder.endpoint(framing)] in
      try Connection.connect(to: endpoint, timeoutMilliseconds: generousMilliseconds)
    }
    let servers = [try listener.accept(), try listener.accept()]
    try second.value().sendBytes([2])
    try first.sendBytes([1])
    #expect(try servers.map { try $0.receiveBytes() } == [[1], [2]])
  }

  @Test(arguments: Framing.allCases)
  func `cancel wakes accept`(framing: Framing) throws {
    let listener = try Listener(folder.endpoint(framing))
    let acceptor = try Worker { try listener.accept() }
    try acceptor.waitUntilBlocked()
    listener.cancel()
    #expect(throws: TransportError.cancelled) { try acceptor.value() }
    #expect(throws: TransportError.cancelled) { try listener.accept() }
  }

  @Test func `close wakes accept`() throws {
    let listener = try Listener(folder.endpoint())
    let acceptor = try Worker { try listener.accept() }
    try acceptor.waitUntilBlocked()
    listener.close()
    #expect(throws: TransportError.cancelled) { try acceptor.value() }
  }

  @Test func `close sends away who waits`() throws {
    let listener = try Listener(folder.endpoint())
    let waiting = try connect(.packets)
    listener.close()
    listener.close()
    #expect(throws: TransportError.closed) { try waiting.receiveBytes() }
    #expect(throws: TransportError.cancelled) { try listener.accept() }
    #expect(throws: TransportError.notFound) { try connect(.packets) }
  }

  @Test func `a listener is told apart from a socket of the other framing`() throws {
    let listener = try Listener(folder.endpoint(.packets))
    #expect(throws: TransportError.pathOccupied) { try connect(.stream) }
    withExtendedLifetime(listener) {}
  }

  @Test func `nobody there, nobody listening and no socket are told apart`() throws {
    #expect(throws: TransportError.notFound) { try connect(.packets) }
    try leaveStaleSocket(.packets)
    #expect(throws: TransportError.refused) { try connect(.packets) }
  }

  @Test func `a folder that is not there is not found`() throws {
    #expect(throws: TransportError.notFound) { try Listener(folder.endpoint(name: "missing/s")) }
  }

  @Test(arguments: Framing.allCases)
  func `all descriptors are closed on exec and do not block`(framing: Framing) throws {
    let listener = try Listener(folder.endpoint(framing))
    let client = try connect(framing)
    let server = try listener.accept()
    let (left, right) = try Connection.pair(framing: framing)
    for connection in [client, server, left, right] {
      #expect(fcntl(connection.file.descriptor, F_GETFD) & FD_CLOEXEC != 0)
      #expect(fcntl(connection.file.descriptor, F_GETFL) & O_NONBLOCK != 0)
    }
  }

  private func leaveStaleSocket(_ framing: Framing) throws {
    let socket = try OpenFile.unixSocket(framing: framing)
    try #require(socket.bind(toPath: folder.path + "/s") == 0)
  }
}
