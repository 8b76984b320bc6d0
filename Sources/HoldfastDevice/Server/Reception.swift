import Glibc
import HoldfastLinux
import HoldfastTransport
import Synchronization

/// Accepts peers at several endpoints, each on a thread of its own.
final class Reception: Sendable {
  let listeners: [Listener]
  private let stopFlag: WakeUp
  /// Counts the threads that accept, the one of ``run(admit:report:)`` apart.
  private let acceptors: WorkerGate
  /// Why an endpoint is gone; the first one ends it all.
  private let loss = Mutex<ServerFault?>(nil)

  /// Begins to listen; peers wait until ``run(admit:report:)``.
  ///
  /// Throws `endpoint`, `noDescriptors`.
  init(at endpoints: [Endpoint], waitingCount: Int) throws(ServerFault) {
    precondition(!endpoints.isEmpty)
    guard let stopFlag = try? WakeUp(), let acceptors = WorkerGate(limit: endpoints.count) else { throw .noDescriptors }
    (self.stopFlag, self.acceptors) = (stopFlag, acceptors)
    listeners = try endpoints.map { endpoint throws(ServerFault) in
      do throws(TransportError) { return try Listener(endpoint, backlog: waitingCount) } catch {
        throw .endpoint(endpoint, error)
      }
    }
  }

  /// Accepts until it is stopped, or an endpoint is gone, which stops it.
  func run(admit: @escaping @Sendable (Connection) -> Void, report: @escaping @Sendable (TransportError) -> Void) {
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

  /// Why it ended by itself; nil where it was stopped.
  var fault: ServerFault? { loss.withLock { $0 } }

  /// Waits until it is stopped, at most so long; says whether it is.
  func waitForStop(milliseconds: UInt64) -> Bool {
    stopFlag.wait(milliseconds: milliseconds)
  }

  /// From any thread, any number of times, also before ``run(admit:report:)``.
  func stop() {
    stopFlag.raise()
    for listener in listeners { listener.cancel() }
  }

  private func accept(
    at listener: Listener, _ admit: (Connection) -> Void, _ report: (TransportError) -> Void
  ) {
    while !stopFlag.isRaised {
      do throws(TransportError) {
        admit(try listener.accept())
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

  private func lose(_ listener: Listener, _ error: TransportError) {
    loss.withLock { $0 = $0 ?? .endpoint(listener.endpoint, error) }
    stop()
  }
}

/// How many descriptors this process may have.
enum DescriptorLimit {
  /// Raises the limit to `count`, unless it is as high already; false where the system does not allow that.
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
