import Glibc
import HoldfastCore
import HoldfastLinux

/// A process that holds PINs, passcodes and keys in locked memory for a time, so that the programs of one user need them once.
///
/// It writes nothing to the disk. Only processes of the same user are answered.
package final class Agent {
  /// The maximum number of clients that are connected at once. More wait.
  private static let clientLimit = 32

  private let path: String
  private let socket: AgentSocket
  private let identity: (device: dev_t, inode: ino_t)
  private var secrets: HeldSecrets
  private let clientMilliseconds: UInt64
  private let now: () -> Int64
  private var toldNames: [String] = []
  private var clients: [(descriptor: Int32, since: UInt64)] = []

  /// Begins to listen at a path.
  ///
  /// - Parameters:
  ///   - path: The path of the socket, which gets mode 0600.
  ///   - idleSeconds: The time without a use after which everything is forgotten.
  ///   - shiftSeconds: The time after the first secret, after which everything is forgotten.
  ///   - clientMilliseconds: The longest time for which a client may be connected.
  ///   - now: The seconds since the start of the machine, which count while it sleeps.
  /// - Throws: `EADDRINUSE` if an agent listens there; `ENOMEM` or `EPERM` if memory cannot be locked.
  package init(
    at path: String, idleSeconds: Int, shiftSeconds: Int, clientMilliseconds: UInt64 = 2000,
    now: @escaping () -> Int64 = SteadyClock.bootSeconds
  ) throws(SystemError) {
    secrets = try HeldSecrets(idleSeconds: idleSeconds, shiftSeconds: shiftSeconds)
    socket = try AgentSocket(listeningAt: path)
    var status = stat()
    try retrying { unsafe lstat(path, &status) }
    (self.path, self.now, identity) = (path, now, (status.st_dev, status.st_ino))
    self.clientMilliseconds = clientMilliseconds
    _ = fcntl(socket.descriptor.number, F_SETFL, O_NONBLOCK)
  }

  deinit {
    for client in clients { close(client.descriptor) }
    var status = stat()
    if unsafe lstat(path, &status) == 0, (status.st_dev, status.st_ino) == identity { unsafe unlink(path) }
  }

  /// The names of what is held, for tests.
  package var names: [String] { secrets.names }

  /// Serves until `stop` is raised. Each time `forget` is raised, everything is forgotten.
  package func serve(until stop: WakeUp, forgettingAt forget: WakeUp) {
    while !stop.isRaised {
      step(stop, forget)
      if forget.isRaised {
        while forget.lower() {}
        secrets.forgetAll()
      }
      tellWatchers()
    }
    secrets.forgetAll()
  }

  /// Waits for one of the descriptors, and serves those that are ready.
  private func step(_ stop: WakeUp, _ forget: WakeUp) {
    var waited = [stop.descriptor, forget.descriptor].map { pollfd(fd: $0, events: Int16(POLLIN), revents: 0) }
    waited += clients.map { pollfd(fd: $0.descriptor, events: Int16(POLLIN), revents: 0) }
    if clients.count < Self.clientLimit {
      waited.append(pollfd(fd: socket.descriptor.number, events: Int16(POLLIN), revents: 0))
    }
    _ = unsafe poll(&waited, nfds_t(waited.count), patience)
    // Also after a sleep of the machine, which ends in a poll(2) that has nothing.
    secrets.expire(at: now())
    // A demand to forget comes before any request.
    guard waited[0].revents == 0, waited[1].revents == 0 else { return }
    let ready = Set(waited.dropFirst(2).filter { $0.revents != 0 }.map { $0.fd })
    let deadline = monotonicMilliseconds() - min(monotonicMilliseconds(), clientMilliseconds)
    clients.removeAll { client in
      guard ready.contains(client.descriptor) || client.since < deadline else { return false }
      if ready.contains(client.descriptor) { answer(client.descriptor) }
      close(client.descriptor)
      return true
    }
    if ready.contains(socket.descriptor.number) { accept() }
  }

  /// Touches the socket if other secrets are held than before, so that programs that watch its folder ask again.
  private func tellWatchers() {
    guard secrets.names != toldNames else { return }
    toldNames = secrets.names
    _ = unsafe utimensat(AT_FDCWD, path, nil, 0)
  }

  /// The longest wait, in milliseconds: short while a client is connected or something is held.
  private var patience: Int32 {
    if !clients.isEmpty { return 200 }
    guard let left = secrets.secondsLeft(at: now()) else { return -1 }
    // poll(2) does not count while the machine sleeps.
    return Int32(min(left, 30) * 1000)
  }

  private func accept() {
    // Nothing here waits: the packets are read and written without blocking. This process starts no other.
    let client = Glibc.accept(socket.descriptor.number, nil, nil)
    guard client >= 0 else {
      // Without descriptors, the client waits; without a pause, this process would spin.
      if errno == EMFILE || errno == ENFILE { usleep(50_000) }
      return
    }
    guard AgentSocket.isOfThisUser(client) else {
      close(client)
      return
    }
    clients.append((client, monotonicMilliseconds()))
  }

  /// Reads one packet and writes one.
  private func answer(_ client: Int32) {
    let count = secrets.withMessage { message in
      unsafe message.withUnsafeMutableBytes { buffer in
        // A packet that is longer than the buffer would be cut; its real length is reported, and it is refused.
        unsafe recv(client, buffer.baseAddress, buffer.count, CInt(MSG_TRUNC | MSG_DONTWAIT))
      }
    }
    guard count > 0 else { return secrets.wipeMessage() }
    let byteCount = AgentMessage.answer(byteCount: count > AgentMessage.largest ? 0 : count, &secrets, at: now())
    secrets.withMessage { message in
      _ = unsafe message.withUnsafeMutableBytes { buffer in
        unsafe send(client, buffer.baseAddress, byteCount, CInt(MSG_NOSIGNAL | MSG_DONTWAIT))
      }
    }
    secrets.wipeMessage()
  }
}
