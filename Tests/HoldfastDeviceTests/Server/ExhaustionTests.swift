import Glibc
import HoldfastCore
import HoldfastLinux
import HoldfastTransport
import PowerCut
import Testing

import HoldfastDevice

/// A server that the system gives nothing more. Each test has a process of its own, whose limits it lowers.
@Suite struct ExhaustionTests {
  @Test func `without free descriptors nobody is accepted, and who waited is served when there are some again`() async {
    await #expect(processExitsWith: .success) {
      let device = try TestDevice()
      let served = try ServedDevice(device)
      let prover = try device.prover()
      let peer = try served.connect()
      #expect(try peer.round(prover).status == .accepted)
      let challenge = try peer.challenge()
      // One descriptor is left: the one of the next peer's own end.
      let free = dup(0)
      close(free)
      let former = try lower(RLIMIT_NOFILE, to: UInt(free) + 1)
      let late = try served.connect()
      let deadline = Deadline(afterMilliseconds: TestPeer.patienceMilliseconds)
      while served.notices.all.count(where: { $0 == .acceptFault(.other(errno: EMFILE)) }) < 3 {
        try #require(!deadline.hasPassed)
        sched_yield()
      }
      // The policy file is open already, and is read all the same.
      let answer = try prover.answer(challenge, command: "unlock")
      try peer.send(answer.message)
      #expect(try prover.open(try peer.receive(), after: answer).status == .accepted)
      try raise(RLIMIT_NOFILE, to: former)
      #expect(try late.round(prover).status == .accepted)
      #expect(try peer.round(prover).status == .accepted)
      try served.stop()
    }
  }

  @Test func `a limit of descriptors that strangers could reach is raised, or the server does not start`() async {
    await #expect(processExitsWith: .success) {
      let device = try TestDevice()
      let free = dup(0)
      close(free)
      let few = UInt(free) + 32
      _ = try lower(RLIMIT_NOFILE, to: few)
      do {
        let served = try ServedDevice(device)
        let prover = try device.prover()
        let peer = try served.connect()
        let strangers = try (0..<63).map { _ in try served.connect() }
        for stranger in strangers { _ = try stranger.challenge() }
        #expect(try peer.round(prover).status == .accepted)
        withExtendedLifetime(strangers) {}
        try served.stop()
      }
      var limit = rlimit(rlim_cur: rlim_t(few), rlim_max: rlim_t(few))
      try #require(unsafe setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0)
      #expect(throws: ServerFault.noDescriptors) { _ = try ServedDevice(device) }
    }
  }

  @Test func `without another thread a peer is sent away, and the next is served when there is one again`() async {
    await #expect(processExitsWith: .success) {
      // The limit does not hold for root.
      if geteuid() == 0 { try #require(setgid(65534) == 0 && setuid(65534) == 0) }
      // Every user can write there, which may not be true of TMPDIR.
      let device = try TestDevice(in: memoryFolder)
      let served = try ServedDevice(device, options: ServerOptions(connectionCount: 2))
      let prover = try device.prover()
      let peer = try served.connect()
      #expect(try peer.round(prover).status == .accepted)
      let former = try lower(__RLIMIT_NPROC, to: 1)
      // More than there are places: none of them keeps one.
      for _ in 0..<5 {
        let late = try served.connect()
        #expect(try late.unsealedStatus() == .busy)
        late.expectEnd()
      }
      #expect(try peer.round(prover).status == .accepted)
      try raise(__RLIMIT_NPROC, to: former)
      #expect(try served.connect().round(prover).status == .accepted)
      try served.stop()
    }
  }

  @Test func `a server that gets no thread for an endpoint ends, and says which one it was`() async {
    await #expect(processExitsWith: .success) {
      // The limit does not hold for root.
      if geteuid() == 0 { try #require(setgid(65534) == 0 && setuid(65534) == 0) }
      let device = try TestDevice(in: memoryFolder)
      let endpoints = try ["one", "two"].map { try Endpoint(parsing: "unix:\(device.place.path)/\($0)") }
      let server = try DeviceServer(
        device.opened(), actuator: LockActuator(device.folder.openLock()), at: endpoints)
      let former = try lower(__RLIMIT_NPROC, to: 1)
      // A server that went on would end the process here.
      alarm(60)
      #expect(throws: ServerFault.endpoint(endpoints[1], .other(errno: EAGAIN))) { try server.run() }
      try raise(__RLIMIT_NPROC, to: former)
    }
  }
}

/// Lowers a limit of this process; what it was.
private func lower(_ resource: __rlimit_resource, to value: UInt) throws -> rlim_t {
  var limit = rlimit()
  try #require(unsafe getrlimit(__rlimit_resource_t(resource.rawValue), &limit) == 0)
  let former = limit.rlim_cur
  limit.rlim_cur = rlim_t(value)
  try #require(unsafe setrlimit(__rlimit_resource_t(resource.rawValue), &limit) == 0)
  return former
}

/// Gives back what ``lower(_:to:)`` took.
private func raise(_ resource: __rlimit_resource, to value: rlim_t) throws {
  _ = try lower(resource, to: UInt(value))
}
