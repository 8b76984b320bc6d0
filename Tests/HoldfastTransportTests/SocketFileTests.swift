import Glibc
import TestSupport
import Testing

import HoldfastTransport

struct SocketFileTests {
  let folder: TemporaryFolder

  init() throws {
    folder = try TemporaryFolder()
  }

  @Test(arguments: Framing.allCases)
  func `a socket file is for its owner alone`(framing: Framing) throws {
    let listener = try Listener(folder.endpoint(framing))
    let identity = try #require(folder.identity())
    #expect(identity.isSocket)
    #expect(identity.mode & 0o7777 == 0o600)
    withExtendedLifetime(listener) {}
  }

  @Test(
    arguments: [
      ("mode=660", 0o660), ("mode=0640", 0o640), ("mode=777", 0o777), ("mode=000", 0), ("mode=606", 0o606),
      ("group=\(getegid())", 0o660), ("mode=600,group=\(getegid())", 0o600),
    ] as [(String, mode_t)], Framing.allCases)
  func `a socket file has the mode that its endpoint asks for, whatever the umask`(
    access: (String, mode_t), framing: Framing
  )
    throws
  {
    let listener = try Listener(Endpoint(parsing: "\(folder.endpoint(framing)),\(access.0)"))
    let identity = try #require(folder.identity())
    #expect(identity.mode & 0o7777 == access.1)
    listener.close()
    #expect(folder.identity() == nil)
  }

  @Test(.enabled(if: geteuid() == 0)) func `a socket file has the group that its endpoint asks for, by name or number`()
    throws
  {
    for (group, number) in [("daemon", 1), ("54321", 54321)] as [(String, gid_t)] {
      let listener = try Listener(Endpoint(parsing: "\(folder.endpoint()),group=\(group)"))
      var status = stat()
      try #require(unsafe lstat(folder.path + "/s", &status) == 0)
      #expect(status.st_gid == number)
      #expect(status.st_mode & 0o7777 == 0o660)
      withExtendedLifetime(listener) {}
    }
  }

