import Glibc
import HoldfastLinux
import HoldfastTransport
import Synchronization

/// The acceptor of peers of several listeners, each on a separate thread.
final class AcceptLoop: Sendable {
  let listeners: [any ChannelListener]
  private let stopFlag: WakeUp
  /// The gate of the threads that accept, except the one that calls ``run(admit:report:)``.
  private let acceptors: WorkerGate
  /// The reason that an endpoint was lost. The first loss stops all of them.
  private let loss = Mutex<ServerFault?>(nil)

  /// Takes listeners, at least one. Peers wait until ``run(admit:report:)``.
  ///
  /// - Throws: `noDescriptors`.
  init(_ listeners: [any ChannelListener]) throws(ServerFault) {
    precondition(!listeners.isEmpty)
    guard let stopFlag = try? WakeUp(), let acceptors = WorkerGate(limit: listeners.count) else { throw .noDescriptors }
    (self.stopFlag, self.acceptors, self.listeners) = (stopFlag, acceptors, listeners)
  }

  /// Begins to listen at endpoints, and takes further listeners.
  ///
  /// - Throws: `endpoint`, `noDescriptors`.
  convenience init(
    at endpoints: [Endpoint], waitingCount: Int, and others: [any ChannelListener] = []
  ) throws(ServerFault) {
    let listeners = try endpoints.map { endpoint throws(ServerFault) -> any ChannelListener in
      do throws(TransportError) { return try Listener(endpoint, backlog: waitingCount) } catch {
        throw .endpoint(endpoint, error)
      }
    }
    try self.init(listeners + others)
  }

  /// The endpoints at which it listens. A Bluetooth port that was left open is filled in.
  var endpoints: [Endpoint] { listeners.compactMap { ($0 as? Listener)?.endpoint } }

  /// Accepts peers until it is stopped or an endpoint is lost.
  func run(
    admit: @escaping @Sendable (any MessageChannel) -> Void, report: @escaping @Sendable (TransportError) -> Void
  ) {
    for listener in listeners.dropFirst() {
      guard acceptors.enter() else { break }
      let isStarted = Thread.detach { [self] in
        defer { acceptors.leave() }
        accept(at: listener, admit, report)
      }
      if !isStarted {
        acceptors.leave()
        lose(listener, .other(errno: EAGAIN))
      }
    }
    accept(at: listeners[0], admit, report)
    acceptors.closeAndWait()
    for listener in listeners { listener.close() }
  }

  /// The reason that accepting stopped unexpectedly; nil if it was stopped.
  var fault: ServerFault? { loss.withLock { $0 } }

  /// Waits until accepting is stopped, or that many milliseconds. Returns whether it is stopped.
  func waitForStop(milliseconds: UInt64) -> Bool {
    stopFlag.wait(milliseconds: milliseconds)
  }

  /// Stops accepting. It may be called from any thread, any number of times, also before ``run(admit:report:)``.
  func stop() {
    stopFlag.raise()
    for listener in listeners { listener.cancel() }
  }

  private func accept(
    at listener: any ChannelListener, _ admit: (any MessageChannel) -> Void, _ report: (TransportError) -> Void
  ) {
    while !stopFlag.isRaised {
      do throws(TransportError) {
        admit(try listener.acceptChannel())
      } catch {
        switch error {
        case .cancelled: return
        case .closed, .notFound: return lose(listener, error)
        default:
          report(error)
          stopFlag.wait(milliseconds: 100)
        }
      }
    }
  }

  private func lose(_ listener: any ChannelListener, _ error: TransportError) {
    loss.withLock { $0 = $0 ?? (listener as? Listener).map { .endpoint($0.endpoint, error) } ?? .listener(error) }
    stop()
  }
}

/// The limit of this process's descriptors.
enum DescriptorLimit {
  /// Raises the limit to `count` unless it is that high already. Returns false if the system does not allow that.
  static func raise(to count: Int) -> Bool {
    let resource = __rlimit_resource_t(RLIMIT_NOFILE.rawValue)
    var limit = rlimit()
    guard unsafe getrlimit(resource, &limit) == 0 else { return false }
    if limit.rlim_cur >= rlim_t(count) { return true }
    guard limit.rlim_max >= rlim_t(count) else { return false }
    limit.rlim_cur = rlim_t(count)
    return unsafe setrlimit(resource, &limit) == 0
  }
}
