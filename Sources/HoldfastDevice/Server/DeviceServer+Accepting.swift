import Glibc
import HoldfastTransport

extension DeviceServer {
  /// Accepts at every endpoint until the server is stopped, or one of them is gone, which stops it.
  func acceptEverywhere() {
    for listener in listeners.dropFirst() {
      guard acceptors.enter() else { break }
      let isStarted = startThread { [self] in
        defer { acceptors.leave() }
        accept(at: listener)
      }
      if !isStarted {
        acceptors.leave()
        lose(listener, .other(errno: EAGAIN))
      }
    }
    accept(at: listeners[0])
    acceptors.closeAndWait()
  }

  private func accept(at listener: Listener) {
    while !stopFlag.isRaised {
      do throws(TransportError) {
        admit(try listener.accept())
      } catch {
        switch error {
        case .cancelled: return
        case .closed, .notFound: return lose(listener, error)
        default:
          notify(.acceptFault(error))
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