  @Test(arguments: ["no such group", "99999999999", "4294967295"])
  func `a group that is not there is refused, and no file is left`(group: String)
    throws
  {
    #expect(throws: TransportError.unknownGroup) {
      _ = try Listener(Endpoint(parsing: "\(folder.endpoint()),group=\(group)"))
    }
    #expect(folder.identity() == nil)
  }

  @Test func `what somebody puts in the place of the socket is not opened up`() throws {
    let victim = folder.path + "/victim"
    try #require(unsafe close(open(victim, O_CREAT | O_WRONLY, 0o600)) == 0)
    try #require(unsafe symlink(victim, folder.path + "/s") == 0)
    let access = SocketAccess(mode: 0o666, group: nil)
    #expect(throws: TransportError.pathOccupied) { try access.apply(toSocketAt: folder.path + "/s", group: nil) }
    #expect(throws: TransportError.pathOccupied) { try access.apply(toSocketAt: victim, group: nil) }
    var status = stat()
    try #require(unsafe stat(victim, &status) == 0)
    #expect(status.st_mode & 0o7777 == 0o600)
  }

  @Test func `a listener that goes away takes its file along`() throws {
    var listener: Listener? = try Listener(folder.endpoint())
    #expect(folder.identity() != nil)
    withExtendedLifetime(listener) {}
    listener = nil
    #expect(folder.identity() == nil)
  }

  @Test func `a listener leaves the file of another alone`() throws {
    let listener = try Listener(folder.endpoint())
    try #require(unsafe rename(folder.path + "/s", folder.path + "/moved") == 0)
    let other = try Listener(folder.endpoint())
    let identity = folder.identity()
    listener.close()
    #expect(folder.identity() == identity)
    other.close()
    #expect(folder.identity() == nil)
  }

  @Test(arguments: Framing.allCases, Framing.allCases)
  func `a stale socket is replaced`(framing: Framing, staleFraming: Framing) throws {
    do {
      let stale = try OpenFile.unixSocket(framing: staleFraming)
      try #require(stale.bind(toPath: folder.path + "/s") == 0)
      try #require(listen(stale.descriptor, 1) == 0)
    }
    let listener = try Listener(folder.endpoint(framing))
    let client = try Connection.connect(to: folder.endpoint(framing), timeoutMilliseconds: generousMilliseconds)
    try client.sendBytes([1])
    #expect(try listener.accept().receiveBytes() == [1])
  }

  @Test(arguments: Framing.allCases, Framing.allCases)
  func `a second listener is refused and the first goes on`(framing: Framing, secondFraming: Framing) throws {
    let listener = try Listener(folder.endpoint(framing))
    let identity = folder.identity()
    #expect(throws: TransportError.addressInUse) { try Listener(folder.endpoint(secondFraming)) }
    #expect(folder.identity() == identity)
    listener.cancel()
  }

  @Test func `a second listener is refused where the queue of the first is full`() throws {
    let listener = try Listener(folder.endpoint(), backlog: 0)
    let waiting = try Connection.connect(to: folder.endpoint(), timeoutMilliseconds: generousMilliseconds)
    #expect(throws: TransportError.addressInUse) { try Listener(folder.endpoint()) }
    #expect(folder.identity() != nil)
    withExtendedLifetime((listener, waiting)) {}
  }

  @Test func `another file in the way is left alone`() throws {
    try folder.makeFile("s")
    let identity = folder.identity()
    #expect(throws: TransportError.pathOccupied) { try Listener(folder.endpoint()) }
    #expect(folder.identity() == identity)
  }

  @Test func `a symbolic link in the way is left alone, even one to a stale socket`() throws {
    do {
      let stale = try OpenFile.unixSocket(framing: .packets)
      try #require(stale.bind(toPath: folder.path + "/target") == 0)
    }
    try #require(unsafe symlink("target", folder.path + "/s") == 0)
    #expect(throws: TransportError.pathOccupied) { try Listener(folder.endpoint()) }
    #expect(folder.identity() != nil)
    #expect(folder.identity(name: "target") != nil)
  }

  @Test func `a listener waits while another one of the folder is between its name and its queue`() throws {
    var other: OpenFile? = OpenFile(taking: try checked(unsafe open(folder.path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)))
    try #require(flock(try #require(other?.descriptor), LOCK_EX) == 0)
    let path = folder.path + "/s"
    let worker = try Worker { try patientListener(atPath: path) }
    try worker.waitUntilBlocked()
    #expect(folder.identity() == nil)
    other = nil
    let (file, name) = try worker.value()
    #expect(folder.identity() != nil)
    withExtendedLifetime((file, other)) { name.remove() }
  }

  @Test func `who can read the folder and locks it for good keeps no listener from it`() throws {
    let stranger = OpenFile(taking: try checked(unsafe open(folder.path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)))
    try #require(flock(stranger.descriptor, LOCK_EX) == 0)
    let (file, name) = try SocketFile.listen(
      atPath: folder.path + "/s", framing: .packets, backlog: 1, lockMilliseconds: 20)
    #expect(folder.identity() != nil)
    withExtendedLifetime((stranger, file)) { name.remove() }
  }

  @Test func `of many that find a stale socket at once, one listens`() throws {
    let path = folder.path + "/s"
    for _ in 0..<20 {
      do {
        let stale = try OpenFile.unixSocket(framing: .packets)
        try #require(stale.bind(toPath: path) == 0)
      }
      let workers = try (0..<6).map { _ in
        try Worker { () -> Result<(OpenFile, SocketFile), TransportError> in
          do throws(TransportError) { return .success(try patientListener(atPath: path)) } catch {
            return .failure(error)
          }
        }
      }
      let results = try workers.map { try $0.value() }
      for case .failure(let error) in results { #expect(error == .addressInUse) }
      let listeners = results.compactMap { try? $0.get() }
      #expect(listeners.count == 1)
      let client = try Connection.connect(to: folder.endpoint(), timeoutMilliseconds: generousMilliseconds)
      withExtendedLifetime((client, listeners)) { for (_, name) in listeners { name.remove() } }
    }
  }
}

/// A socket that listens at `path`; it waits for others that are between bind(2) and listen(2) on a busy machine, too.
private func patientListener(atPath path: String) throws(TransportError) -> (OpenFile, SocketFile) {
  try SocketFile.listen(atPath: path, framing: .packets, backlog: 128, lockMilliseconds: generousMilliseconds)
}
